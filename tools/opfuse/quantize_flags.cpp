// Words of the command line to options of the library.
#include "quantize_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/fail.hpp"
#include "console.hpp"
#include "fusion/plan.hpp"
#include "interrupt.hpp"
#include "outputs.hpp"
#include "plan_file.hpp"
#include "quantize/compiler_rules.hpp"
#include "quantize/presets.hpp"
#include "quantize/sample_files.hpp"
#include "quantize/weight_codes.hpp"
#include "report.hpp"

namespace opfuse::cli {
namespace {

constexpr const char* kRandom = "random";
constexpr const char* kNone = "none";
constexpr size_t kRandomSamples = 8;

std::string compilers() {
  return fmt::format("{}; any target, or a file", fmt::join(quantization::compiler_names(), ", "));
}

std::string preset_names() {
  std::vector<std::string> names;
  for (const quantization::Preset& preset : quantization::presets())
    names.push_back(fmt::format("{} ({})", preset.name, preset.summary));
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_choice_flags(FlagSet& app, QuantizeFlags& flags) {
  app.add_option("--for", flags.compiler,
                 "whose rules decide codes, zero points, bias and places of pairs: " + compilers())
      ->type_name("COMPILER")
      ->capture_default_str();
  app.add_option("--activations", flags.activations,
                 "codes of activations instead of the compiler's; by-sign: s8 where a tensor has negative numbers, u8 "
                 "where it has none, zero points 0")
      ->one_of(quantization::data_codes_names());
  app.add_option("--keep-float", flags.keep_float,
                 "kinds of modules that stay in float, instead of the compiler's; or none: " + preset_names())
      ->type_name("NAME,...")
      ->delimiter(',');
  app.add_option("--skip", flags.skip,
                 "modules that stay in float, by pattern, operator, node or PATTERN@NODE (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--only", flags.only, "quantise only these modules (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option(
         "--min-linear", flags.min_linear,
         "a Linear K -> N stays in float where K N / (K + N) is less than this, instead of the compiler's (256; "
         "openvino 128, onnxruntime 48; of --to int8-weights|int4-weights 32)")
      ->range(0, 1 << 30);
  app.add_flag("--add-missing", flags.add_missing,
               "a model with Q/DQ: pairs for the points without one too; its own scales stay");
  app.add_flag("--bias-correction", flags.bias_correction,
               "correct biases for the mean shift that rounding the weights causes");
  app.add_option(
         "--equalize", flags.equalize,
         "equalise the ranges of channels, moving the factors into weights: auto (by expected noise), an alpha, or off")
      ->type_name("auto|ALPHA|off")
      ->capture_default_str();
  app.add_option(
         "--weight-rounding", flags.weight_rounding,
         "keep the sum of a window's weights by rounding some to the farther code, or round each to the nearest")
      ->one_of({"window-sums", "nearest"})
      ->capture_default_str();
  app.add_option("--pair-sums", flags.pair_sums,
                 "int16: codes of weights so small that pairs of products fit the 16 bits in which ONNX Runtime and "
                 "OpenVINO add them on CPUs without VNNI; int32: all codes; instead of the compiler's")
      ->one_of({"int16", "int32"});
  app.add_option("--share-scales", flags.share_scales,
                 "one scale for tensors between which elements are only moved, or also added, so that nothing is "
                 "quantised again")
      ->one_of({"off", "moves", "adds"})
      ->capture_default_str();
}

/// "224x224" or "224".
void set_size(const std::string& text, quantization::PictureOptions& options) {
  if (text.empty()) return;
  const size_t by = text.find('x');
  const auto number = [&](std::string_view part) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || value < 1 || value > 1 << 16)
      throw fail(E::bad_option, "--image-size is HEIGHTxWIDTH such as 224x224, not '{}'", text);
    return value;
  };
  options.height = number(std::string_view(text).substr(0, by));
  options.width = by == std::string::npos ? options.height : number(std::string_view(text).substr(by + 1));
}

quantization::PictureOptions picture_options(const PictureFlags& flags) {
  quantization::PictureOptions options{.mean = flags.mean,
                                       .std = flags.std,
                                       .bgr = quantization::parse_bgr(flags.channels),
                                       .fit = quantization::parse_fit(flags.fit)};
  set_size(flags.size, options);
  return options;
}

}  // namespace

