// Two contractions as one stage of two sums. Before:                          after:
//   stage 0: result(0) = sum x[m,k] A[k,n];  local = act(result(0))             result(0) = sum x[m,k] B[k,n]
//   stage 1: result(0) = sum x[m,k] B[k,n];  y = local[m,n] * result(0)         result(1) = sum x[m,k] A[k,n]
//                                                                               y = act(result(1)) * result(0)
#include <algorithm>

#include "region/index_map.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

bool is_sum_of_products(const Reduction& r) { return r.kind == ReduceKind::sum && r.value.op() == ExprOp::mul; }

bool mentions(const Expr& value, ExprOp op, const Stage& stage, int from) {
  bool found = false;
  value.visit([&](const Expr& e) {
    if (e.op() == op) found |= stage.reads[static_cast<size_t>(e.index())].stage == from;
  });
  return found;
}

/// Reads of `a` in `b`, added where there are none: the number in `b` of each.
std::vector<int> adopt_reads(Stage& b, const Stage& a) {
  std::vector<int> number;
  for (const Read& read : a.reads) {
    const auto at = std::find(b.reads.begin(), b.reads.end(), read);
    number.push_back(static_cast<int>(at - b.reads.begin()));
    if (at == b.reads.end()) b.reads.push_back(read);
  }
  return number;
}

/// An expression of `a` in a stage that has its reads as `number` says and its results from `first` on.
Expr moved(const Expr& value, const std::vector<int>& number, size_t first) {
  return value.map_leaves([&](const Expr& leaf) {
    const auto read = [&] { return number[static_cast<size_t>(leaf.index())]; };
    if (leaf.op() == ExprOp::read) return Expr::read(read(), leaf.dtype());
    if (leaf.op() == ExprOp::in_bounds) return Expr::in_bounds(read());
    if (leaf.op() == ExprOp::result) return Expr::result(static_cast<int>(first) + leaf.index(), leaf.dtype());
    return leaf;
  });
}

/// Only outputs of `b` read `a`, in place, and the two walk the same axes.
bool alike(const Region& region, int first, int second) {
  const Stage& a = region.stages[static_cast<size_t>(first)];
  const Stage& b = region.stages[static_cast<size_t>(second)];
  if (a.anchor != Anchor::contraction || b.anchor != Anchor::contraction) return false;
  if (a.domain != b.domain || a.reduce != b.reduce) return false;
  const auto local = [](const StageOutput& o) { return o.param < 0; };
  if (!std::all_of(a.outputs.begin(), a.outputs.end(), local)) return false;
  for (const Read& read : a.reads)
    if (has_dynamic(read.map)) return false;
  int readers = 0;
  for (const Stage& stage : region.stages)
    for (const Read& read : stage.reads) {
      if (read.stage != first) continue;
      if (&stage != &b || !(read.map == IndexMap::identity(a.domain.size()))) return false;
      ++readers;
    }
  const auto untouched = [&](const Reduction& r) { return !mentions(r.value, ExprOp::read, b, first); };
  const auto unguarded = [&](const StageOutput& o) { return !mentions(o.value, ExprOp::in_bounds, b, first); };
  return readers > 0 && std::all_of(b.reductions.begin(), b.reductions.end(), untouched) &&
         std::all_of(b.outputs.begin(), b.outputs.end(), unguarded);
}

/// A factor that all the products have; empty when there is none.
Expr common_factor(const std::vector<Reduction>& sums) {
  if (!std::all_of(sums.begin(), sums.end(), is_sum_of_products)) return {};
  for (const Expr& factor : sums[0].value.args()) {
    const auto has = [&](const Reduction& r) { return r.value.args()[0] == factor || r.value.args()[1] == factor; };
    if (std::all_of(sums.begin(), sums.end(), has)) return factor;
  }
  return {};
}

bool join(Region& region, int first, int second) {
  if (!alike(region, first, second)) return false;
  const Stage& a = region.stages[static_cast<size_t>(first)];
  Stage b = region.stages[static_cast<size_t>(second)];
  const std::vector<int> number = adopt_reads(b, a);
  const size_t sums = b.reductions.size();
  for (const Reduction& r : a.reductions) b.reductions.push_back({r.kind, moved(r.value, number, sums)});
  if (!common_factor(b.reductions)) return false;
  for (StageOutput& o : b.outputs)
    o.value = o.value.map_leaves([&](const Expr& leaf) {
      if (leaf.op() != ExprOp::read) return leaf;
      const Read& read = b.reads[static_cast<size_t>(leaf.index())];
      if (read.stage != first) return leaf;
      return moved(a.outputs[static_cast<size_t>(read.index)].value, number, sums);
    });
  region.stages[static_cast<size_t>(second)] = std::move(b);
  region.stages[static_cast<size_t>(first)].outputs.clear();  // prune takes it away
  return true;
}

}  // namespace

void join_sums(Region& region) {
  const auto count = static_cast<int>(region.stages.size());
  for (int second = 1; second < count; ++second)
    for (int first = 0; first < second; ++first) join(region, first, second);
}

}  // namespace opfuse
