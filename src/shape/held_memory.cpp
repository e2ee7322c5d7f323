// A tree over the steps: a node has what was added to its whole range, and the highest sum below it.
//
//     step            0    1    2    3
//     held apart      a    a              a 4, b 2: 4 at the highest
//                               b    b
//     in one piece    ab   ab   ab   ab   6
#include "shape/held_memory.hpp"

#include <algorithm>

#include "fusion/grouping.hpp"
#include "match/movement.hpp"

namespace opfuse {

BytesAlive::BytesAlive(size_t steps) {
  while (leaves_ < steps) leaves_ *= 2;
  most_.assign(2 * leaves_, 0);
  own_.assign(2 * leaves_, 0);
}

void BytesAlive::add(size_t first, size_t last, int64_t bytes) { add(1, 0, leaves_ - 1, first, last, bytes); }

void BytesAlive::add(size_t node, size_t begin, size_t end, size_t first, size_t last, int64_t bytes) {
  if (last < begin || end < first) return;
  ++touched_;
  if (first <= begin && end <= last) {
    most_[node] += bytes;
    own_[node] += bytes;
    return;
  }
  const size_t middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, first, last, bytes);
  add(2 * node + 1, middle + 1, end, first, last, bytes);
  most_[node] = own_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

static const Value* root(const Value* v) {
  while (v->producer && moves_elements(*v->producer)) v = v->producer->input(0);
  return v;
}

HeldMemory::HeldMemory(const Graph& graph) : alive_(graph.nodes().size() + 1) {
  for (size_t at = 0; at < graph.nodes().size(); ++at) {
    const Node& node = *graph.nodes()[at];
    for (const Value* v : node.inputs) {
      if (!v || !v->producer) continue;
      Span& span = spans_[root(v)];  // inputs and outputs that are read live from the start
      span.last = at;
      span.bytes = value_bytes(*root(v), {});
    }
    if (moves_elements(node)) continue;
    for (const Value* v : node.outputs)
      if (!graph.is_output(v)) spans_[v] = {at, at, value_bytes(*v, {})};
  }
  for (const auto& [value, span] : spans_) add(span, 1);
}

void HeldMemory::hold(const Value* value) {
  const Span& own = spans_.at(value);
  if (pieces_.empty()) {
    pieces_.push_back({value, own});
    return;
  }
  const Span& before = pieces_.back().all;
  const Span all{std::min(before.first, own.first), std::max(before.last, own.last), before.bytes + own.bytes};
  add(own, -1);
  add(before, -1);
  add(all, 1);
  pieces_.push_back({value, all});
}

void HeldMemory::release_last() {
  const Held last = pieces_.back();
  pieces_.pop_back();
  if (pieces_.empty()) return;
  add(last.all, -1);
  add(pieces_.back().all, 1);
  add(spans_.at(last.value), 1);
}

void HeldMemory::release() {
  while (!pieces_.empty()) release_last();
}

}  // namespace opfuse
