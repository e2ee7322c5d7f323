// Recognition of attention on index maps and expressions. A stage that does not fit says why. Expressions may come from
// another library, whose nodes are its own: they are compared by structure.
#include "kernel/attention_view.hpp"

#include <cmath>
#include <map>
#include <set>

#include "region/dependence.hpp"

namespace opfuse {
namespace {

bool reads_stage(const Stage& stage, const Expr& e) {
  bool found = false;
  e.visit([&](const Expr& x) {
    if (x.op() == ExprOp::read || x.op() == ExprOp::in_bounds)
      found |= stage.reads[static_cast<size_t>(x.index())].stage >= 0;
  });
  return found;
}

/// Halves are widened where they are read; what stays in the kernel stays f32.
bool computed_in_f32(DType dtype) { return dtype == DType::f32 || is_small_float(dtype); }

bool is_sum_of_products(const Stage& stage) {
  return stage.anchor == Anchor::contraction && stage.reductions.size() == 1 && stage.reduce.size() == 1 &&
         stage.reductions[0].kind == ReduceKind::sum && stage.reductions[0].value.op() == ExprOp::mul &&
         computed_in_f32(stage.reductions[0].value.dtype());
}

bool is_result(const Expr& e, int index) { return e.op() == ExprOp::result && e.index() == index; }

/// exp(`x` - result 0), with `x` a read as `good` says.
template <typename Good>
bool is_exponential(const Expr& e, const Good& good) {
  if (e.op() != ExprOp::exp || e.args()[0].op() != ExprOp::sub) return false;
  const auto& difference = e.args()[0].args();
  return is_result(difference[1], 0) && good(difference[0]);
}

/// The only output, kept inside the kernel.
const StageOutput* only_local(const Stage& stage) {
  const bool local = stage.outputs.size() == 1 && stage.outputs[0].param < 0 && computed_in_f32(stage.outputs[0].dtype);
  return local ? &stage.outputs[0] : nullptr;
}

IndexMap row_map(size_t rank, int last) {
  IndexMap map = IndexMap::identity(rank);
  map.dims[rank - 1] = IndexExpr{{{1, last}}, 0, {}};
  return map;
}

/// `e` reads output 0 of stage `from` through `map`; coordinates of dimensions of extent 1 may be left out.
bool is_read(const Region& region, const Stage& stage, const Expr& e, int from, const IndexMap& map) {
  if (e.op() != ExprOp::read) return false;
  const Read& read = stage.reads[static_cast<size_t>(e.index())];
  if (read.stage != from || read.index != 0 || read.map.dims.size() != map.dims.size()) return false;
  const Shape& shape = region.stages[static_cast<size_t>(from)].outputs[0].shape;
  for (size_t d = 0; d < map.dims.size(); ++d)
    if (!(read.map.dims[d] == map.dims[d]) && !(shape[d] == Dim(1) && read.map.dims[d] == IndexExpr{})) return false;
  return true;
}

constexpr double kMasked = -1e30;

bool uses_result(const Expr& e) {
  bool uses = false;
  e.visit([&](const Expr& x) { uses |= x.op() == ExprOp::result; });
  return uses;
}

Expr both(const Expr& x, const Expr& y) { return x && y ? Expr::make(ExprOp::logical_and, {x, y}) : x ? x : y; }

/// Masks are chosen by select or added, the last thing that happens to a score. Adds count as one sum: a NaN in any of
/// them, or an infinity of the other sign, is seen beside a mask's number.
class Masks {
 public:
  /// See AttentionView::needed.
  Expr needed(const Expr& e) const {
    const auto& args = e.args();
    if (e.op() == ExprOp::select && !uses_result(args[0])) {
      if (masks(args[2])) return both(args[0], needed(args[1]));
      if (masks(args[1])) return both(Expr::make(ExprOp::logical_not, {args[0]}), needed(args[2]));
    }
    const Expr sum = added(e);
    if (!sum) return {};
    return Expr::make(ExprOp::logical_not, {Expr::make(ExprOp::le, {sum, Expr::constant(DType::f32, kMasked)})});
  }

 private:
  static bool masks(const Expr& x) { return x.is_constant() && x.value() <= kMasked; }
  static Expr plus(const Expr& x, const Expr& y) { return x && y ? Expr::make(ExprOp::add, {x, y}) : x ? x : y; }

