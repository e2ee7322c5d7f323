// The list of built-in models.
#include "zoo/zoo.hpp"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr ZooModel kModels[] = {
    {"resnet18", "ResNet-18: basic blocks, 11.7 M weights, 224 x 224", build_resnet18},
    {"resnet34", "ResNet-34: basic blocks, 21.8 M weights, 224 x 224", build_resnet34},
    {"resnet50", "ResNet-50: bottlenecks, 25.6 M weights, 224 x 224", build_resnet50},
    {"resnet101", "ResNet-101: bottlenecks, 44.5 M weights, 224 x 224", build_resnet101},
    {"resnet152", "ResNet-152: bottlenecks, 60.2 M weights, 224 x 224", build_resnet152},
    {"mobilenet_v2", "MobileNetV2: inverted residuals with ReLU6, 3.5 M weights, 224 x 224", build_mobilenet_v2},
    {"mobilenet_v3_large", "MobileNetV3-Large: HardSwish and squeeze-excitation, 5.5 M weights, 224 x 224",
     build_mobilenet_v3_large},
    {"efficientnet_b0", "EfficientNet-B0: SiLU and squeeze-excitation, 5.3 M weights, 224 x 224",
     build_efficientnet_b0},
    {"vgg16", "VGG-16: plain 3x3 convolutions with bias, 138 M weights, 224 x 224", build_vgg16},
    {"alexnet", "AlexNet: five convolutions with bias, 61.1 M weights, 224 x 224", build_alexnet},
    {"convnext_tiny", "ConvNeXt-T: depthwise 7x7, LayerNorm and MLPs, 28.6 M weights, 224 x 224", build_convnext_tiny},
    {"convnext_small", "ConvNeXt-S: 50.2 M weights, 224 x 224", build_convnext_small},
    {"convnext_base", "ConvNeXt-B: 88.6 M weights, 224 x 224", build_convnext_base},
    {"convnext_large", "ConvNeXt-L: 197.8 M weights, 224 x 224", build_convnext_large},
    {"vit_b_16", "ViT-B/16: 12 encoder layers of width 768, 86.6 M weights, 224 x 224", build_vit_b_16},
    {"swin_t", "Swin-T: attention in shifted windows, 28.3 M weights, 224 x 224", build_swin_t},
    {"bert_base", "BERT-base without a head: 12 encoder layers of width 768, 109.5 M weights, 128 tokens",
     build_bert_base},
    {"unet", "U-Net for segmentation: Resize and Concat, 2 M weights, 256 x 256", build_unet},
};

}  // namespace

std::span<const ZooModel> zoo_models() { return kModels; }

Graph build_zoo(std::string_view name, const ZooOptions& options) {
  if (options.resolution < 0) throw fail(E::bad_option, "a resolution of {}", options.resolution);
  std::vector<std::string> names;
  for (const ZooModel& model : kModels) {
    if (model.name == name) return model.build(options);
    names.emplace_back(model.name);
  }
  const std::string close = closest_name(name, names);
  throw fail(E::unknown_name, "there is no built-in model \"{}\"", name)
      .hint(close.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : "did you mean " + close + "?");
}

}  // namespace opfuse
