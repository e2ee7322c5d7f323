// One pass: each sample widens the ranges and is counted (quantize/histogram), with means of channels where they are
// asked for. A float input that holds NaN or an infinity, or a tensor that becomes one, ends the work with the sample's
// name. The scales file is written now and then, and at the end.
#include "quantize/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "base/stopwatch.hpp"
#include "ir/value_name.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "quantize/scale_channels.hpp"
#include "quantize/scales_file.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {
namespace {

/// Channels of an image lie second, features of rows last.
int channel_axis(const Value& value, const PlacedTensor& placed) {
  const auto reads = [&](const Node& node) {
    return std::find(placed.readers.begin(), placed.readers.end(), node.id) != placed.readers.end();
  };
  for (const Use& use : value.uses)
    if (is_a<Conv>(*use.node) && reads(*use.node)) return 1;
  return value.type.shape.rank() > 0 ? static_cast<int>(value.type.shape.rank()) - 1 : -1;
}

class Calibrator {
 public:
  Calibrator(const Graph& graph, const Placement& placement, const std::vector<CalibratedTensor>& tensors,
             ObservedModel& model, const Samples& samples, const CalibrateOptions& options)
      : graph_(graph), tensors_(tensors), samples_(samples), options_(options), model_(model) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const PlacedTensor& placed = placement.tensors[i];
      TensorStatistics statistics{.tensor = placed.tensor};
      const Value* value = graph.find_value(placed.tensor);
      if (options.channels && value) statistics.axis = channel_axis(*value, placed);
      found_.tensors.push_back(tensors[i].known.value_or(std::move(statistics)));
    }
    found_.identity = samples.identity;
    found_.model = model_hash(graph);
  }

  Calibration run() {
    if (!options_.scales_file.empty()) take_up(options_.scales_file, found_);
    found_.taken_up = found_.samples;
    if (!found_.done && all_known())
      found_.done = true, save();
    else if (!found_.done)
      take_samples();
    return std::move(found_);
  }

 private:
  bool all_known() {
    for (const CalibratedTensor& tensor : tensors_)
      if (!tensor.known) return false;
    for (const TensorStatistics& s : found_.tensors)
      found_.samples = std::max(found_.samples, static_cast<size_t>(s.samples));
    return !tensors_.empty();
  }

  void take_samples() {
    size_t& done = found_.samples;
    while (const auto sample = samples_.read(done)) {
      require_finite(graph_, samples_, done, *sample);
      try {
        model_.run(*sample);
      } catch (Error& error) {
        throw error.during(fmt::format("calibration with {}", samples_.name_of(done)));
      }
      take(done);
      ++done;
      report(done);
      if (since_save_.milliseconds() >= 1000 * options_.seconds_between_files) save();
    }
    if (done == 0) throw fail(E::bad_binding, "there is no sample to calibrate with");
    found_.done = true;
    save();
  }

  /// What watches may end the work; what was found until then is kept.
  void report(size_t done) try {
    if (options_.run.progress) options_.run.progress("calibrate", done, samples_.count);
  } catch (...) {
    save();
    throw;
  }

  void take(size_t index) {
    std::vector<char> finite(found_.tensors.size(), 1);
    parallel_for(
        static_cast<int64_t>(finite.size()),
        [&](int64_t i) { finite[static_cast<size_t>(i)] = take_tensor(static_cast<size_t>(i)) ? 1 : 0; },
        options_.run.threads);
    const auto bad = std::find(finite.begin(), finite.end(), 0);
    if (bad == finite.end()) return;
    throw fail(E::bad_binding, "'{}' becomes NaN or infinite for {}",
               found_.tensors[static_cast<size_t>(bad - finite.begin())].tensor, samples_.name_of(index))
        .hint(hint_of_constants() + "; nothing was written");
  }

  std::string hint_of_constants() const {
    for (const Value* value : graph_.constants())
      if (!all_finite(*value->constant))
        return fmt::format("'{}' of the model holds NaN or infinities", value_name(*value));
    return "opfuse run MODEL --input ... shows what the model makes of it";
  }

  bool take_tensor(size_t i) {
    const CalibratedTensor& from = tensors_[i];
    if (from.known) return true;
    TensorStatistics& statistics = found_.tensors[i];
    const ArrayView value = model_.value(from.value);
    const std::optional<ChannelBlocks> blocks = model_.blocks(from.value);
    if (!from.factors.empty()) scale_channels(value, blocks, from.axis, from.factors);  // the next run writes it anew
    return take_array(statistics, value, options_.histograms, blocks);
  }

  void save() {
    since_save_ = {};
    if (!options_.scales_file.empty()) write_scales(options_.scales_file, found_);
  }

  const Graph& graph_;
  const std::vector<CalibratedTensor>& tensors_;
  const Samples& samples_;
  const CalibrateOptions& options_;
  ObservedModel& model_;
  Calibration found_;
  Stopwatch since_save_;
};

}  // namespace

Calibration calibrate(const Graph& graph, const Placement& placement, const std::vector<CalibratedTensor>& tensors,
                      ObservedModel& model, const Samples& samples, const CalibrateOptions& options) {
  return Calibrator(graph, placement, tensors, model, samples, options).run();
}

std::vector<CalibratedTensor> calibrated_tensors(const Placement& placement) {
  std::vector<CalibratedTensor> tensors;
  for (const PlacedTensor& placed : placement.tensors) tensors.push_back({placed.tensor});
  return tensors;
}

std::vector<std::string> names_of(const Placement& placement) {
  std::vector<std::string> names;
  for (const PlacedTensor& placed : placement.tensors) names.push_back(placed.tensor);
  return names;
}

}  // namespace opfuse::quantization