void add_picture_flags(FlagSet& app, PictureFlags& flags) {
  app.add_option("--image-mean", flags.mean, "pictures: subtracted from pixel / 255; one number, or one per channel")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--image-std", flags.std, "pictures: what the result is divided by; one number, or one per channel")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--image-size", flags.size, "of pictures, where the model leaves it open")->type_name("HEIGHTxWIDTH");
  app.add_option("--image-channels", flags.channels, "order of channels of pictures")
      ->one_of({"rgb", "bgr"})
      ->capture_default_str();
  app.add_option("--image-fit", flags.fit, "how pictures get the model's size: all of it, or its largest middle part")
      ->one_of({"stretch", "crop"})
      ->capture_default_str();
}

void add_quantize_flags(FlagSet& app, QuantizeFlags& flags) {
  app.add_option("-o,--output", flags.output, "write the quantised model")->type_name("FILE.onnx");
  add_force_flag(app, flags.force);
  app.add_option(
         "--calibrate", flags.calibrate.path,
         "samples: a folder of .npy, .npz, JPEG or PNG files, one .npy or .npz with many, or `random` (for speed, "
         "not for use)")
      ->type_name("PATH");
  app.add_option("--samples", flags.calibrate.samples, "at most this many samples, evenly spread; 0: all (random: 8)")
      ->range(0, 1 << 30)
      ->capture_default_str();
  app.add_option("--seed", flags.calibrate.seed, "of random samples")->capture_default_str();
  app.add_option("--method", flags.method, "ranges by minmax, ema, percentile=99.99, mse or entropy")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--to", flags.to,
                 "without samples: 16-bit floats (all of the model, inputs and outputs stay f32), or codes for the "
                 "weights of MatMul and Gemm alone")
      ->one_of({"f16", "bf16", "int8-weights", "int4-weights"});
  app.add_option(
         "--block", flags.block,
         "--to int8-weights|int4-weights: weights along K that share a scale, a multiple of 8; 0: one scale per "
         "column (default: 0 of int8, 32 of int4)")
      ->range(0, 1 << 20);
  add_choice_flags(app, flags);
  app.add_option("--scales", flags.scales, "keep what calibration finds here, and take it up again")
      ->type_name("FILE.json");
  app.add_option("--evaluate", flags.evaluate, "measure agreement with these samples, not with those of --calibrate")
      ->type_name("PATH");
  app.add_option("--compare-samples", flags.compare_samples,
                 "samples to measure agreement with the float model on, evenly spread; 0: it is not measured")
      ->range(0, 1 << 30)
      ->capture_default_str();
  app.add_option(
         "--metric", flags.metric,
         "also one number of both models: sqnr, cosine or top1 against the float model, or a command that is called "
         "with a folder of outputs (000000.npz ...) and prints it")
      ->type_name("NAME|COMMAND");
  app.add_option("--max-drop", flags.max_drop,
                 "leave modules in float, the noisiest per multiply-add first, until the metric on the samples of "
                 "--calibrate is no further below the float model's than this")
      ->type_name("SHARE%");
  app.add_flag("--lower-bound", flags.lower_bound,
               "--max-drop with --metric top1: the lower end of its 95 % interval holds the drop, not its value");
  app.add_option("--weights", flags.weights, "inside the file, or beside it in FILE.onnx.data")
      ->one_of({"inside", "beside"})
      ->capture_default_str();
  app.add_option("--report", flags.report, "write the report: .json, or .html to look at")->type_name("FILE");
  app.add_option("--plan", flags.plan_file, "place pairs by a saved plan")->type_name("FILE");
  app.add_option("--patterns", flags.patterns, "patterns of your own with their points (repeatable)")
      ->type_name("FILE.toml")
      ->allow_extra_args(false);
  app.add_option("--threads", flags.threads, "of the runs; 0: affinity mask and CPU quota")->capture_default_str();
  app.add_flag("--no-cache", flags.no_cache, "neither read nor write the kernel cache");
  add_dimension_flags(app, flags.dimensions);
  add_picture_flags(app, flags.pictures);
  app.add_flag("--dry-run", flags.dry_run, "list places and reasons; needs no samples");
  app.add_flag("-v,--verbose", flags.verbose, "list every tensor and every module");
  app.add_flag("--json", flags.json, "as JSON (docs/json.md)");
}

