// Quantising a float model after training: pairs of QuantizeLinear and DequantizeLinear where the plan's modules
// declare them, scales from samples.
//
//   opfuse::Quantized q = opfuse::quantize(model, [&](size_t index, auto& arrays) {
//     if (index >= images.size()) return false;
//     arrays["input"] = opfuse::view(images[index], {1, 3, 224, 224});
//     return true;
//   });
//   q.model.save("model.int8.onnx");
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "opfuse/opfuse.hpp"

namespace opfuse {

/// Arrays by input name of sample `index`; false: there is none. Called with 0, 1, 2 ... once to calibrate (twice where
/// channels are equalised), and once more to compare (for each model that a metric or a search runs too); every time
/// with the same arrays, which must live until the next call.
struct SampleSource : std::function<bool(size_t index, std::map<std::string, ArrayView>& arrays)> {
  using function::function;
  size_t count = 0;  ///< where it is known: samples to compare are spread evenly then, and progress has a total
};

/// Samples in files: a folder of .npy, .npz, JPEG or PNG files, or one .npy or .npz with many (docs/quantization.md).
struct SampleFiles {
  std::string path;
  int64_t most = 0;  ///< as many, evenly spread; 0: all
  /// Pictures become (pixel / 255 - mean) / std, by channel or one number for all.
  std::vector<double> image_mean{0}, image_std{1};
  std::string image_channels = "rgb";         ///< or bgr
  std::string image_fit = "stretch";          ///< or crop: the largest middle part of the model's proportions
  int64_t image_height = 0, image_width = 0;  ///< where the model leaves them open; 0: not given
};

/// How good the outputs of sample `index` are; a metric is the mean over samples.
using SampleScore = std::function<double(size_t index, const std::map<std::string, ArrayView>& outputs)>;

struct QuantizeRequest {
  /// f16 or bf16: all of the model in 16-bit floats, inputs and outputs stay f32. int8-weights, int4-weights: codes for
  /// the weights of MatMul and Gemm alone, by what the samples say of their data. Empty: pairs. With it only block,
  /// skip, only and min_linear (of weights), evaluate, compare_samples and threads apply.
  std::string to{};
  std::optional<int64_t>
      block{};  ///< of codes for weights alone: weights along K with one scale, a multiple of 8; 0: all
  std::string compiler = "cpu";  ///< whose rules: cpu, cuda, tensorrt, openvino, onnxruntime, any target, or a file
  std::string method = "mse";    ///< minmax, ema, percentile=99.99, mse, entropy
  std::string activations{};     ///< "u8", "s8", "by-sign"; empty: the compiler's
  bool bias_correction = false;
  std::string equalize = "off";        ///< of channels: auto, an alpha from 0 to 1, off
  std::string share_scales = "moves";  ///< off, moves, adds: tensors between which nothing is to be quantised again
  /// Codes of weights: "window-sums" moves some of a window's to the other neighbour so that its sum keeps; "nearest".
  std::string weight_rounding = "window-sums";
  /// "int16": codes of weights are so small that no pair of products saturates 16 bits; "int32"; empty: the compiler's.
  std::string pair_sums{};
  std::optional<std::vector<std::string>> keep_float{};  ///< presets; none: the compiler's
  std::vector<std::string> skip{}, only{};               ///< modules, by pattern, operator, node or "PATTERN@NODE"
  std::optional<int64_t> min_linear{};  ///< least K N / (K + N) of a Linear K -> N in codes; none: the compiler's
  bool add_missing = false;             ///< pairs for points that a model with Q/DQ lacks
  SampleSource evaluate{};              ///< samples that judge and choose nothing; none: those of calibration judge
  std::optional<SampleFiles> evaluate_files{};
  int64_t compare_samples = 8;  ///< to measure agreement with the float model on; 0: it is not measured
  /// sqnr, cosine or top1 against the float model, or a command that is called with a folder of outputs and prints a
  /// number (docs/quantization.md); `score` stands for it.
  std::string metric{};
  SampleScore score{};
  /// "1%" or "0.01": modules stay in float until the metric of calibration's samples is at most so much lower.
  std::string max_drop{};
  /// max_drop with the metric top1: the lower end of its 95 % interval holds the drop, not its value.
  bool lower_bound = false;
  std::string scales_file{};  ///< what calibration finds is kept here and taken up again
  PlanRequest plan{};         ///< without a plan: what to plan with
  int threads = 0;
  std::function<void(const std::string& step, size_t done, size_t total)> progress{};  ///< total 0: not known
};

struct Quantized {
  Model model;
  std::string report;                 ///< JSON, docs/json.md
  std::vector<std::string> warnings;  ///< constants, dead channels, tensors that no sample reached

  /// To "r.json", or as a page to look at to "r.html".
  OPFUSE_API void save_report(const std::string& path) const;
};

/// Throws bad_binding for samples that are missing, do not fit or hold NaN, and what planning and compiling throw.
OPFUSE_API Quantized quantize(const Model& model, const SampleSource& source, const QuantizeRequest& request = {});
OPFUSE_API Quantized quantize(const Model& model, const SampleFiles& files, const QuantizeRequest& request = {});
/// Without samples: `to` converts, and weights have errors that count alike.
OPFUSE_API Quantized quantize(const Model& model, const QuantizeRequest& request);
/// At the points of a plan that was made, or edited, before.
OPFUSE_API Quantized quantize(const Model& model, const Plan& plan, const SampleSource& source,
                              const QuantizeRequest& request = {});
OPFUSE_API Quantized quantize(const Model& model, const Plan& plan, const SampleFiles& files,
                              const QuantizeRequest& request = {});

}  // namespace opfuse
