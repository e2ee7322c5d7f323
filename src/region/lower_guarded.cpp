// Values where their coordinates are inside, another value outside: padding and concatenation.
#include <algorithm>
#include <set>

#include "region/lowering.hpp"
#include "region/read_shape.hpp"

namespace opfuse {

/// The read whose coordinates are the ones asked for and whose tensor has the value's shape: it is inside exactly when
/// the value is.
std::optional<int> Lowering::guard_of(const Expr& value, const TensorType& type, const IndexMap& map) {
  std::optional<int> guard;
  value.visit([&](const Expr& e) {
    if (e.op() != ExprOp::read || guard) return;
    const Read& read = stage().reads[e.index()];
    const Shape& shape =
        read.stage < 0 ? region_.params[read.index].type.shape : region_.stages[read.stage].outputs[read.index].shape;
    if (read.map == map && shape == type.shape) guard = e.index();
  });
  return guard;
}

namespace {

/// Every coordinate is 0, or an axis as long as the dimension.
bool is_always_inside(const IndexMap& map, const Shape& shape, const std::vector<Dim>& extents) {
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const IndexExpr& index = map.dims[d];
    if (index.dynamic || !(index.offset == Dim(0)) || index.terms.size() > 1) return false;
    if (index.terms.empty()) continue;
    const IndexTerm& t = index.terms[0];
    const bool plain = t.coef == Dim(1) && t.div == Dim(1) && t.mod == Dim(0);
    if (!plain || !(extents.at(static_cast<size_t>(t.axis)) == shape[d])) return false;
  }
  return true;
}

/// Coordinates that are computed of the place alone (a roll) are inside wherever they are asked for; those that are
/// read would be read beyond their tensor's end.
bool depends_on_data(const IndexMap& map) {
  return std::any_of(map.dims.begin(), map.dims.end(), [](const IndexExpr& index) {
    bool reads = false;
    if (index.dynamic) index.dynamic.visit([&](const Expr& e) { reads |= e.op() == ExprOp::read; });
    return reads;
  });
}

}  // namespace

const Shape& Lowering::shape_read_by(const Read& read) const { return opfuse::shape_read_by(region_, read); }

/// Reads of `value` that stand behind a guard of their own, as those of a concatenation of concatenations do: a read
/// with their map and shape is asked whether it is inside. Where they are outside, another part of `value` is not.
std::set<int> Lowering::guarded_reads(const Expr& value) {
  std::set<int> asked, guarded;
  value.visit([&](const Expr& e) {
    if (e.op() == ExprOp::in_bounds) asked.insert(e.index());
  });
  const auto read_at = [&](int index) -> const Read& { return stage().reads[static_cast<size_t>(index)]; };
  value.visit([&](const Expr& e) {
    if (e.op() != ExprOp::read) return;
    for (const int a : asked)
      if (read_at(a).map == read_at(e.index()).map && shape_read_by(read_at(a)) == shape_read_by(read_at(e.index())))
        guarded.insert(e.index());
  });
  return guarded;
}

/// Reads of `value` beside the guard that leave their tensors where the guard's does: operands that are broadcast along
/// some of the axes that move.
std::set<int> Lowering::reads_outside(const Expr& value, int guard) {
  const Read& guarding = stage().reads[static_cast<size_t>(guard)];
  const std::set<int> guarded = guarded_reads(value);
  std::set<int> reads;
  value.visit([&](const Expr& e) {
    if (e.op() != ExprOp::read || e.index() == guard || guarded.contains(e.index())) return;
    const Read& read = stage().reads[static_cast<size_t>(e.index())];
    const bool same = read.map == guarding.map && shape_read_by(read) == shape_read_by(guarding);
    if (!same && !is_always_inside(read.map, shape_read_by(read), extents())) reads.insert(e.index());
  });
  return reads;
}

Expr Lowering::pull_guarded(const Value* value, const IndexMap& map, const Expr& fill, const Node& reader) {
  const Expr inside = pull(value, map);
  const std::optional<int> guard = guard_of(inside, value->type, map);
  if (!guard && inside.is_constant()) decline("padded_constant", "a constant cannot be padded inside a kernel", reader);
  if (!guard)
    decline("padded_prologue", "the padded operand moves elements, so its bounds are not those of a read", reader);
  if (!reads_outside(inside, *guard).empty())
    decline("padded_prologue", "an operand of the padded value is read beyond its own border", reader);
  return select(Expr::in_bounds(*guard), inside, fill);
}

/// Its reads are inside where the value is; elsewhere they may be anywhere, so each of them is guarded. Those that are
/// already (a concatenation of concatenations) may be outside here too.
std::pair<Expr, Expr> Lowering::pull_inside(const Value* value, const IndexMap& map, const Expr& inside,
                                            const Node& reader) {
  const Expr pulled = pull(value, map);
  if (const std::optional<int> guard = guard_of(pulled, value->type, map)) {
    Expr here = Expr::in_bounds(*guard);
    for (const int read : reads_outside(pulled, *guard)) here = logical_and(here, Expr::in_bounds(read));
    return {here, pulled};
  }
  const std::set<int> guarded = guarded_reads(pulled);
  std::set<int> reads;
  pulled.visit([&](const Expr& e) {
    if (e.op() == ExprOp::read) reads.insert(e.index());
  });
  Expr here = inside;
  for (const int read : reads) {
    if (depends_on_data(stage().reads[static_cast<size_t>(read)].map))
      decline("padded_prologue", "an operand is read at a computed index", reader);
    if (!guarded.contains(read)) here = logical_and(here, Expr::in_bounds(read));
  }
  return {here, pulled};
}

Expr Lowering::pull_where(const Value* value, const IndexMap& map, const Expr& inside, const Expr& fill,
                          const Node& reader) {
  const auto [here, pulled] = pull_inside(value, map, inside, reader);
  return select(here, pulled, fill);
}

}  // namespace opfuse
