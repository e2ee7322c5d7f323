// Each layer's options form a curve of predicted time over bytes of weights; together they are chosen with the least
// time within the bound on growth.
#include "tune/choose_algorithms.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "cpu/algorithms.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/winograd/winograd_error.hpp"
#include "tensor/winograd_codes.hpp"
#include "tune/algorithm_wish.hpp"
#include "tune/choose_within.hpp"
#include "tune/own_weights.hpp"

namespace opfuse {
namespace {

constexpr double kForbidden = 1e15;  ///< cycles of what is only taken when nothing else may be
constexpr int64_t kNoBound = INT64_MAX / 2;

double median(std::vector<double> sample) {
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  return middle == sample.end() ? 0 : *middle;
}

struct Layer {
  size_t launch = 0;
  AlgorithmOptions options;
  std::vector<std::optional<WinogradError>> errors;  ///< by option, once probed
  std::vector<std::string> refused;                  ///< by option: why it may not be taken
  size_t chosen = 0, unbounded = 0;
  bool forced = false;
  std::string reason;

  const AlgorithmOption& option(size_t i) const { return options.options[i]; }
  size_t find(const std::string& name) const {  ///< 0 when there is no such option
    for (size_t i = 0; i < options.options.size(); ++i)
      if (option(i).name == name) return i;
    return 0;
  }
  int64_t growth(size_t i) const { return option(i).weight_bytes - option(0).weight_bytes; }
};

class Chooser {
 public:
  Chooser(Program& program, const TargetInfo& target, const AlgorithmRequest& request, const LaunchTimes& times)
      : program_(program), target_(target), request_(request), times_(times) {
    threads_ = request.threads > 0 ? request.threads : available_threads();
    only_ = of_convolutions(request.only);
    skip_ = of_convolutions(request.skip);
    for (const AlgorithmWish& wish : only_)
      if (request.exact && wish.name != "direct")
        throw fail(E::bad_option, "--exact and --algorithm {} exclude each other", wish.name);
  }

  void run() {
    for (size_t l = 0; l < program_.launches.size(); ++l) add_layer(l);
    check_wishes();
    if (request_.measure && has_choice() && !all_known()) measure();
    spend(kNoBound);
    for (Layer& layer : layers_) layer.unbounded = layer.chosen;
    const int64_t bound =
        request_.max_weight_growth.value_or(request_.least_memory ? 0 : default_weight_growth(program_));
    spend(bound);
    for (Layer& layer : layers_) record(layer, bound);
    note_remaining_direct();
    for (const Layer& layer : layers_)
      if (layer.chosen > 0) apply(program_, layer, layer.chosen);
    const std::string summary = algorithm_summary(program_);
    if (!summary.empty()) program_.notes.push_back(summary + gain());
  }

 private:
  Program& program_;
  const TargetInfo& target_;
  const AlgorithmRequest& request_;
  const LaunchTimes& times_;
  int64_t threads_ = 1;
  std::vector<AlgorithmWish> only_, skip_;
  std::vector<Layer> layers_;
  bool measured_ = false;            ///< options cost nanoseconds, not predicted cycles
  std::vector<double> exact_times_;  ///< measured, by launch, all direct; empty where none was run

  std::vector<ParamLayout> layouts_of(const Launch& launch) const {
    std::vector<ParamLayout> layouts;
    for (int b : launch.buffers) {
      const Buffer& buffer = program_.buffers[static_cast<size_t>(b)];
      layouts.push_back({buffer.layout, buffer.strides});
    }
    return layouts;
  }

  Buffer& weights_of(const Layer& layer) {
    const int index = program_.launches[layer.launch].buffers[static_cast<size_t>(layer.options.weights)];
    return program_.buffers[static_cast<size_t>(index)];
  }

  /// Sums of codes are exact or not computed that way.
  std::string bound_of(const Layer& layer, size_t i) {
    const WinogradTile tile = *winograd_tile(layer.option(i).name);
    return winograd::codes_bound(weights_of(layer).constant, tile.h, tile.w);
  }

  static std::vector<AlgorithmWish> of_convolutions(const std::vector<std::string>& texts) {
    std::vector<AlgorithmWish> wishes = parse_wishes(texts);
    std::erase_if(wishes, [](const AlgorithmWish& wish) { return wish.of_pairs(); });
    return wishes;
  }

