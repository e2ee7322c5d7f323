// A slice that only slices read:
//     a = slice(x, rows 0::2)   y = slice(a, columns 0::2)   z = slice(a, columns 1::2)
//   = y = slice(x, rows 0::2, columns 0::2)                  z = slice(x, rows 0::2, columns 1::2)
// a isn't stored: the patches that Swin and PVT merge. Not where y is one range of a's memory, which costs nothing as
// it is: with several such readers a is copied once.
#include <algorithm>
#include <map>

#include "ir/outline.hpp"
#include "ops/checks.hpp"
#include "ops/slice.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

struct Range {
  int64_t start = 0, end = 0, step = 1;
};
using Ranges = std::map<size_t, Range>;  // by axis

/// Nothing where a position is computed or the rank is open.
std::optional<Ranges> ranges_of(const Node& slice) {
  const Shape& x = slice.input(0)->type.shape;
  const auto& attrs = slice.as<Slice>();
  const auto numbers = [&](size_t i, std::vector<int64_t> otherwise) -> std::optional<std::vector<int64_t>> {
    const Value* v = slice.input(i);
    if (v == nullptr) return otherwise;
    return v->is_constant() ? std::optional(v->constant->to_i64()) : std::nullopt;
  };
  const auto starts = numbers(1, attrs.starts), ends = numbers(2, attrs.ends), axes = numbers(3, attrs.axes),
             steps = numbers(4, {});
  if (!starts || !ends || !axes || !steps || !x.ranked) return std::nullopt;
  Ranges ranges;
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = axes->empty() ? i : normalize_axis((*axes)[i], x.rank());
    ranges[axis] = {(*starts)[i], (*ends)[i], steps->empty() ? 1 : (*steps)[i]};
  }
  return ranges;
}

/// What `outer` takes of what `inner` takes of an axis of `size`. Nothing where that is no element.
std::optional<Range> within(const Range& outer, const Range& inner, int64_t size) {
  const SliceAxis a = slice_axis(inner.start, inner.end, inner.step, size);
  const SliceAxis b = slice_axis(outer.start, outer.end, outer.step, a.count);
  if (b.count == 0) return std::nullopt;
  const int64_t step = b.count == 1 ? 1 : a.step * b.step, start = a.start + b.start * a.step;
  const int64_t end = start + b.count * step;
  return Range{start, end < 0 ? end - size : end, step};  // before the first element: counted from the end, and beyond
}

/// Ranges of x for slice(slice(x, inner), outer).
std::optional<Ranges> merged(const Ranges& inner, const Ranges& outer, const Shape& x) {
  Ranges both = inner;
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
bool is_one_range(const Node& slice, const Ranges& ranges) {
  const Shape& x = slice.input(0)->type.shape;
  if (ranges.size() != 1 || ranges.begin()->second.step != 1) return false;
  return std::all_of(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(ranges.begin()->first),
                     [](const Dim& d) { return d == Dim(1); });
}

/// Of each reader of `inner`; empty unless all of them merge.
std::vector<Ranges> merged_readers(const Graph& graph, const Node& inner) {
  const auto of_inner = ranges_of(inner);
  std::vector<Ranges> all;
  if (!of_inner || graph.is_output(inner.output())) return {};
  for (const Use& use : inner.output()->uses) {
    if (!use.node->is("slice") || use.index != 0) return {};
    const auto outer = ranges_of(*use.node);
    if (!outer || is_one_range(*use.node, *outer)) return {};
    const auto both = merged(*of_inner, *outer, inner.input(0)->type.shape);
    if (!both) return {};
    all.push_back(*both);
  }
  return all;
}

void replace(Graph& graph, Node* outer, const Node& inner, const Ranges& ranges) {
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
    const std::vector<Ranges> readers = merged_readers(graph, *node);
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
