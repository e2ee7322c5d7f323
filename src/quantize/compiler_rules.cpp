// "cpu" is this machine's target, "cuda" the first GPU: what all of a kind want is said in the file that they extend.
#include "quantize/compiler_rules.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "quantize/presets.hpp"
#include "target/capabilities.hpp"

namespace opfuse::quantization {
namespace {

constexpr const char* kCuda = "cuda";

TargetInfo target_of(const std::string& compiler) {
  if (compiler == kCuda) return parse_target(cuda_targets().front());
  try {
    return parse_target(compiler);
  } catch (const Error& error) {
    if (error.diagnostic().name != "bad_option") throw;
    throw fail(E::unknown_name, "there are no rules for the compiler '{}'", compiler)
        .hint(did_you_mean(compiler, compiler_names()) + " (or any target, or a file such as mine.toml)");
  }
}

constexpr int64_t kLeastLinear = 256;  // the design's rule for every compiler that says nothing

bool says_small_products(const QuantizePreferences& said) {
  return std::any_of(said.leave.begin(), said.leave.end(),
                     [](const LeaveRow& row) { return row.name.text == kSmallProduct; });
}

DataCodes codes_of_data(const QuantizePreferences& said, const std::string& compiler) {
  if (said.weights == "int8" && said.activations == "uint8") return DataCodes::u8;
  if (said.weights == "int8" && said.activations == "int8") return DataCodes::s8;
  if (said.weights == "int8" && said.activations == "by_sign") return DataCodes::by_sign;
  throw fail(E::bad_option, "{} wants {} data and {} weights, and quantize makes codes of 8 bits", compiler,
             said.activations, said.weights)
      .hint("activations = \"int8\", \"uint8\" or \"by_sign\", weights = \"int8\" in [quantize] of its file");
}

}  // namespace

std::vector<std::string> compiler_names() {
  std::vector<std::string> names{"cpu", kCuda};
  for (const std::string& name : listed_targets()) {
    const TargetInfo target = parse_target(name);
    if (!has_generator(target) && capabilities_of(target).quantize.stated) names.push_back(name);
  }
  return names;
}

CompilerRules rules_of(const std::string& compiler) {
  const TargetInfo target = target_of(compiler);
  const QuantizePreferences& said = capabilities_of(target).quantize;
  if (!said.stated)
    throw fail(E::bad_option, "{} does not say how it wants Q/DQ", compiler).hint("add [quantize] to its file");
  CompilerRules rules{.name = compiler == kCuda || compiler == "cpu" ? compiler : target.name,
                      .about = target.about,
                      .activations = codes_of_data(said, compiler),
                      .affine = !said.symmetric,
                      .per_channel = said.per_channel,
                      .depthwise_scales = said.depthwise_scales,
                      .bias_codes = said.bias == "int32",
                      .integer = said.arithmetic != "float",
                      .int16_pairs = said.arithmetic == "int16_pairs",
                      .results = said.results,
                      .equalize_anywhere = said.equalize_anywhere,
                      .equalize_gain = said.equalize_gain,
                      .min_linear = says_small_products(said) ? 0 : kLeastLinear,
                      .presets = {},
                      .target = nullptr};
  for (const PlacedText& preset : said.keep_float) {
    try {
      preset_of(preset.text);
    } catch (const Error& error) {
      throw fail(E::bad_file, "{}: {}", preset.place(), error.diagnostic().message).hint(error.diagnostic().hint);
    }
    rules.presets.push_back(preset.text);
  }
  rules.target = capability_rules(target);
  return rules;
}

}  // namespace opfuse::quantization