  void add_layer(size_t index) {
    const Launch& launch = program_.launches[index];
    if (launch.reference || launch.schedule.skeleton == "intrinsic" || !is_convolution(launch.region)) return;
    Layer layer;
    layer.launch = index;
    layer.options = algorithm_options(launch.region, layouts_of(launch), launch.schedule, target_, threads_);
    layer.refused.resize(layer.options.options.size());
    layer.errors.resize(layer.options.options.size());
    constrain(layer, launch);
    layers_.push_back(std::move(layer));
  }

  void constrain(Layer& layer, const Launch& launch) {
    const auto& options = layer.options.options;
    for (size_t i = 1; i < options.size(); ++i) {
      if (layer.options.codes) layer.refused[i] = bound_of(layer, i);
      if (request_.exact && !layer.options.codes) layer.refused[i] = "--exact";
      if (weights_of(layer).quantised && !layer.options.codes) layer.refused[i] = "its weights are quantised";
      if (request_.workspace && options[i].scratch_bytes > *request_.workspace)
        layer.refused[i] =
            fmt::format("--workspace: {} needs {} bytes per thread", options[i].name, options[i].scratch_bytes);
    }
    for (AlgorithmWish& wish : skip_)
      if (wish.concerns(launch))
        for (size_t i = 0; i < options.size(); ++i)
          if (options[i].name == wish.name) layer.refused[i] = "--no-algorithm";
    for (AlgorithmWish& wish : only_) {
      if (!wish.concerns(launch)) continue;
      const auto at = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == wish.name; });
      if (at == options.end()) {
        if (!wish.node.empty() && wish.name != "direct")
          throw fail(E::bad_option, "--algorithm {}@{}: {}", wish.name, wish.node,
                     layer.options.refused.empty() ? "its extents do not fit that tile" : layer.options.refused)
              .node(launch.name)
              .hint("opfuse explain MODEL --node NAME says what may be chosen");
        continue;
      }
      const auto wanted = static_cast<size_t>(at - options.begin());
      if (!layer.refused[wanted].empty()) {
        if (wish.node.empty()) continue;  // everywhere it may
        throw fail(E::bad_option, "--algorithm {}@{} against {}", wish.name, wish.node, layer.refused[wanted])
            .node(launch.name)
            .hint("leave out one of the two");
      }
      layer.chosen = wanted;
      layer.forced = true;
      layer.reason = "--algorithm";
    }
  }

  /// Whether every option of every layer was measured before; their times replace predictions then.
  bool all_known() {
    if (!times_.known) return false;
    std::vector<std::vector<double>> known;
    for (const Layer& layer : layers_) {
      std::vector<double>& of_layer = known.emplace_back();
      for (const AlgorithmOption& option : layer.options.options) {
        const auto ns = times_.known(program_.launches[layer.launch], option.name);
        if (!ns) return false;
        of_layer.push_back(*ns);
      }
    }
    for (size_t l = 0; l < layers_.size(); ++l)
      for (size_t i = 0; i < known[l].size(); ++i) layers_[l].options.options[i].cycles = known[l][i];
    measured_ = true;
    return true;
  }

  /// The whole program once with each algorithm wherever it fits; the times of its launches replace predictions.
  void measure() {
    std::vector<Program> variants;
    for (const std::string& name : algorithm_names()) {
      variants.push_back(program_);
      for (Layer& layer : layers_)
        if (const size_t i = layer.find(name); i > 0) apply(variants.back(), layer, i);
    }
    const auto samples = times_.measure(variants, static_cast<int>(threads_));
    for (const std::vector<double>& launch : samples[0]) exact_times_.push_back(median(launch));
    measured_ = true;
    for (Layer& layer : layers_)
      for (size_t v = 0; v < samples.size(); ++v)
        for (AlgorithmOption& option : layer.options.options) {
          if (option.name != algorithm_names()[v]) continue;
          option.cycles = median(samples[v][layer.launch]);
          if (times_.learn) times_.learn(program_.launches[layer.launch], option.name, samples[v][layer.launch]);
        }
  }

  void check_wishes() const {
    for (const auto* list : {&only_, &skip_})
      for (const AlgorithmWish& wish : *list)
        if (!wish.used && !wish.node.empty())
          throw fail(E::unknown_name, "no convolution named '{}'", wish.node).hint("opfuse explain MODEL lists them");
  }

