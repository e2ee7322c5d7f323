// The cost model's choices against times measured in network order (bench/algorithm_loss.py --record): what it loses
// against the fastest algorithm of every layer.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "cpu/algorithms.hpp"
#include "driver/pipeline.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {
namespace {

constexpr double kMostLoss = 0.05;
constexpr int64_t kNoBound = int64_t{1} << 50;

using Times = std::map<std::string, double>;  ///< algorithm -> ms

struct Recorded {
  std::string model;
  int batch = 1, threads = 1;
  std::map<std::string, Times> layers{};  ///< by node
};

std::vector<Recorded> read_recorded() {
  std::ifstream file(OPFUSE_SOURCE_DIR "/bench/algorithm_times.txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    Recorded r;
    std::string node, time;
    words >> r.model >> r.batch >> r.threads >> node;
    if (all.empty() || all.back().model != r.model || all.back().batch != r.batch || all.back().threads != r.threads)
      all.push_back(r);
    for (const std::string& name : algorithm_names())
      if (words >> time && time != "-") all.back().layers[node][name] = std::stod(time);
  }
  return all;
}

/// The caches of the machine that the times are from, whichever this one has.
TargetInfo measured_target() {
  TargetInfo target = parse_target("cpu:avx512");
  target.l1_bytes = 48 << 10;
  target.l2_bytes = 1 << 20;
  target.l3_bytes = 32 << 20;
  return target;
}

Program lower(const Graph& graph, int threads, std::optional<int64_t> bound) {
  AlgorithmRequest request;
  request.threads = threads;
  request.max_weight_growth = bound;
  return lower_to_program(graph, measured_target(), {false, request});
}

struct Layer {
  const Algorithm* chosen;
  const Times* times;
};

std::vector<Layer> layers_of(const Program& program, const Recorded& recorded) {
  std::vector<Layer> layers;
  for (const Algorithm& a : program.algorithms) {
    const auto& sources = program.launches[static_cast<size_t>(a.launch)].sources;
    const auto known = recorded.layers.find(sources.empty() ? "" : sources[0]);
    if (known != recorded.layers.end()) layers.push_back({&a, &known->second});
  }
  return layers;
}

double time_of(const std::vector<Layer>& layers) {
  double ms = 0;
  for (const Layer& layer : layers) ms += layer.times->at(layer.chosen->name);
  return ms;
}

/// The least time of a choice whose weights grow by at most `bound`, in steps of 0.1 MB.
double fastest_within(const std::vector<Layer>& layers, int64_t bound) {
  constexpr int64_t kGrain = 100'000;
  std::vector<double> best(static_cast<size_t>(std::min<int64_t>(bound / kGrain + 1, 20'000)), 0);
  for (const Layer& layer : layers)
    for (size_t at = best.size(); at-- > 0;) {
      double least = INFINITY;
      for (const AlgorithmCost& cost : layer.chosen->costs) {
        const auto size = static_cast<size_t>(std::max<int64_t>(0, (cost.weight_growth + kGrain - 1) / kGrain));
        if (size <= at) least = std::min(least, best[at - size] + layer.times->at(cost.name));
      }
      best[at] = least;
    }
  return best.back();
}

TEST(AlgorithmLoss, TheModelsChoicesLoseAtMostFivePercent) {
  const std::vector<Recorded> all = read_recorded();
  ASSERT_GE(all.size(), 12U);
  for (const Recorded& recorded : all) {
    const std::string name =
        recorded.model + " batch " + std::to_string(recorded.batch) + " threads " + std::to_string(recorded.threads);
    Graph graph = build_zoo(recorded.model, {.batch = recorded.batch});
    prepare(graph, {}, nullptr);
    const Graph fused = apply(graph, plan_graph(graph, measured_target(), {}));
    const Program free = lower(fused, recorded.threads, kNoBound);
    const std::vector<Layer> layers = layers_of(free, recorded);
    ASSERT_EQ(layers.size(), recorded.layers.size()) << name << ": record the times again";
    EXPECT_LE(time_of(layers), fastest_within(layers, kNoBound) * (1 + kMostLoss)) << name;
    const Program bounded = lower(fused, recorded.threads, std::nullopt);
    const std::vector<Layer> within = layers_of(bounded, recorded);
    EXPECT_LE(time_of(within), fastest_within(within, default_weight_growth(bounded)) * (1 + kMostLoss)) << name;
  }
}

TEST(AlgorithmLoss, TheRecordedTimesTellChoicesApart) {
  int compared = 0;
  for (const Recorded& recorded : read_recorded()) {
    if (recorded.model != "resnet50" || recorded.batch != 1) continue;
    ++compared;
    double always = 0, best = 0;
    for (const auto& [node, times] : recorded.layers) {
      always += times.at("f4");
      double least = INFINITY;
      for (const auto& [name, ms] : times) least = std::min(least, ms);
      best += least;
    }
    EXPECT_GT(always, best * (1 + kMostLoss)) << "the fewest multiplications are not the least time";
  }
  EXPECT_GT(compared, 0) << "no record of resnet50 at batch 1";
}

}  // namespace
}  // namespace opfuse
