// Values where their coordinates are inside, another value outside: padding and concatenation.
#include <set>

#include "region/lowering.hpp"

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

Expr Lowering::pull_guarded(const Value* value, const IndexMap& map, const Expr& fill, const Node& reader) {
  const Expr inside = pull(value, map);
  const std::optional<int> guard = guard_of(inside, value->type, map);
  if (!guard && inside.is_constant()) decline("padded_constant", "a constant cannot be padded inside a kernel", reader);
  if (!guard)
    decline("padded_prologue", "the padded operand moves elements, so its bounds are not those of a read", reader);
  return select(Expr::in_bounds(*guard), inside, fill);
}

/// Its reads are inside where the value is; elsewhere they may be anywhere, so each of them is guarded. Those that are
/// already (a concatenation of concatenations) may be outside here too.
std::pair<Expr, Expr> Lowering::pull_inside(const Value* value, const IndexMap& map, const Expr& inside,
                                            const Node& reader) {
  const Expr pulled = pull(value, map);
  if (const std::optional<int> guard = guard_of(pulled, value->type, map)) return {Expr::in_bounds(*guard), pulled};
  std::set<int> reads, guarded;
  pulled.visit([&](const Expr& e) {
    if (e.op() == ExprOp::read) reads.insert(e.index());
    if (e.op() == ExprOp::in_bounds) guarded.insert(e.index());
  });
  Expr here = inside;
  for (const int read : reads) {
    if (has_dynamic(stage().reads[static_cast<size_t>(read)].map))
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
