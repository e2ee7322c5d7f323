// Order within layers: items stand at the mean place of their neighbours in the layer before (sweeping down) or after
// (sweeping up); of all sweeps the order with the fewest crossings stays. Crossings between two layers are the
// inversions of their lines, counted with a tree of partial sums.
#include <algorithm>
#include <cstdint>

#include "report/layers.hpp"

namespace opfuse::report {
namespace {

constexpr int kSweeps = 10;
constexpr int64_t kWork = 4'000'000;  ///< items in all sweeps together; at least two sweeps

std::vector<int> places(const Layers& layers) {
  std::vector<int> place(layers.items.size(), 0);
  for (const std::vector<int>& layer : layers.order)
    for (size_t i = 0; i < layer.size(); ++i) place[static_cast<size_t>(layer[i])] = static_cast<int>(i);
  return place;
}

int64_t crossings_below(const Layers& layers, size_t layer, const std::vector<int>& place) {
  const size_t width = layers.order[layer + 1].size();
  std::vector<int64_t> sums(width + 1, 0);
  int64_t crossings = 0, seen = 0;
  for (int item : layers.order[layer]) {
    const std::vector<int>& down = layers.items[static_cast<size_t>(item)].down;
    for (int to : down) {
      int64_t before = 0;
      for (size_t i = static_cast<size_t>(place[static_cast<size_t>(to)]) + 1; i > 0; i &= i - 1) before += sums[i];
      crossings += seen - before;
    }
    for (int to : down)
      for (size_t i = static_cast<size_t>(place[static_cast<size_t>(to)]) + 1; i <= width; i += i & (~i + 1)) ++sums[i];
    seen += static_cast<int64_t>(down.size());
  }
  return crossings;
}

int64_t crossings(const Layers& layers) {
  const std::vector<int> place = places(layers);
  int64_t sum = 0;
  for (size_t l = 0; l + 1 < layers.order.size(); ++l) sum += crossings_below(layers, l, place);
  return sum;
}

void sweep(Layers& layers, bool down) {
  std::vector<int> place = places(layers);
  std::vector<double> wish(layers.items.size(), 0);
  const size_t count = layers.order.size();
  for (size_t step = 1; step < count; ++step) {
    std::vector<int>& layer = layers.order[down ? step : count - 1 - step];
    for (int i : layer) {
      const Item& item = layers.items[static_cast<size_t>(i)];
      const std::vector<int>& near = down ? item.up : item.down;
      double sum = 0;
      for (int other : near) sum += place[static_cast<size_t>(other)];
      wish[static_cast<size_t>(i)] =
          near.empty() ? place[static_cast<size_t>(i)] : sum / static_cast<double>(near.size());
    }
    std::stable_sort(layer.begin(), layer.end(),
                     [&](int a, int b) { return wish[static_cast<size_t>(a)] < wish[static_cast<size_t>(b)]; });
    for (size_t i = 0; i < layer.size(); ++i) place[static_cast<size_t>(layer[i])] = static_cast<int>(i);
  }
}

}  // namespace

void order_layers(Layers& layers) {
  const auto size = std::max<int64_t>(1, static_cast<int64_t>(layers.items.size()));
  const int sweeps = static_cast<int>(std::clamp<int64_t>(kWork / size, 2, kSweeps));
  std::vector<std::vector<int>> best = layers.order;
  int64_t fewest = crossings(layers);
  for (int i = 0; i < sweeps && fewest > 0; ++i) {
    sweep(layers, i % 2 == 0);
    if (const int64_t now = crossings(layers); now < fewest) fewest = now, best = layers.order;
  }
  layers.order = std::move(best);
}

}  // namespace opfuse::report
