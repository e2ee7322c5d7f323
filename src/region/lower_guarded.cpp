// Values where their coordinates are inside, another value outside: padding and concatenation.
#include <algorithm>

#include "region/lowering.hpp"
#include "region/map_hash.hpp"
#include "region/read_shape.hpp"

namespace opfuse {

/// The read whose coordinates are the ones asked for and whose tensor has the value's shape: it is inside exactly when
/// the value is.
std::optional<int> Lowering::guard_of(const Expr& value, const TensorType& type, const IndexMap& map) {
  number_places();
  const std::optional<int> place = first_with(map, type.shape);
  if (!place) return {};
  const std::vector<int>& reads = read_sets_.of(value).read;
  const auto found = std::find_if(reads.begin(), reads.end(), [&](int read) { return place_of(read) == *place; });
  return found == reads.end() ? std::nullopt : std::optional(*found);
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

/// Reads of `value` but those that stand behind a guard of their own, as those of a concatenation of concatenations do:
/// a read with their map and shape is asked whether it is inside. Where they are outside, another part of `value` is
/// not.
std::vector<int> Lowering::unguarded_reads(const Expr& value) {
  const ReadSets::Sets& sets = read_sets_.of(value);
  std::vector<char> asked(stage().reads.size(), 0);  // by place
  for (const int a : sets.asked) asked[static_cast<size_t>(place_of(a))] = 1;
  std::vector<int> open;
  for (const int r : sets.read)
    if (!asked[static_cast<size_t>(place_of(r))]) open.push_back(r);
  return open;
}

/// The same number for reads of one map and shape, which are inside together: that of the first of them.
int Lowering::place_of(int read) {
  number_places();
  return places_[static_cast<size_t>(read)];
}

void Lowering::number_places() {
  const std::vector<Read>& reads = stage().reads;
  for (size_t i = places_.size(); i < reads.size(); ++i) {
    const std::optional<int> first = first_with(reads[i].map, shape_read_by(reads[i]));
    if (!first) firsts_[hash_of(reads[i].map)].push_back(static_cast<int>(i));
    places_.push_back(first.value_or(static_cast<int>(i)));
  }
}

std::optional<int> Lowering::first_with(const IndexMap& map, const Shape& shape) {
  const auto firsts = firsts_.find(hash_of(map));
  if (firsts == firsts_.end()) return {};
  for (const int first : firsts->second) {
    const Read& read = stage().reads[static_cast<size_t>(first)];
    if (read.map == map && shape_read_by(read) == shape) return first;
  }
  return {};
}

/// Reads of `value` beside the guard that leave their tensors where the guard's does: operands that are broadcast along
/// some of the axes that move.
std::vector<int> Lowering::reads_outside(const Expr& value, int guard) {
  std::vector<int> reads = unguarded_reads(value);
  std::erase_if(reads, [&](int index) {
    if (place_of(index) == place_of(guard)) return true;
    const Read& read = stage().reads[static_cast<size_t>(index)];
    return is_always_inside(read.map, shape_read_by(read), extents());
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
  for (const int read : read_sets_.of(pulled).read)
    if (depends_on_data(stage().reads[static_cast<size_t>(read)].map))
      decline("padded_prologue", "an operand is read at a computed index", reader);
  Expr here = inside;
  for (const int read : unguarded_reads(pulled)) here = logical_and(here, Expr::in_bounds(read));
  return {here, pulled};
}

Expr Lowering::pull_where(const Value* value, const IndexMap& map, const Expr& inside, const Expr& fill,
                          const Node& reader) {
  const auto [here, pulled] = pull_inside(value, map, inside, reader);
  return select(here, pulled, fill);
}

}  // namespace opfuse
