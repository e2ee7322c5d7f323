// Flags of `opfuse quantize`, and the samples that they name.
#pragma once

#include <string>
#include <vector>

#include "flag_set.hpp"
#include "inputs.hpp"
#include "onnx/write.hpp"
#include "quantize/quantize_graph.hpp"

namespace opfuse::cli {

struct SampleFlags {
  std::string path;  ///< a folder, a file, or "random"
  int samples = 0;   ///< 0: all; of random ones 8
  uint64_t seed = 0;
};

/// What becomes of pictures, of --calibrate and --evaluate alike.
struct PictureFlags {
  std::vector<double> mean{0}, std{1};
  std::string size, channels = "rgb", fit = "stretch";
};
void add_picture_flags(FlagSet& app, PictureFlags& flags);

struct QuantizeFlags {
  std::string model, output, report;
  bool force = false, dry_run = false, json = false, verbose = false;
  SampleFlags calibrate;
  std::string to, evaluate, metric, max_drop, weights = "inside";
  std::string compiler = "cpu", method = "mse", activations, scales, plan_file, equalize = "off",
              share_scales = "moves", weight_rounding = "window-sums", pair_sums;
  std::vector<std::string> keep_float, skip, only, patterns;
  int min_linear = -1;  // the compiler's
  int block = -1;       // that of --to
  int threads = 0, compare_samples = 8;
  bool bias_correction = false, add_missing = false, lower_bound = false, no_cache = false;
  DimensionFlags dimensions;
  PictureFlags pictures;
};

void add_quantize_flags(FlagSet& app, QuantizeFlags& flags);
quantization::QuantizeOptions quantize_options(const QuantizeFlags& flags, const SymbolValues& dims);
/// --seed goes with --calibrate random.
void check_seed(const FlagSet& app, const std::string& calibrate);
WriteOptions options_of_file(const QuantizeFlags& flags);
/// E::file_not_found, E::bad_file, E::bad_binding; warns of random ones.
quantization::Samples samples_of(const SampleFlags& flags, const PictureFlags& pictures, const Graph& interface,
                                 const SymbolValues& dims);

}  // namespace opfuse::cli
