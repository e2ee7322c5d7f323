#include "ops/slice_ranges.hpp"

#include "ops/checks.hpp"
#include "ops/slice.hpp"

namespace opfuse {

std::optional<SliceRanges> slice_ranges(const Node& slice) {
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
  SliceRanges ranges;
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = axes->empty() ? i : normalize_axis((*axes)[i], x.rank());
    ranges[axis] = {(*starts)[i], (*ends)[i], steps->empty() ? 1 : (*steps)[i]};
  }
  return ranges;
}

}  // namespace opfuse
