// What an importer has to know of a shape, or else cannot spell the operator.
#pragma once

#include "ir/graph.hpp"

namespace opfuse::onnx {

/// `what` names the operand in the refusal. E::unsupported_op.
size_t rank_of(const Value* x, const char* what = "an operand");

/// The size of an axis. E::unsupported_op where it is open, or there is no such axis.
int64_t known_size(const Value* x, size_t axis);

}  // namespace opfuse::onnx
