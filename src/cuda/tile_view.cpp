#include "cuda/tile_view.hpp"

#include <algorithm>

#include "cuda/skeletons.hpp"
#include "cuda/stage.hpp"
#include "region/dependence.hpp"
#include "region/single_stage.hpp"

namespace opfuse::cuda {
namespace {

/// The divisor that groups put on a domain axis, 0 when there is none or it cannot be split off.
int64_t group_divisor(const Stage& stage, int axis) {
  int64_t divisor = 0;
  for (const Read& r : stage.reads)
    for (const IndexExpr& d : r.map.dims)
      for (const IndexTerm& t : d.terms) {
        if (t.axis != axis) continue;
        if (!t.div.is_constant() || !(t.mod == Dim(0))) return 0;
        const int64_t div = t.div.value();
        if (div == 1) continue;
        if (divisor && divisor != div) return 0;
        divisor = div;
      }
  const auto extent = stage.domain[static_cast<size_t>(axis)].constant();
  return divisor > 0 && extent && *extent % divisor == 0 ? divisor : 0;
}

void split_terms(IndexMap& map, int axis, int64_t size) {
  for (IndexExpr& e : map.dims) {
    std::vector<IndexTerm> terms;
    for (IndexTerm t : e.terms) {
      if (t.axis < axis) {
        terms.push_back(t);
      } else if (t.axis > axis) {
        ++t.axis;
        terms.push_back(t);
      } else if (t.div == Dim(size)) {
        terms.push_back({t.coef, axis});
      } else {
        terms.push_back({t.coef * Dim(size), axis});
        terms.push_back({t.coef, axis + 1});
      }
    }
    e.terms = terms;
  }
}

Expr split_coords(const Expr& e, int axis, int64_t size) {
  if (!e) return e;
  return e.map_leaves([&](const Expr& leaf) {
    if (leaf.op() != ExprOp::coord || leaf.index() < axis) return leaf;
    if (leaf.index() > axis) return Expr::coord(leaf.index() + 1);
    const Expr outer = Expr::make(ExprOp::mul, {Expr::coord(axis), Expr::integer(DType::i64, size)});
    return Expr::make(ExprOp::add, {outer, Expr::coord(axis + 1)});
  });
}

void split_axis(Stage& stage, int axis, int64_t size) {
  for (Read& r : stage.reads) {
    split_terms(r.map, axis, size);
    for (IndexExpr& e : r.map.dims) e.dynamic = split_coords(e.dynamic, axis, size);
  }
  for (Reduction& r : stage.reductions) r.value = split_coords(r.value, axis, size);
  for (StageOutput& o : stage.outputs) {
    split_terms(o.map, axis, size);
    o.value = split_coords(o.value, axis, size);
  }
  const Dim whole = stage.domain[static_cast<size_t>(axis)];
  stage.domain[static_cast<size_t>(axis)] = floor_div(whole, Dim(size));
  stage.domain.insert(stage.domain.begin() + axis + 1, Dim(size));
}

}  // namespace

void split_groups(Region& region) {
  if (!is_single_stage(region) || region.stages[0].anchor != Anchor::contraction) return;
  Stage& stage = region.stages[0];
  for (int axis = 0; axis < static_cast<int>(stage.domain.size()); ++axis)
    if (const int64_t size = group_divisor(stage, axis)) return split_axis(stage, axis, size);
}

std::variant<TileView, std::string> view_tiles(const Region& region) {
  if (!is_single_stage(region)) return "more than one stage";
  const Stage& stage = region.stages[0];
  if (stage.anchor != Anchor::contraction) return "no contraction";
  if (stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum) return "not one sum";
  const Expr& product = stage.reductions[0].value;
  const DType dtype = product.dtype();
  if (product.op() != ExprOp::mul) return "not a sum of products";
  if (dtype != DType::f32 && !is_factor(dtype)) return "products are not computed in f32";
  TileView view;
  view.a = product.args()[0];
  view.b = product.args()[1];
  const std::set<int> in_a = axes_of(stage, view.a), in_b = axes_of(stage, view.b);
  const int domain = static_cast<int>(stage.domain.size());
  for (int axis = 0; axis < domain; ++axis) {
    const bool a = in_a.count(axis) > 0, b = in_b.count(axis) > 0;
    (a && b ? view.batch : b ? view.n : view.m).push_back(axis);
  }
  for (int axis = domain; axis < domain + static_cast<int>(stage.reduce.size()); ++axis) view.k.push_back(axis);
  return view;
}

}  // namespace opfuse::cuda