  /// What is added to the products of a score; empty: a number that masks nothing.
  Expr added(const Expr& e) const {
    const auto& args = e.args();
    if (e.op() == ExprOp::select && !uses_result(args[0]) && (masks(args[1]) || masks(args[2]))) {
      const size_t kept = masks(args[2]) ? 1 : 2;
      Expr rest = added(args[kept]);
      if (!rest) rest = Expr::constant(DType::f32, 0);
      return Expr::make(ExprOp::select, {args[0], kept == 1 ? rest : args[1], kept == 1 ? args[2] : rest});
    }
    if (e.op() != ExprOp::add || uses_result(args[0]) == uses_result(args[1])) return {};
    const size_t scores = uses_result(args[0]) ? 0 : 1;
    const Expr& mask = args[1 - scores];
    const bool number = mask.is_constant() || mask.dtype() != DType::f32;
    return plus(added(args[scores]), number ? Expr() : mask);
  }
};

struct Weights {
  Expr defined;  ///< of rows with a softmax
  EmptyRows empty = EmptyRows::undefined;
  std::string why = {};  ///< not, if so
};

/// select(is_nan(w), 0, w), select(max == -inf, 0, w) or w; result 0 is the maximum.
Weights unguarded(const Expr& weights) {
  if (weights.op() != ExprOp::select) return {weights};
  const auto& args = weights.args();
  const auto& tested = args[0].args();
  if (!args[1].is_constant() || args[1].value() != 0) return {weights, {}, "rows without keys become no zeros"};
  if (args[0].op() == ExprOp::is_nan && tested[0].text() == args[2].text()) return {args[2], EmptyRows::no_nan};
  const auto is_none = [](const Expr& e) { return e.is_constant() && e.value() == -INFINITY; };
  const bool none = args[0].op() == ExprOp::eq && ((is_result(tested[0], 0) && is_none(tested[1])) ||
                                                   (is_result(tested[1], 0) && is_none(tested[0])));
  if (none) return {args[2], EmptyRows::zero};
  return {weights, {}, "the weights are changed behind the softmax"};
}

bool is_weight(const Expr& e) {
  if (e.op() != ExprOp::div || !is_result(e.args()[1], 1)) return false;
  return is_exponential(e.args()[0], [](const Expr& score) { return score.op() == ExprOp::read; });
}

/// The output of the softmax's stage, with the weight as result 0.
class ChangedWeight {
 public:
  Expr operator()(const Expr& e) {
    const auto at = done_.find(e.node());
    if (at != done_.end()) return at->second;
    Expr made = changed(e);
    return done_.emplace(e.node(), std::move(made)).first->second;
  }
  explicit ChangedWeight(const Stage& stage) : stage_(stage) {}
  Expr found;         ///< the weight itself
  bool alone = true;  ///< else only numbers are read that are the same everywhere, scales and zero points
  EmptyRows empty = EmptyRows::undefined;

 private:
  const Stage& stage_;
  std::map<const ExprNode*, Expr> done_;  // looked up only

  bool is_number(const Expr& e) const {
    return e.op() == ExprOp::read && stage_.reads[static_cast<size_t>(e.index())].stage < 0 &&
           axes_of(stage_, e).empty();
  }

  Expr changed(const Expr& e) {
    const Weights weights = unguarded(e);
    if (weights.why.empty() && is_weight(weights.defined)) {
      found = weights.defined, empty = weights.empty;
      return Expr::result(0, DType::f32);
    }
    if (e.is_constant()) return e;
    if (e.args().empty()) return alone = alone && is_number(e), e;
    std::vector<Expr> args;
    for (const Expr& a : e.args()) args.push_back((*this)(a));
    if (e.op() == ExprOp::cast) return Expr::make_cast(args[0], e.dtype());
    if (e.op() == ExprOp::bit_cast) return Expr::make_bit_cast(args[0], e.dtype());
    return Expr::make(e.op(), std::move(args));
  }
};

class AttentionFinder {
 public:
  explicit AttentionFinder(const Region& region) : region_(region) {}

  std::variant<AttentionView, std::string> find() {
    if (region_.stages.size() != 3) return "not three stages";
    rank_ = stage(0).domain.size();
    if (rank_ < 2) return "no rows and keys";
    const auto rank = static_cast<int>(rank_);
    view_.row = rank - 2;
    view_.key_axis = view_.column = rank - 1;
    view_.depth = view_.summed = rank;
    for (std::string why : {scores(), softmax(), context()})
      if (!why.empty()) return why;
    return view_;
  }

