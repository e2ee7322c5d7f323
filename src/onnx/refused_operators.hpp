// Operators of ONNX that are known and not compiled, each with the reason.
#pragma once

#include <string_view>

namespace opfuse::onnx {

/// A clause behind the operator's name: "works on strings ..."; empty for operators that are not in ONNX.
std::string_view why_refused(std::string_view onnx_op);

}  // namespace opfuse::onnx
