// What compilers that take Q/DQ files ask of them, for `--for`: [quantize] of a target's file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/user/capability_rules.hpp"
#include "quantize/data_codes.hpp"

namespace opfuse::quantization {

constexpr const char* kSmallProduct = "small product";  ///< the row of [[quantize.leave]] that --min-linear stands for

struct CompilerRules {
  std::string name;               ///< "tensorrt", or a file's name for its target
  std::string about;              ///< of the target's file
  DataCodes activations{};        ///< unless chosen otherwise
  bool affine = true;             ///< zero points other than 0 are taken, so u8 may be chosen
  bool per_channel = true;        ///< weights have a scale for each output channel; else one
  bool depthwise_scales = false;  ///< data of depthwise convolutions may have a scale for each channel
  bool bias_codes = false;        ///< bias as DequantizeLinear of i32 codes of the scale s_x s_w; else it stays float
  bool integer = true;            ///< it multiplies codes; else it dequantises first
  bool int16_pairs = false;       ///< pairs of products fit 16 bits (quantize/pair_codes.hpp)
  bool results = false, equalize_anywhere = false;  ///< as in QuantizePreferences
  double equalize_gain = 0;                         ///< the same
  int64_t min_linear = 256;          ///< least K N / (K + N) of a Linear; 0: the file's row "small product" says which
  std::vector<std::string> presets;  ///< what stays in float unless chosen otherwise (quantize/presets.hpp)
  std::shared_ptr<const CapabilityRules> target;  ///< its points and [[quantize.leave]]; null: all points, no rows

  bool uses_point(std::string_view point) const { return !target || target->uses_point(point); }
};

/// Targets whose files say how they want Q/DQ; "cpu" and "cuda" stand for opfuse's own.
std::vector<std::string> compiler_names();
/// A name of these, any target, or a file. E::unknown_name with a did-you-mean; E::bad_file.
CompilerRules rules_of(const std::string& compiler);

}  // namespace opfuse::quantization
