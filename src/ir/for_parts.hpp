// The same nodes for one part of their operands after the other; results are put together.
//
//     %y = for_parts (%x, %w) {parts = 4, cuts = [0,-1], joins = [0]} { %t = conv(%x, %w) yield %t }
//
// Part i of an operand that is cut along an axis is its i-th `parts`-th of that axis; others are there as a whole.
// Images of a batch (shape/loop_over_images.cpp) and slices of channels (shape/run_in_slices.cpp) are such parts.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

struct ForParts {
  static constexpr int64_t kWhole = -1;
  struct Attrs {
    int64_t parts = 1;
    std::string of;              ///< what a part is called, "image"; empty: "part", along inner axes by its range
    std::vector<int64_t> cuts;   ///< by operand: the axis, or kWhole
    std::vector<int64_t> joins;  ///< by result: the axis
  };
};

const OpInfo* for_parts_op();

/// Types of the parts of operands, and of the results of parts put together. E::shape_mismatch.
std::vector<TensorType> part_types(const void* attrs, const std::vector<TensorType>& operands);
std::vector<TensorType> joined_types(const void* attrs, const std::vector<TensorType>& parts);

/// Part `i` of a tensor along an axis that `parts` divides; it shares the tensor's memory where it lies in one piece.
Tensor part_of(const Tensor& whole, int64_t axis, int64_t parts, int64_t i);
Tensor join_parts(const std::vector<Tensor>& parts, int64_t axis);

/// A node over parts of `operands` with this body. Types of its results follow from what the body yields.
Node* add_for_parts(Graph& graph, ForParts::Attrs attrs, std::vector<Value*> operands, std::unique_ptr<Graph> body,
                    std::vector<Source> sources, Node* before);

/// The name of a value in one part: "y" and "y[image]" -> "y[image 3]".
std::string part_name(std::string_view name, std::string_view of, int64_t part);
/// What the values and groups of a part are called: "y" -> "y[image 3]", "y[16:32]"; part < 0, of whichever:
/// "y[image]".
std::string name_in_part(const Node& loop, std::string_view name, int64_t part);
/// The name of a value of the body, also of one without a name: the same in every copy of the graph.
std::string body_value_name(const Node& loop, const Value& inner);
/// Nodes that the loops of a graph become where each part has a copy of its own; INT64_MAX: more than can be counted.
int64_t unrolled_nodes(const Graph& graph);
/// Renames values of bodies whose name a body before has as well: what programs and proofs know of a part are names.
void name_bodies_apart(Graph& graph);

}  // namespace opfuse