  /// Whether the weights allow option i; probed when it is first asked.
  bool accurate(Layer& layer, size_t i) {
    if (i == 0) return true;
    if (layer.options.codes) return true;
    if (!layer.errors[i])
      layer.errors[i] = probe_winograd_error(weights_of(layer).constant, *winograd_tile(layer.option(i).name));
    const WinogradError& error = *layer.errors[i];
    if (error.of_sum <= kWinogradErrorBound) return true;
    layer.refused[i] =
        fmt::format("{} has an error of {:.1e} of sum|w||x| on {}", layer.option(i).name, error.of_sum, error.worst);
    return layer.forced;
  }

  bool allowed(Layer& layer, size_t i) { return layer.refused[i].empty() && accurate(layer, i); }

  bool has_choice() const {
    return std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
      return std::count(layer.refused.begin(), layer.refused.end(), std::string()) > 1;
    });
  }

  /// Direct and what is worth its bytes, fewest bytes first; direct costs more than anything where it is forbidden.
  std::vector<SizedOption> worthwhile(Layer& layer) {
    std::vector<SizedOption> found, all;
    const bool leave = !layer.refused[0].empty();
    found.push_back({0, leave ? kForbidden : layer.option(0).cycles, 0});
    for (size_t i = 1; i < layer.options.options.size(); ++i)
      all.push_back({i, layer.option(i).cycles, layer.growth(i)});
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    for (const SizedOption& o : all)
      if (o.cost < found.back().cost * (1 - target_.kernels.algorithm_gain) && allowed(layer, o.number))
        found.push_back(o);
    return found;
  }

  void spend(int64_t room) {
    std::vector<std::vector<SizedOption>> options;
    for (Layer& layer : layers_) {
      if (layer.forced) {
        accurate(layer, layer.chosen);  // its error is reported
        options.push_back({{layer.chosen, 0, layer.growth(layer.chosen)}});
      } else if (layer.options.options.empty()) {
        options.push_back({{0, 0, 0}});
      } else {
        options.push_back(worthwhile(layer));
      }
    }
    for (const auto& layer : options)
      if (layer.size() == 1) room -= layer[0].bytes;
    for (auto& layer : options)
      if (layer.size() == 1) layer[0].bytes = 0;
    const std::vector<size_t> chosen = choose_within(options, room);
    for (size_t l = 0; l < layers_.size(); ++l) layers_[l].chosen = chosen[l];
  }

  void record(Layer& layer, int64_t bound) {
    Algorithm a;
    a.launch = static_cast<int>(layer.launch);
    a.name = layer.options.options.empty() ? "direct" : layer.option(layer.chosen).name;
    a.reason = layer.reason;
    if (layer.options.options.empty()) {
      a.reason = layer.options.refused;
    } else {
      if (const auto& error = layer.errors[layer.chosen]) a.error = error->of_max, a.error_of_sum = error->of_sum;
      a.predicted = layer.option(layer.chosen).cycles / layer.option(0).cycles;
      a.weight_growth = layer.growth(layer.chosen);
      for (size_t i = 0; i < layer.options.options.size(); ++i)
        a.costs.push_back({layer.option(i).name, layer.option(i).cycles, layer.growth(i)});
      if (layer.options.options.size() == 1)
        a.reason = layer.options.refused;
      else
        explain(layer, a, bound);
    }
    const std::string& name = program_.launches[layer.launch].name;
    if (layer.forced && a.error_of_sum > kWinogradErrorBound)
      program_.notes.push_back(fmt::format("--algorithm at {}: {}", name, layer.refused[layer.chosen]));
    if (a.name == "direct" && forbidden_direct(layer))
      program_.notes.push_back(
          fmt::format("--no-algorithm direct at {}: nothing else may be used: {}", name, a.reason));
    program_.algorithms.push_back(std::move(a));
  }

  /// What `--no-algorithm direct` without a node could not do.
  void note_remaining_direct() {
    const auto everywhere = [](const AlgorithmWish& wish) { return wish.name == "direct" && wish.node.empty(); };
    if (std::none_of(skip_.begin(), skip_.end(), everywhere)) return;
    const auto left = std::count_if(program_.algorithms.begin(), program_.algorithms.end(),
                                    [](const Algorithm& a) { return a.name == "direct"; });
    if (left)
      program_.notes.push_back(fmt::format("--no-algorithm direct: {} of {} convolutions allow nothing else", left,
                                           program_.algorithms.size()));
  }

  bool forbidden_direct(const Layer& layer) {
    const Launch& launch = program_.launches[layer.launch];
    return std::any_of(skip_.begin(), skip_.end(), [&](AlgorithmWish& wish) {
      return wish.name == "direct" && !wish.node.empty() && wish.concerns(launch);
    });
  }

  void explain(const Layer& layer, Algorithm& a, int64_t bound) const {
    if (layer.forced) return;
    if (layer.unbounded != layer.chosen) {
      a.bounded = true;
      a.reason = fmt::format("--max-weight-growth {}: {} would be faster", bound, layer.option(layer.unbounded).name);
      return;
    }
    size_t least = 0;
    for (size_t i = 1; i < layer.options.options.size(); ++i)
      if (layer.option(i).cycles < layer.option(least).cycles) least = i;
    if (least != layer.chosen && !layer.refused[least].empty()) {
      a.bounded = layer.refused[least].starts_with("--workspace");
      a.inexact = layer.errors[least] && layer.errors[least]->of_sum > kWinogradErrorBound;
      a.reason = layer.refused[least];
    } else {
      a.reason = layer.chosen == 0 ? fmt::format("{} fastest", known())
                                   : fmt::format("{} {:.0f} % of direct", known(), a.predicted * 100);
    }
  }

  static void apply(Program& program, const Layer& layer, size_t chosen) {
    Launch& launch = program.launches[layer.launch];
    const AlgorithmOption& option = layer.option(chosen);
    lay_out_weights(program, launch, static_cast<size_t>(layer.options.weights), *option.weights);
    launch.schedule = option.schedule;
  }

  const char* known() const { return measured_ ? "measured" : "predicted"; }

  /// What --exact would cost over the whole program, predicted or measured; nothing where only layers' times are known.
  std::string gain() const {
    if (measured_ && exact_times_.empty()) return "";
    double chosen = 0, exact = 0;
    std::map<size_t, const Layer*> of_launch;
    for (const Layer& layer : layers_)
      if (!layer.options.options.empty()) of_launch[layer.launch] = &layer;
    for (size_t l = 0; l < program_.launches.size(); ++l) {
      if (program_.launches[l].reference) continue;
      const auto it = of_launch.find(l);
      const double other =
          exact_times_.empty() ? roof_cycles(program_.launches[l].region, target_, threads_) * 1.1 : exact_times_[l];
      chosen += it == of_launch.end() ? other : it->second->option(it->second->chosen).cycles;
      const bool stays = it != of_launch.end() && it->second->options.codes;
      exact += it == of_launch.end() ? other : it->second->option(stays ? it->second->chosen : 0).cycles;
    }
    if (chosen <= 0 || exact <= chosen) return "";
    return fmt::format("; --exact: +{:.0f} % {}", (exact / chosen - 1) * 100, known());
  }
};

}  // namespace

