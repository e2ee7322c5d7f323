// depthwise     memory decides its time, and each channel has few weights: codes win little and lose most
// global_pool   one mean per channel
// stem          the first convolution reads few channels of an image, whose codes cost most accuracy for least work
// attention     products of two computed factors, which few compilers compute in codes
#include "quantize/presets.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kImageChannels = 4;  // grey, RGB, RGBA

bool depthwise(const Candidate&, const std::vector<const Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return is_depthwise(*node); });
}

bool global_pool(const Candidate& module, const std::vector<const Node*>&) {
  return module.pattern == "AdaptiveAvgPool";
}

bool stem(const Candidate&, const std::vector<const Node*>& nodes) {
  const auto reads_an_image = [](const Node* node) {
    if (!is_a<Conv>(*node) || node->input(0)->producer || node->input(0)->is_constant()) return false;
    const Shape& x = node->input(0)->type.shape;
    return x.rank() > 1 && x[1].is_constant() && x[1].value() <= kImageChannels;
  };
  return std::any_of(nodes.begin(), nodes.end(), reads_an_image);
}

bool attention(const Candidate& module, const std::vector<const Node*>&) {
  return module.pattern == "ScaledDotProductAttention";
}

constexpr Preset kPresets[] = {
    {"depthwise", "depthwise convolutions", depthwise},
    {"global_pool", "global average pools", global_pool},
    {"stem", "the convolution that reads the image", stem},
    {"attention", "queries, keys and values of attention", attention},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset& preset_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw fail(E::unknown_name, "there is no preset '{}'", name).hint(did_you_mean(name, names));
}

}  // namespace opfuse::quantization
