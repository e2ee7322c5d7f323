#include "tune/choose_within.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse {
namespace {

constexpr int64_t kSteps = 2000;

const SizedOption& fastest(const std::vector<SizedOption>& options) {
  return *std::min_element(options.begin(), options.end(),
                           [](const auto& a, const auto& b) { return a.cost < b.cost; });
}

}  // namespace

std::vector<size_t> choose_within(const std::vector<std::vector<SizedOption>>& layers, int64_t room) {
  std::vector<size_t> chosen;
  int64_t bytes = 0;
  for (const auto& options : layers) {
    chosen.push_back(fastest(options).number);
    bytes += std::max<int64_t>(0, fastest(options).bytes);
  }
  if (bytes <= room) return chosen;
  // best[s]: the least cost of the layers so far in s steps; taken[layer][s]: the option that it ends with
  const int64_t step = std::max<int64_t>(1, room / kSteps);
  const auto last = static_cast<size_t>(std::max<int64_t>(0, room) / step);
  const auto steps_of = [&](const SizedOption& o) {
    return static_cast<size_t>((std::max<int64_t>(0, o.bytes) + step - 1) / step);
  };
  std::vector<double> best(last + 1, 0);
  std::vector<std::vector<size_t>> taken;
  for (const auto& options : layers) {
    std::vector<double> next(last + 1, INFINITY);
    taken.emplace_back(last + 1, 0);
    for (size_t s = 0; s <= last; ++s)
      for (size_t i = 0; i < options.size(); ++i)
        if (const size_t size = steps_of(options[i]); size <= s && best[s - size] + options[i].cost < next[s]) {
          next[s] = best[s - size] + options[i].cost;
          taken.back()[s] = i;
        }
    best = std::move(next);
  }
  for (size_t l = layers.size(), s = last; l-- > 0;) {
    const SizedOption& option = layers[l][taken[l][s]];
    chosen[l] = option.number;
    s -= std::min(s, steps_of(option));
  }
  return chosen;
}

}  // namespace opfuse
