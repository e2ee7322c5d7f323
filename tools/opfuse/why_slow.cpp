// Predictions are those of planning, of one core: `opfuse profile` measures.
//     time lost to a launch's parts = predicted time but for starting / threads * (1 / share - 1)
#include "why_slow.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "console.hpp"
#include "fusion/reasons.hpp"

namespace opfuse::cli {
namespace {

constexpr size_t kNeighboursShown = 3;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Edges that leave or enter the launch and are two launches or a copy.
std::string neighbours_of(const Launch& launch, const FusionPlan& plan) {
  std::string text;
  size_t shown = 0;
  for (const EdgeVerdict& e : plan.edges) {
    const bool apart = e.executed == kTwoLaunches || e.executed == kCopy;
    if (!apart || has(launch.sources, e.producer) == has(launch.sources, e.consumer)) continue;
    if (++shown > kNeighboursShown) continue;
    text += fmt::format("  apart: \"{}\" -> \"{}\", {}", e.producer, e.consumer, e.decline.code);
    if (e.price && e.price->joined)
      text += fmt::format(", {:.1f} us as one launch instead of {:.1f} us", e.price->joined->microseconds,
                          e.price->apart.microseconds);
    const std::string change = change_for(e);
    text += change == kNoChangeFlips ? "\n" : "; to join them: " + change + "\n";
  }
  if (shown > kNeighboursShown) text += fmt::format("  apart: {} edges more\n", shown - kNeighboursShown);
  return text;
}

}  // namespace

std::string why_slow_text(const Compilation& compilation, size_t most) {
  const Program& program = compilation.program;
  const std::vector<LaunchPrediction> times = predict_launches(program, compilation.target);
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times[a].microseconds > times[b].microseconds; });
  double sum = 0;
  for (const LaunchPrediction& t : times) sum += t.microseconds;
  std::string text =
      fmt::format("{} launches, predicted {:.1f} us of one core; opfuse profile measures them\n", times.size(), sum);
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    const LaunchPrediction& t = times[order[i]];
    const Launch& launch = program.launches[order[i]];
    if (launch.reference) continue;
    text += fmt::format("SLOW     {}   {:.1f} us, {}, bound by {}\n", launch.name, t.microseconds,
                        percent(sum > 0 ? t.microseconds / sum : 0), t.bound());
    text += fmt::format("  instructions {:.1f} us, memory {:.1f} us ({}), launch {:.1f} us\n", t.instructions, t.memory,
                        human_bytes(static_cast<double>(t.bytes)), t.start);
    text += neighbours_of(launch, compilation.plan);
  }
  return text;
}

Json launches_json(const Compilation& compilation) {
  Json all = Json::array();
  const std::vector<LaunchPrediction> times = predict_launches(compilation.program, compilation.target);
  for (size_t i = 0; i < times.size(); ++i) {
    const Launch& launch = compilation.program.launches[i];
    Json row{{"name", launch.name}, {"sources", launch.sources}};
    if (!launch.reference)
      row.update({{"predicted_us", times[i].microseconds}, {"bound", times[i].bound()}, {"bytes", times[i].bytes}});
    all.push_back(std::move(row));
  }
  return all;
}

Balance balance_on(Compilation& compilation, int threads) {
  compilation.run_to(Milestone::built);
  const std::vector<LaunchPrediction> times = predict_launches(compilation.program, compilation.target);
  std::vector<int64_t> parts;
  Balance balance;
  for (size_t i = 0; i < compilation.artifact.launches.size(); ++i) {
    const ArtifactLaunch& launch = compilation.artifact.launches[i];
    parts.push_back(launch.parts.constant().value_or(1));
    const double share = balance_of(parts[i], threads);
    const double lost = i < times.size() ? times[i].shared_microseconds() / threads * (1 / share - 1) : 0;
    balance.worst.push_back({launch.name, parts[i], share, lost});
  }
  balance.share = predicted_balance(times, parts, threads);
  std::stable_sort(balance.worst.begin(), balance.worst.end(), [](const Balance::Launch& a, const Balance::Launch& b) {
    return a.lost_microseconds > b.lost_microseconds;
  });
  return balance;
}

std::string text_of(const Balance& balance, int threads, size_t most) {
  std::string text = fmt::format("BALANCE  {} threads: predicted {} of ideal\n", threads, percent(balance.share));
  for (size_t i = 0; i < std::min(most, balance.worst.size()); ++i) {
    const Balance::Launch& l = balance.worst[i];
    if (l.lost_microseconds <= 0) break;
    text += fmt::format("  {}: {} part{}, {} of ideal, {:.1f} us lost\n", l.name, l.parts, l.parts == 1 ? "" : "s",
                        percent(l.share), l.lost_microseconds);
  }
  return text;
}

Json json_of(const Balance& balance, int threads) {
  Json launches = Json::array();
  for (const Balance::Launch& l : balance.worst)
    launches.push_back(
        {{"name", l.name}, {"parts", l.parts}, {"share_of_ideal", l.share}, {"lost_us", l.lost_microseconds}});
  return {{"threads", threads}, {"share_of_ideal", balance.share}, {"launches", std::move(launches)}};
}

}  // namespace opfuse::cli
