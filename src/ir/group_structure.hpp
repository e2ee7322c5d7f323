// What a group is, without names: two groups of equal structure become equal regions. Layers of a deep model repeat, so
// what is asked of a group need be worked out once.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "ir/graph.hpp"

namespace opfuse {

/// Operators, attributes, wiring, types, and those constants whose elements lowering may look at. Attributes are told
/// once and kept, so one object serves one plan; not for several threads.
class GroupStructure {
 public:
  /// Nothing where more than the group may decide: it still stands in a graph (only an `outline_copy` has a structure),
  /// or its constants are large.
  std::optional<Hash128> of(const Node& group);

 private:
  struct Told {
    std::shared_ptr<const void> attrs;  ///< kept, so that the address stays theirs
    Hash128 text;
  };
  std::unordered_map<const void*, Told> told_;
  friend class StructureWriter;
  Hash128 attributes_of(const Node& node);
};

}  // namespace opfuse
