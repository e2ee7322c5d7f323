// Dinic's algorithm. The source side is label 1: a cut arc source -> v is the cost of v being 0, a cut arc
// v -> sink the cost of v being 1. Vertices reachable from the source after the last phase are 1, which is
// the smallest source side, so ties go to label 0.
#include "program/min_cut.hpp"

#include <algorithm>
#include <limits>

namespace opfuse {

TwoLabels::TwoLabels(int vertices)
    : vertices_(vertices), source_(vertices), sink_(vertices + 1), arcs_(static_cast<size_t>(vertices) + 2) {}

void TwoLabels::connect(int from, int to, int64_t forward, int64_t backward) {
  auto &a = arcs_[static_cast<size_t>(from)], &b = arcs_[static_cast<size_t>(to)];
  a.push_back({to, forward, static_cast<int>(b.size())});
  b.push_back({from, backward, static_cast<int>(a.size()) - 1});
}

void TwoLabels::add_cost(int vertex, int label, int64_t cost) {
  if (label == 0)
    connect(source_, vertex, cost, 0);
  else
    connect(vertex, sink_, cost, 0);
}

void TwoLabels::add_edge(int a, int b, int64_t cost) {
  if (a != b) connect(a, b, cost, cost);
}

bool TwoLabels::layer() {
  level_.assign(arcs_.size(), -1);
  next_.assign(arcs_.size(), 0);
  std::vector<int> queue = {source_};
  level_[static_cast<size_t>(source_)] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (const Arc& arc : arcs_[static_cast<size_t>(queue[i])])
      if (arc.capacity > 0 && level_[static_cast<size_t>(arc.to)] < 0) {
        level_[static_cast<size_t>(arc.to)] = level_[static_cast<size_t>(queue[i])] + 1;
        queue.push_back(arc.to);
      }
  return level_[static_cast<size_t>(sink_)] >= 0;
}

int64_t TwoLabels::push(int vertex, int64_t amount) {
  if (vertex == sink_) return amount;
  auto& arcs = arcs_[static_cast<size_t>(vertex)];
  for (int& i = next_[static_cast<size_t>(vertex)]; i < static_cast<int>(arcs.size()); ++i) {
    Arc& arc = arcs[static_cast<size_t>(i)];
    if (arc.capacity <= 0 || level_[static_cast<size_t>(arc.to)] != level_[static_cast<size_t>(vertex)] + 1) continue;
    const int64_t sent = push(arc.to, std::min(amount, arc.capacity));
    if (sent == 0) continue;
    arc.capacity -= sent;
    arcs_[static_cast<size_t>(arc.to)][static_cast<size_t>(arc.reverse)].capacity += sent;
    return sent;
  }
  return 0;
}

std::vector<char> TwoLabels::solve() {
  while (layer())
    while (push(source_, std::numeric_limits<int64_t>::max()) > 0) {
    }
  std::vector<char> labels(static_cast<size_t>(vertices_));
  for (int v = 0; v < vertices_; ++v) labels[static_cast<size_t>(v)] = level_[static_cast<size_t>(v)] >= 0;
  return labels;
}

}  // namespace opfuse
