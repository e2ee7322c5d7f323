// A model that was written, read back and held against what it was written from.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse::cli {

struct WrittenCheck {
  bool ok = false;
  std::string how;  ///< what was compared, or what differs
};

/// Nodes and wiring first; where they are spelled differently, outputs on random inputs, in the interpreter. Open
/// dimensions are 2 then.
WrittenCheck check_written(const Graph& graph, const std::string& path);

}  // namespace opfuse::cli
