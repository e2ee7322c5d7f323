// Nodes with a body: what the body's inputs and results have to do with the node's own. One row a law.
//
//     %y = KIND (%a, %b as %k) {attributes} { .. yield %r }
//
// A body sees nothing but its inputs, one an operand of the node, and its own constants: what it captures is what the
// node reads, so uses, lifetimes and orders of nodes are those of any node. Constants it reads alone lie in it.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

struct BodyLaw {
  const OpInfo* op = nullptr;
  /// Types of the body's inputs, of those of the operands; null: the same. Of absent operands nothing is asked.
  std::vector<TensorType> (*inputs)(const void* attrs, const std::vector<TensorType>& operands) = nullptr;
  /// Types of the results, of those that the body yields; null: the same.
  std::vector<TensorType> (*results)(const void* attrs, const std::vector<TensorType>& yielded) = nullptr;
  bool runs_once = true;  ///< its nodes could stand where the node does
};

const std::vector<BodyLaw>& body_laws();
/// Of an operator that has a body.
const BodyLaw& body_law(const OpInfo& op);
/// A fused or composite node: its nodes could stand in its place.
bool stands_for_body(const Node& node);
/// How often the body of a node runs.
int64_t times_of(const Node& node);

/// What the body of such a node takes and what the node gives. E02xx where the attributes do not fit the types.
std::vector<TensorType> body_input_types(const OpInfo& op, const void* attrs, const std::vector<TensorType>& operands);
std::vector<TensorType> body_result_types(const OpInfo& op, const void* attrs, const std::vector<TensorType>& yielded);

/// Types of operands (unknown: absent) or results.
std::vector<TensorType> types_of(const std::vector<Value*>& values);

}  // namespace opfuse