void choose_algorithms(Program& program, const TargetInfo& target, const AlgorithmRequest& request,
                       const LaunchTimes& times) {
  Chooser(program, target, request, times).run();
}

std::string algorithm_summary(const Program& program) {
  std::map<std::string, int> counts;
  double error = 0;
  bool rounded = false;
  for (const Algorithm& a : program.algorithms) {
    if (a.name == "direct") continue;
    ++counts[a.name];
    error = std::max(error, a.error);
    rounded |= !sums_codes(program.launches[static_cast<size_t>(a.launch)].region);
  }
  if (counts.empty()) return "";
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    const WinogradTile tile = *winograd_tile(name);
    words.push_back(fmt::format("F({}x{}) in {}", tile.h, tile.w, count));
  }
  const std::string exactness =
      rounded ? fmt::format("largest error {:.1e} of max (probed)", error) : "sums of codes, exact";
  return fmt::format("Winograd {} of {} convolutions, {}", fmt::join(words, ", "), program.algorithms.size(),
                     exactness);
}

int64_t default_weight_growth(const Program& program) {
  int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers)
    if (buffer.kind == BufferKind::constant) bytes += static_cast<int64_t>(buffer.constant.bytes());
  return std::max<int64_t>(45'000'000, bytes * 2 / 5);
}

}  // namespace opfuse
