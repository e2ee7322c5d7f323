// Coordinates. Within a layer x minimises sum w_i (x_i - wish_i)^2 subject to the order and the gaps: with the gaps
// subtracted that is isotonic regression, solved exactly by pooling neighbours that violate the order. Wishes are the
// centres of neighbours, first of those above, then of those below, in turns; bends weigh more, so long lines are
// straight.
#include <algorithm>

#include "report/layers.hpp"

namespace opfuse::report {
namespace {

constexpr int kRounds = 6;
constexpr double kBendWeight = 8, kMixedWeight = 2;

struct Pool {
  double weight = 0, sum = 0;
  size_t count = 0;
  double mean() const { return sum / weight; }
};

void place_layer(Layers& layers, const std::vector<int>& layer, const Spacing& spacing, bool above, bool below) {
  std::vector<double> offset(layer.size(), 0);
  std::vector<Pool> pools;
  for (size_t i = 0; i < layer.size(); ++i) {
    const Item& item = layers.items[static_cast<size_t>(layer[i])];
    if (i > 0)
      offset[i] =
          offset[i - 1] + spacing.between + (item.width + layers.items[static_cast<size_t>(layer[i - 1])].width) / 2;
    Pool pool{0, 0, 1};
    const auto wish = [&](const std::vector<int>& near) {
      for (int other : near) {
        const Item& o = layers.items[static_cast<size_t>(other)];
        const double weight = item.box < 0 && o.box < 0 ? kBendWeight : item.box < 0 || o.box < 0 ? kMixedWeight : 1;
        pool.weight += weight, pool.sum += weight * (o.x - offset[i]);
      }
    };
    if (above) wish(item.up);
    if (below) wish(item.down);
    if (pool.weight == 0) pool = {1e-3, 1e-3 * (item.x - offset[i]), 1};
    pools.push_back(pool);
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& into = pools.back();
      into = {into.weight + last.weight, into.sum + last.sum, into.count + last.count};
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools)
    for (size_t k = 0; k < pool.count; ++k, ++i)
      layers.items[static_cast<size_t>(layer[i])].x = pool.mean() + offset[i];
}

}  // namespace

void place_items(Layers& layers, const Spacing& spacing) {
  for (const std::vector<int>& layer : layers.order) place_layer(layers, layer, spacing, true, false);
  const size_t count = layers.order.size();
  for (int round = 0; round < kRounds; ++round) {
    const bool last = round + 1 == kRounds;
    for (size_t l = count; l-- > 0;) place_layer(layers, layers.order[l], spacing, last, true);
    for (size_t l = 0; l < count; ++l) place_layer(layers, layers.order[l], spacing, true, last);
  }
}

void lay_out(Drawing& d, const Spacing& spacing) {
  Layers layers = make_layers(d);
  order_layers(layers);
  place_items(layers, spacing);
  double left = 0, right = 0, y = spacing.margin;
  for (const Item& item : layers.items) left = std::min(left, item.x - item.width / 2);
  std::vector<double> top(layers.order.size()), bottom(layers.order.size());
  for (size_t l = 0; l < layers.order.size(); ++l) {
    double height = 0;
    for (int i : layers.order[l])
      if (const int box = layers.items[static_cast<size_t>(i)].box; box >= 0)
        height = std::max(height, d.boxes[static_cast<size_t>(box)].h);
    top[l] = y, bottom[l] = y + height;
    y += height + spacing.layers;
  }
  for (Item& item : layers.items) {
    item.x += spacing.margin - left;
    right = std::max(right, item.x + item.width / 2);
    if (item.box < 0) continue;
    Box& box = d.boxes[static_cast<size_t>(item.box)];
    box.x = item.x - box.w / 2;
    box.y = (top[static_cast<size_t>(item.layer)] + bottom[static_cast<size_t>(item.layer)] - box.h) / 2;
  }
  d.width = right + spacing.margin,
  d.height = layers.order.empty() ? 2 * spacing.margin : bottom.back() + spacing.margin;
  for (size_t i = 0; i < d.lines.size(); ++i) {
    Line& line = d.lines[i];
    const std::vector<int>& route = layers.routes[i];
    const bool up =
        layers.items[static_cast<size_t>(line.from)].layer > layers.items[static_cast<size_t>(line.to)].layer;
    const Box &a = d.boxes[static_cast<size_t>(line.from)], &b = d.boxes[static_cast<size_t>(line.to)];
    line.points = {{a.x + a.w / 2 + line.from_x, up ? a.y : a.y + a.h}};
    for (size_t k = 1; k + 1 < route.size(); ++k) {
      const Item& bend = layers.items[static_cast<size_t>(up ? route[route.size() - 1 - k] : route[k])];
      const double first = top[static_cast<size_t>(bend.layer)], last = bottom[static_cast<size_t>(bend.layer)];
      const auto add = [&](Point p) {  // a straight way needs no points between
        if (const size_t n = line.points.size(); n > 1 && line.points[n - 1].x == p.x && line.points[n - 2].x == p.x)
          line.points.pop_back();
        line.points.push_back(p);
      };
      add({bend.x, up ? last : first});
      add({bend.x, up ? first : last});
    }
    line.points.push_back({b.x + b.w / 2 + line.to_x, up ? b.y + b.h : b.y});
  }
}

}  // namespace opfuse::report
