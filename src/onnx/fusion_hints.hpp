// What nodes of a file say about their own fusion, in metadata_props:
//     opfuse.no_fuse      "*": with none of its neighbours; "other" or ["a", "b"]: not with these nodes
//     opfuse.fuse_with    "other" or ["a", "b"]: as one launch, although it is predicted slower
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

struct FusionHint {
  std::string node;               ///< its name in the file
  bool fuse = false;              ///< fuse_with; else no_fuse
  std::vector<std::string> with;  ///< names in the file; empty: all neighbours
  std::string key() const { return fuse ? "opfuse.fuse_with" : "opfuse.no_fuse"; }
};

/// In the order of the file. E::malformed_model for a value that is none of these forms.
std::vector<FusionHint> fusion_hints(const Graph& graph);

}  // namespace opfuse
