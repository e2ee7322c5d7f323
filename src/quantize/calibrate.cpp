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
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "quantize/scales_file.hpp"

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
  Calibrator(const Graph& graph, const Placement& placement, const Samples& samples, const CalibrateOptions& options)
      : graph_(graph), samples_(samples), options_(options), model_(graph, names_of(placement), options.run) {
    for (const PlacedTensor& placed : placement.tensors) {
      TensorStatistics statistics{.tensor = placed.tensor};
      const Value* value = graph.find_value(placed.tensor);
      if (options.channels && value) statistics.axis = channel_axis(*value, placed);
      found_.tensors.push_back(std::move(statistics));
    }
    found_.identity = samples.identity;
    found_.model = model_hash(graph);
  }

  Calibration run() {
    if (!options_.scales_file.empty()) take_up(options_.scales_file, found_);
    found_.taken_up = found_.samples;
    if (!found_.done) take_samples();
    return std::move(found_);
  }

 private:
  static std::vector<std::string> names_of(const Placement& placement) {
    std::vector<std::string> names;
    for (const PlacedTensor& placed : placement.tensors) names.push_back(placed.tensor);
    return names;
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
      if (options_.run.progress) options_.run.progress("calibrate", done, samples_.count);
      if (since_save_.milliseconds() >= 1000 * options_.seconds_between_files) save();
    }
    if (done == 0) throw fail(E::bad_binding, "there is no sample to calibrate with");
    found_.done = true;
    save();
  }

  void take(size_t index) {
    std::vector<char> finite(found_.tensors.size(), 1);
    parallel_for(
        static_cast<int64_t>(finite.size()),
        [&](int64_t i) {
          TensorStatistics& statistics = found_.tensors[static_cast<size_t>(i)];
          const ArrayView value = model_.value(statistics.tensor);
          finite[static_cast<size_t>(i)] = take_array(statistics, value, options_.histograms);
        },
        options_.run.threads);
    const auto bad = std::find(finite.begin(), finite.end(), 0);
    if (bad == finite.end()) return;
    throw fail(E::bad_binding, "'{}' becomes NaN or infinite for {}",
               found_.tensors[static_cast<size_t>(bad - finite.begin())].tensor, samples_.name_of(index))
        .hint("opfuse run MODEL --input ... shows what the model makes of it; nothing was written");
  }

  void save() {
    since_save_ = {};
    if (!options_.scales_file.empty()) write_scales(options_.scales_file, found_);
  }

  const Graph& graph_;
  const Samples& samples_;
  const CalibrateOptions& options_;
  ObservedModel model_;
  Calibration found_;
  Stopwatch since_save_;
};

}  // namespace

Calibration calibrate(const Graph& graph, const Placement& placement, const Samples& samples,
                      const CalibrateOptions& options) {
  return Calibrator(graph, placement, samples, options).run();
}

}  // namespace opfuse::quantization
