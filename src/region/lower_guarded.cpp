// Values where their coordinates are inside, another value outside: padding and concatenation.
#include <algorithm>
#include <set>

#include "region/lowering.hpp"
#include "region/read_shape.hpp"

namespace opfuse {

/// The read whose coordinates are the ones asked for and whose tensor has the value's shape: it is inside exactly when
/// the value is.
std::optional<int> Lowering::guard_of(const Expr& value, const TensorType& type, const IndexMap& map) {
  for (const int index : read_sets_.of(value).read) {
    const Read& read = stage().reads[static_cast<size_t>(index)];
    if (read.map == map && shape_read_by(read) == type.shape) return index;
  }
  return {};
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
  const ReadSets::Sets& sets = read_sets_.of(value);
  std::set<int> places, guarded;
  for (const int a : sets.asked) places.insert(place_of(a));
  for (const int r : sets.read)
    if (places.contains(place_of(r))) guarded.insert(r);
  return guarded;
}

namespace {

/// Equal maps have equal numbers.
uint64_t hash_of(const IndexMap& map) {
  uint64_t hash = map.dims.size();
  const auto add = [&](const Dim& d) {
    hash = hash * 0x9e3779b97f4a7c15 + (d.is_constant() ? static_cast<uint64_t>(d.value()) : ~uint64_t{0});
  };
  for (const IndexExpr& index : map.dims) {
    add(index.offset);
    for (const IndexTerm& t : index.terms) add(t.axis), add(t.coef), add(t.div), add(t.mod);
  }
  return hash;
}

}  // namespace

/// The same number for reads of one map and shape, which are inside together: that of the first of them.
int Lowering::place_of(int read) {
  const std::vector<Read>& reads = stage().reads;
  for (size_t i = places_.size(); i < reads.size(); ++i) {
    std::vector<int>& firsts = firsts_[hash_of(reads[i].map)];
    const auto same = std::find_if(firsts.begin(), firsts.end(), [&](int first) {
      const Read& other = reads[static_cast<size_t>(first)];
      return other.map == reads[i].map && shape_read_by(other) == shape_read_by(reads[i]);
    });
    places_.push_back(same == firsts.end() ? static_cast<int>(i) : *same);
    if (same == firsts.end()) firsts.push_back(static_cast<int>(i));
  }
  return places_[static_cast<size_t>(read)];
}

/// Reads of `value` beside the guard that leave their tensors where the guard's does: operands that are broadcast along
/// some of the axes that move.
std::set<int> Lowering::reads_outside(const Expr& value, int guard) {
  const std::set<int> guarded = guarded_reads(value);
  std::set<int> reads;
  for (const int index : read_sets_.of(value).read) {
    if (guarded.contains(index) || place_of(index) == place_of(guard)) continue;
    const Read& read = stage().reads[static_cast<size_t>(index)];
    if (!is_always_inside(read.map, shape_read_by(read), extents())) reads.insert(index);
  }
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
  Expr here = inside;
  for (const int read : read_sets_.of(pulled).read) {
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
