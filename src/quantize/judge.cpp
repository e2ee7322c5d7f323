// The search sees samples of calibration; what judges chooses nothing.
#include "quantize/judge.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/stopwatch.hpp"
#include "quantize/report_json.hpp"

namespace opfuse::quantization {
namespace {

/// "1%" or "0.01".
double drop_of(std::string text) {
  const std::string given = text;
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  double drop = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), drop);
  if (error != std::errc{} || end != text.data() + text.size() || !(drop >= 0) || drop > 100)
    throw fail(E::bad_option, "--max-drop is a share such as 1% or 0.01, not '{}'", given);
  return percent ? drop / 100 : drop;
}

/// The lower end of a share's 95 % interval (Wilson's).
double lower_bound(int64_t hits, int64_t count) {
  constexpr double kZ = 1.96;
  const auto n = static_cast<double>(count);
  const double share = static_cast<double>(hits) / n, square = kZ * kZ / n;
  return (share + square / 2 - kZ * std::sqrt((share * (1 - share) + square / 4) / n)) / (1 + square);
}

/// Without one difference the bound is n / (n + z^2): fewer rows can hold no such drop.
double bound_of(const Agreement& agreement, double drop) {
  const OutputAgreement& first = agreement.outputs.front();
  const double most = lower_bound(first.rows, first.rows);
  if (most < 1 - drop)
    throw fail(E::bad_option, "{} rows cannot hold a drop of {:g} %: without any difference their bound is {:.2f} %",
               first.rows, 100 * drop, 100 * (1 - most))
        .hint("--compare-samples (and --calibrate) with more samples, a larger --max-drop, or no --lower-bound");
  return lower_bound(first.same_top, first.rows);
}

Search search_for(const Graph& graph, const Samples& samples, const QuantizeOptions& options, const JudgeChoice& choice,
                  QuantizedModel& made) {
  constexpr size_t kProbes = 4;
  const Samples some = some_of(samples, static_cast<size_t>(choice.compare_samples));
  const double drop = drop_of(choice.max_drop);
  ObservedModel reference(made.reference, {}, options.run);  // candidates' own compute the same
  std::optional<double> of_float;
  const auto metric = [&](const QuantizedModel& candidate) {
    const Agreement agreement = measure_outputs(reference, candidate.graph, some, options.run);
    const Metric m =
        measure_metric(choice.metric, candidate.reference, candidate.graph, some, agreement, options.run, of_float);
    of_float = m.of_float;
    return std::pair{choice.lower_bound ? bound_of(agreement, drop) : m.of_codes, m.of_float};
  };
  return search_modules(graph, some, options, drop, kProbes, metric, made);
}

}  // namespace

void check_choice(const JudgeChoice& choice) {
  if (choice.compare_samples < 0) throw fail(E::bad_option, "{} samples to compare", choice.compare_samples);
  if (!choice.metric.name.empty() && choice.metric.name.find_first_not_of(" \t") == std::string::npos)
    throw fail(E::bad_option, "the metric is blank").hint("sqnr, cosine, top1, or a command");
  if (choice.metric && choice.compare_samples == 0)
    throw fail(E::bad_option, "--metric needs samples to compare").hint("leave --compare-samples 0 out");
  if (choice.lower_bound && (choice.max_drop.empty() || choice.metric.score || choice.metric.name != "top1"))
    throw fail(E::bad_option, "--lower-bound is the bound of a share, for --max-drop with --metric top1")
        .hint("add them, or leave --lower-bound out");
  if (choice.max_drop.empty()) return;
  drop_of(choice.max_drop);
  if (!choice.metric) throw fail(E::bad_option, "--max-drop needs --metric").hint("for example --metric top1");
}

JudgedModel quantize_and_judge(const Graph& model, const Samples& calibration, const Samples* judging,
                               const QuantizeOptions& options, const JudgeChoice& choice) {
  check_choice(choice);
  JudgedModel judged;
  const Stopwatch watch;
  judged.made = quantize_graph(model, calibration, options);
  if (!choice.max_drop.empty() && !judged.made.placement.products.empty())
    judged.search = search_for(model, calibration, options, choice, judged.made);
  judged.seconds = watch.milliseconds() / 1000;
  if (!judging || choice.compare_samples == 0) return judged;
  const Samples some = some_of(*judging, static_cast<size_t>(choice.compare_samples));
  const QuantizedModel& made = judged.made;
  judged.agreement = measure_agreement(made.reference, made.graph, some, options.run);
  if (choice.metric)
    judged.metric = measure_metric(choice.metric, made.reference, made.graph, some, *judged.agreement, options.run);
  return judged;
}

nlohmann::ordered_json report_json(const JudgedModel& judged, const QuantizeOptions& options) {
  nlohmann::ordered_json out = report_json(judged.made, options, judged.agreement);
  if (judged.search) out["search"] = search_json(*judged.search);
  if (judged.metric)
    out["metric"] = {
        {"name", judged.metric->name}, {"float", judged.metric->of_float}, {"codes", judged.metric->of_codes}};
  return out;
}

}  // namespace opfuse::quantization
