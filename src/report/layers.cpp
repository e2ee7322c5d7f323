// Layers: every line goes from a layer to a later one.
//
// Boxes are taken as their predecessors are done; where a cycle holds all of them, the first one goes ahead, and lines
// that then lead back count as leading forward. Layer = longest path; a box with more readers than operands moves down
// to its readers, so that constants' computations stand beside what reads them.
#include "report/layers.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace opfuse::report {
namespace {

using Neighbours = std::vector<std::vector<int>>;

/// Position of each box in a topological order, cycles broken at the first box that waits.
std::vector<int> positions(const Drawing& d) {
  const size_t count = d.boxes.size();
  Neighbours next(count);
  std::vector<int> waiting(count, 0), position(count, -1);
  for (const Line& line : d.lines)
    if (line.from != line.to)
      next[static_cast<size_t>(line.from)].push_back(line.to), ++waiting[static_cast<size_t>(line.to)];
  std::set<int> ready, open;
  for (size_t i = 0; i < count; ++i) (waiting[i] == 0 ? ready : open).insert(static_cast<int>(i));
  for (int at = 0; at < static_cast<int>(count); ++at) {
    std::set<int>& from = ready.empty() ? open : ready;
    const int box = *from.begin();
    from.erase(from.begin());
    position[static_cast<size_t>(box)] = at;
    for (int reader : next[static_cast<size_t>(box)])
      if (--waiting[static_cast<size_t>(reader)] == 0 && open.erase(reader)) ready.insert(reader);
  }
  return position;
}

std::vector<int> layers_of(size_t count, const std::vector<std::pair<int, int>>& lines,
                           const std::vector<int>& position) {
  std::vector<int> order(count), layer(count, 0);
  for (size_t i = 0; i < count; ++i) order[static_cast<size_t>(position[i])] = static_cast<int>(i);
  Neighbours up(count), down(count);
  for (const auto& [from, to] : lines) {
    down[static_cast<size_t>(from)].push_back(to);
    up[static_cast<size_t>(to)].push_back(from);
  }
  for (int box : order)
    for (int before : up[static_cast<size_t>(box)])
      layer[static_cast<size_t>(box)] =
          std::max(layer[static_cast<size_t>(box)], layer[static_cast<size_t>(before)] + 1);
  for (auto box = order.rbegin(); box != order.rend(); ++box) {
    const auto at = static_cast<size_t>(*box);
    if (down[at].empty() || up[at].size() >= down[at].size()) continue;
    int least = layer[static_cast<size_t>(down[at][0])];
    for (int reader : down[at]) least = std::min(least, layer[static_cast<size_t>(reader)]);
    layer[at] = std::max(layer[at], least - 1);
  }
  return layer;
}

/// Which boxes' lines get bends: those with the shortest way, until there are kMostBends.
std::vector<bool> routed(size_t count, const std::vector<std::pair<int, int>>& lines, const std::vector<int>& layer) {
  std::vector<int> longest(count, 0);
  for (const auto& [from, to] : lines) {
    int& length = longest[static_cast<size_t>(from)];
    length = std::max(length, layer[static_cast<size_t>(to)] - layer[static_cast<size_t>(from)] - 1);
  }
  std::vector<int> by_length(count);
  for (size_t i = 0; i < count; ++i) by_length[i] = static_cast<int>(i);
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](int a, int b) { return longest[static_cast<size_t>(a)] < longest[static_cast<size_t>(b)]; });
  std::vector<bool> bends(count, false);
  int total = 0;
  for (int box : by_length)
    if ((total += longest[static_cast<size_t>(box)]) <= kMostBends) bends[static_cast<size_t>(box)] = true;
  return bends;
}

}  // namespace

Layers make_layers(const Drawing& d) {
  const size_t count = d.boxes.size();
  const std::vector<int> position = positions(d);
  std::vector<std::pair<int, int>> lines;  // from the upper end to the lower
  for (const Line& line : d.lines) {
    const bool forward = position[static_cast<size_t>(line.from)] < position[static_cast<size_t>(line.to)];
    if (line.from != line.to) lines.push_back(forward ? std::pair(line.from, line.to) : std::pair(line.to, line.from));
  }
  const std::vector<int> layer = layers_of(count, lines, position);
  const std::vector<bool> bends = routed(count, lines, layer);
  Layers result;
  result.items.resize(count);
  for (size_t i = 0; i < count; ++i) result.items[i] = {static_cast<int>(i), layer[i], d.boxes[i].w, 0, {}, {}};
  std::map<std::pair<int, int>, int> bend_of;  // box and layer -> item
  const auto join = [&](int a, int b) {
    std::vector<int>& down = result.items[static_cast<size_t>(a)].down;
    if (std::find(down.begin(), down.end(), b) != down.end()) return;
    down.push_back(b);
    result.items[static_cast<size_t>(b)].up.push_back(a);
  };
  size_t next = 0;
  for (const Line& line : d.lines) {
    std::vector<int>& route = result.routes.emplace_back();
    if (line.from == line.to) continue;
    const auto [from, to] = lines[next++];
    if (!bends[static_cast<size_t>(from)]) continue;
    route.push_back(from);
    for (int l = layer[static_cast<size_t>(from)] + 1; l < layer[static_cast<size_t>(to)]; ++l) {
      const auto [at, fresh] = bend_of.emplace(std::pair(from, l), static_cast<int>(result.items.size()));
      if (fresh) result.items.push_back({-1, l, 0, 0, {}, {}});
      join(route.back(), at->second);
      route.push_back(at->second);
    }
    join(route.back(), to);
    route.push_back(to);
  }
  int last = -1;
  for (const Item& item : result.items) last = std::max(last, item.layer);
  result.order.resize(static_cast<size_t>(last + 1));
  for (size_t i = 0; i < result.items.size(); ++i)
    result.order[static_cast<size_t>(result.items[i].layer)].push_back(static_cast<int>(i));
  return result;
}

}  // namespace opfuse::report
