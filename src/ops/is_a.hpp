// Which operator a node is, asked by the operator's declaration: a name that is misspelt does not compile.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

template <class Op>
bool is_a(const Node& node) {
  static const std::string name = Op::spec().name;
  return node.op->name == name;
}

}  // namespace opfuse
