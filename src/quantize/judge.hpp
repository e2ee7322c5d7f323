// Quantising as a user asks for it: made, searched until a metric holds, and judged beside the float model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "quantize/metric.hpp"
#include "quantize/quantize_graph.hpp"
#include "quantize/search.hpp"

namespace opfuse::quantization {

struct JudgeChoice {
  int64_t compare_samples = 8;  ///< to measure agreement on; 0: it is not measured
  MetricChoice metric;
  std::string max_drop;      ///< "1%" or "0.01" of the metric; empty: nothing is searched
  bool lower_bound = false;  ///< the search asks the lower end of top1's 95 % interval, not its value
};

/// E::bad_option where choices contradict each other: before any work.
void check_choice(const JudgeChoice& choice);

struct JudgedModel {
  QuantizedModel made;
  std::optional<Search> search;
  std::optional<Agreement> agreement;
  std::optional<Metric> metric;
  double seconds = 0;  ///< until the model was made, search included
};

/// Samples of calibration choose ranges and, with `max_drop`, modules; `judging` judges alone (null: nothing does).
JudgedModel quantize_and_judge(const Graph& model, const Samples& calibration, const Samples* judging,
                               const QuantizeOptions& options, const JudgeChoice& choice);

/// report_json() with "search" and "metric".
nlohmann::ordered_json report_json(const JudgedModel& judged, const QuantizeOptions& options);

}  // namespace opfuse::quantization