 private:
  const Region& region_;
  AttentionView view_;
  size_t rank_ = 0;

  const Stage& stage(size_t index) const { return region_.stages[index]; }

  std::string scores() {
    const Stage& s = stage(0);
    if (!is_sum_of_products(s)) return "the scores are not a sum of f32 products";
    if (!s.reduce[0].is_constant()) return "the head size is not known";
    if (!only_local(s)) return "the scores are needed elsewhere too";
    for (const Expr& factor : s.reductions[0].value.args()) {
      const std::set<int> axes = axes_of(s, factor);
      const bool rows = axes.count(view_.row), keys = axes.count(view_.key_axis);
      if (rows && keys) return "a factor of the scores depends on both row and key";
      Expr& place = keys || (view_.query && !rows) ? view_.key : view_.query;
      if (place) return "the scores are not a product of queries and keys";
      place = factor;
    }
    if (!view_.query || !view_.key) return "the scores are not a product of queries and keys";
    view_.needed = Masks().needed(s.outputs[0].value);
    return "";
  }

  std::string softmax() {
    const Stage& s = stage(1);
    if (s.anchor != Anchor::row || s.domain != stage(0).domain || s.reduce.size() != 1 ||
        !(s.reduce[0] == s.domain.back()) || !only_local(s))
      return "no softmax along the keys";
    const auto along = [&](const Expr& e) { return is_read(region_, s, e, 0, row_map(rank_, view_.depth)); };
    const auto here = [&](const Expr& e) { return is_read(region_, s, e, 0, IndexMap::identity(rank_)); };
    const bool shape = s.reductions.size() == 2 && s.reductions[0].kind == ReduceKind::max &&
                       s.reductions[1].kind == ReduceKind::sum && along(s.reductions[0].value);
    if (!shape) return "the softmax does not read the scores";
    if (!is_exponential(s.reductions[1].value, along)) return "another exponential than softmax's";
    return weights(s.outputs[0].value, here);
  }

  template <typename Here>
  std::string weights(const Expr& output, const Here& here) {
    ChangedWeight change(stage(1));
    const Expr changed = change(output);
    if (!change.found || !change.alone)
      if (std::string why = unguarded(output).why; !why.empty()) return why;
    if (!change.found) return "the weights are not exponentials over their sum";
    if (!change.alone) return "the weights meet other operands behind the softmax";
    if (!is_exponential(change.found.args()[0], here)) return "the weights are of other scores than their sum";
    if (changed.op() != ExprOp::result) view_.weight = changed;
    view_.empty = change.empty;
    return "";
  }

  std::string context() {
    const Stage& s = stage(2);
    if (!is_sum_of_products(s)) return "the result is not a sum of f32 products";
    if (s.domain.size() != rank_ || !(s.reduce[0] == stage(0).domain.back())) return "other keys in the second product";
    for (size_t i = 0; i + 1 < rank_; ++i)
      if (!(s.domain[i] == stage(0).domain[i])) return "the second product repeats the weights";
    if (!s.domain.back().is_constant()) return "the size of the values is not known";
    const auto& factors = s.reductions[0].value.args();
    for (size_t i : {size_t{0}, size_t{1}})
      if (is_read(region_, s, factors[i], 1, row_map(rank_, view_.summed))) view_.value = factors[1 - i];
    if (!view_.value) return "the second product does not read the weights as they are";
    if (reads_stage(s, view_.value)) return "the values depend on the scores";
    if (axes_of(s, view_.value).count(view_.row)) return "the values depend on the row";
    for (const StageOutput& o : s.outputs) {
      if (o.param < 0) return "a result stays in the kernel";
      if (reads_stage(s, o.value)) return "the result depends on single scores";
    }
    return "";
  }
};

}  // namespace

int64_t AttentionView::head_size(const Region& region) const { return region.stages[0].reduce[0].value(); }
int64_t AttentionView::columns(const Region& region) const { return region.stages[2].domain.back().value(); }

std::variant<AttentionView, std::string> view_attention(const Region& region) { return AttentionFinder(region).find(); }

bool resembles_attention(const Region& region) {
  return region.stages.size() == 3 && region.stages[0].anchor == Anchor::contraction &&
         region.stages[1].anchor == Anchor::row && region.stages[2].anchor == Anchor::contraction;
}

}  // namespace opfuse
