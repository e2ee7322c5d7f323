// What an opaque node keeps of its NodeProto, so that it is written back unchanged.
#pragma once

#include <string>
#include <vector>

#include "base/limits.hpp"
#include "onnx/wire.hpp"

namespace opfuse::onnx {

/// OpaqueAttrs::raw is encoded fields of a NodeProto (attributes and unknown fields) plus fields of our own: the number
/// of operands that are written in the node's input list, and the names that its subgraphs read from outside. Those
/// values are operands of the opaque node too, behind the listed ones, so that no pass removes them.
struct OpaquePayload {
  std::string fields;  ///< goes back into the file as it is
  size_t listed_inputs = 0;
  std::vector<std::string> captured;
};

std::string encode_opaque(const NodeProto& node, const std::vector<Bytes>& captured);
OpaquePayload decode_opaque(Bytes raw);

/// Names that the node's subgraphs read and do not define, in order of appearance.
/// E::malformed_model when graphs nest deeper than Limits::nested_graphs.
std::vector<Bytes> captured_names(const NodeProto& node);

/// E::malformed_model beyond Limits::nested_graphs.
void check_nesting(int depth, const Limits& limits);

}  // namespace opfuse::onnx
