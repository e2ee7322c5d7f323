// The table. Sources: TensorRT takes zero point 0 only, refuses i32 codes as bias and fuses a residual addition by the
// precision of the skip operand; ONNX Runtime forms QLinearConv where a QuantizeLinear follows, and drops a Relu where
// u8 codes begin at 0; OpenVINO's convolutions read u8 codes and keep float results; opfuse sums codes where both
// factors are dequantised, whatever follows.
#include "quantize/compiler_rules.hpp"

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse::quantization {

std::span<const CompilerRules> compiler_rules() {
  static const std::vector<CompilerRules> rows = {
      {.name = "cpu",
       .summary = "opfuse's own kernels: u8 data, i8 weights by channel, i32 bias",
       .activations = DType::u8,
       .affine = true,
       .bias_codes = true,
       .results = false,
       .presets = {"attention", "global_pool"}},
      {.name = "tensorrt",
       .summary =
           "TensorRT: i8 data with zero point 0, float bias, pairs at the inputs of modules and on skip operands",
       .activations = DType::i8,
       .affine = false,
       .bias_codes = false,
       .results = false,
       .presets = {"depthwise", "global_pool"}},
      {.name = "openvino",
       .summary = "OpenVINO on CPUs: u8 data, float bias",
       .activations = DType::u8,
       .affine = true,
       .bias_codes = false,
       .results = false,
       .presets = {"attention"}},
      {.name = "onnxruntime",
       .summary =
           "ONNX Runtime on CPUs: u8 data, i32 bias, pairs on results of convolutions and residual additions too",
       .activations = DType::u8,
       .affine = true,
       .bias_codes = true,
       .results = true,
       .presets = {"attention"}},
      {.name = "cuda",
       .summary = "opfuse on GPUs, which computes such models in float: as for TensorRT",
       .activations = DType::i8,
       .affine = false,
       .bias_codes = false,
       .results = false,
       .presets = {"depthwise", "global_pool"}},
  };
  return rows;
}

const CompilerRules& rules_of(const std::string& compiler) {
  std::vector<std::string> names;
  for (const CompilerRules& row : compiler_rules()) {
    if (row.name == compiler) return row;
    names.push_back(row.name);
  }
  throw fail(E::unknown_name, "there are no rules for the compiler '{}'", compiler).hint(did_you_mean(compiler, names));
}

}  // namespace opfuse::quantization
