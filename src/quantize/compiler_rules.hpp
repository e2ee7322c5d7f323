// What compilers that take Q/DQ files ask of them: one row each, for `--for`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace opfuse::quantization {

struct CompilerRules {
  const char* name;     ///< "tensorrt"
  const char* summary;  ///< one sentence for --help and reports
  DType activations;    ///< u8: any zero point; i8: zero point 0
  bool affine;          ///< zero points other than 0 are taken, so u8 may be chosen
  bool bias_codes;      ///< bias as DequantizeLinear of i32 codes of the scale s_x s_w; else it stays float
  /// Results of convolutions, additions of quantised values and pools of them carry a pair too: this compiler makes
  /// integer operators only of nodes with a DequantizeLinear before and a QuantizeLinear behind.
  bool results;
  std::vector<const char*> presets;  ///< what stays in float unless chosen otherwise (quantize/presets.hpp)
};

std::span<const CompilerRules> compiler_rules();
/// E::unknown_name with a did-you-mean.
const CompilerRules& rules_of(const std::string& compiler);

}  // namespace opfuse::quantization