/// While samples are read Ctrl-C is an error that calibration sees, so it keeps what it has.
static void show_and_watch(const std::string& step, size_t done, size_t total) {
  show_progress(step, done, total);
  const bool reading = step == "calibrate";
  if (reading && interrupted())
    throw fail(E::cancelled, "interrupted after {} samples", done)
        .hint("what they said is in the file of --scales; the same command goes on from there");
  if (reading && done < total) return catch_interrupts();
  if (!interrupted()) release_interrupts();
}

void check_seed(const FlagSet& app, const std::string& calibrate) {
  if (calibrate != kRandom) refuse_flags(app, {"--seed"}, "it is that of --calibrate random", "leave it out");
}

quantization::QuantizeOptions quantize_options(const QuantizeFlags& flags, const SymbolValues& dims) {
  quantization::QuantizeOptions options;
  options.compiler = flags.compiler;
  options.method = quantization::parse_method(flags.method);
  if (!flags.activations.empty()) options.activations = quantization::parse_data_codes(flags.activations);
  options.bias_correction = flags.bias_correction;
  options.equalize = quantization::parse_equalize(flags.equalize);
  options.sharing = quantization::parse_sharing(flags.share_scales);
  if (!flags.keep_float.empty()) {
    const bool none = flags.keep_float == std::vector<std::string>{kNone};
    options.presets = none ? std::vector<std::string>{} : flags.keep_float;
    for (const std::string& name : *options.presets) quantization::preset_of(name);
  }
  options.skip = flags.skip, options.only = flags.only;
  options.window_sums = quantization::parse_rounding(flags.weight_rounding);
  if (!flags.pair_sums.empty()) options.int16_pairs = quantization::parse_pair_sums(flags.pair_sums);
  if (flags.min_linear >= 0) options.min_linear = flags.min_linear;
  options.add_missing = flags.add_missing;
  options.dims = dims;
  options.plan.pattern_files = flags.patterns;
  if (!flags.plan_file.empty()) options.given_plan = std::make_shared<const FusionPlan>(read_plan(flags.plan_file));
  options.scales_file = flags.scales;
  options.run = {.threads = flags.threads,
                 .cache = !flags.no_cache,
                 .progress = flags.scales.empty() ? show_progress : show_and_watch};
  return options;
}

WriteOptions options_of_file(const QuantizeFlags& flags) {
  WriteOptions options;
  if (flags.weights == "beside") options.max_file_bytes = 0;
  return options;
}

quantization::Samples samples_of(const SampleFlags& flags, const PictureFlags& pictures, const Graph& interface,
                                 const SymbolValues& dims) {
  const auto count = static_cast<size_t>(flags.samples);
  if (flags.path == kRandom) {
    warn("random samples: good for speed and for trying out, their scales are not for use");
    if (picture_options(pictures) != quantization::PictureOptions{})
      note("random samples are not pictures: flags of pictures have no effect");
    SymbolValues all = dims;
    for (const auto& [name, size] : resolve_dimensions(interface, {}, {})) all.emplace(name, size);
    return quantization::random_samples(interface, count > 0 ? count : kRandomSamples, flags.seed, all);
  }
  std::vector<std::string> notes;
  quantization::Samples samples = quantization::samples_from_files(
      flags.path, interface, {.most = count, .dims = dims, .pictures = picture_options(pictures)}, &notes);
  for (const std::string& text : notes) note(text);
  return samples;
}

}  // namespace opfuse::cli
