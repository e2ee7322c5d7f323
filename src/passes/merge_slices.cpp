// A slice that only slices read:
//     a = slice(x, rows 0::2)   y = slice(a, columns 0::2)   z = slice(a, columns 1::2)
//   = y = slice(x, rows 0::2, columns 0::2)                  z = slice(x, rows 0::2, columns 1::2)
// a isn't stored: the patches that Swin and PVT merge. Where y is one range of a's memory it costs nothing as it
// is, and a stays: several such readers share one copy.
#include <algorithm>

#include "ir/outline.hpp"
#include "ops/slice.hpp"
#include "ops/slice_ranges.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

/// What `outer` takes of what `inner` takes of an axis of `size`; empty where nothing is left.
std::optional<SliceRange> within(const SliceRange& outer, const SliceRange& inner, int64_t size) {
  const SliceAxis a = slice_axis(inner.start, inner.end, inner.step, size);
  const SliceAxis b = slice_axis(outer.start, outer.end, outer.step, a.count);
  if (b.count == 0) return std::nullopt;
  const int64_t step = b.count == 1 ? 1 : a.step * b.step, start = a.start + b.start * a.step;
  const int64_t end = start + b.count * step;
  return SliceRange{start, end < 0 ? end - size : end,
                    step};  // before the first element: counted from the end, and beyond
}

/// SliceRanges of x for slice(slice(x, inner), outer).
std::optional<SliceRanges> merged(const SliceRanges& inner, const SliceRanges& outer, const Shape& x) {
  SliceRanges both = inner;
  for (const auto& [axis, range] : outer) {
    if (!inner.contains(axis)) {
      both[axis] = range;  // positions in an axis that the inner slice leaves alone, of open size too
      continue;
    }
    if (!x[axis].is_constant()) return std::nullopt;
    const auto one = within(range, inner.at(axis), x[axis].value());
    if (!one) return std::nullopt;
    both[axis] = *one;
  }
  return both;
}

/// One range of memory: steps of 1 along one axis, and nothing but extents of 1 in front of it.
bool is_one_range(const Node& slice, const SliceRanges& ranges) {
  const Shape& x = slice.input(0)->type.shape;
  if (ranges.size() != 1 || ranges.begin()->second.step != 1) return false;
  return std::all_of(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(ranges.begin()->first),
                     [](const Dim& d) { return d == Dim(1); });
}

/// Of each reader of `inner`; empty unless all of them merge.
std::vector<SliceRanges> merged_readers(const Graph& graph, const Node& inner) {
  const auto of_inner = slice_ranges(inner);
  std::vector<SliceRanges> all;
  if (!of_inner || graph.is_output(inner.output())) return {};
  for (const Use& use : inner.output()->uses) {
    if (!use.node->is("slice") || use.index != 0) return {};
    const auto outer = slice_ranges(*use.node);
    if (!outer || is_one_range(*use.node, *outer)) return {};
    const auto both = merged(*of_inner, *outer, inner.input(0)->type.shape);
    if (!both) return {};
    all.push_back(*both);
  }
  return all;
}

void replace(Graph& graph, Node* outer, const Node& inner, const SliceRanges& ranges) {
  std::vector<int64_t> starts, ends, axes, steps;
  for (const auto& [axis, range] : ranges) {
    starts.push_back(range.start), ends.push_back(range.end), steps.push_back(range.step);
    axes.push_back(static_cast<int64_t>(axis));
  }
  std::vector<Value*> operands{inner.input(0)};
  for (const auto* list : {&starts, &ends, &axes, &steps})
    operands.push_back(graph.add_constant(Tensor::from_i64(*list)));
  std::vector<Source> sources = inner.sources;
  sources.insert(sources.end(), outer->sources.begin(), outer->sources.end());
  Node* made = graph.add_node(outer->op, AttrMap{}, operands, 1, std::move(sources), outer);
  take_over(graph, outer->output(), made->output());
  graph.erase(outer);
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  std::vector<Node*> nodes = graph.nodes();
  std::reverse(nodes.begin(), nodes.end());  // readers first: those erased have been visited
  for (Node* node : nodes) {
    if (!node->is("slice") || node->output()->uses.empty()) continue;
    const std::vector<SliceRanges> readers = merged_readers(graph, *node);
    if (readers.empty()) continue;
    const std::vector<Use> uses = node->output()->uses;
    for (size_t i = 0; i < uses.size(); ++i) replace(graph, uses[i].node, *node, readers[i]);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace

Pass merge_slices() { return {"merge-slices", "A slice that only slices read is a part of each of them.", run, {}}; }

}  // namespace opfuse
