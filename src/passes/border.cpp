#include "passes/border.hpp"

#include <numeric>

#include "match/pattern.hpp"
#include "ops/pad.hpp"

namespace opfuse {
namespace {

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

}  // namespace

std::variant<std::vector<int64_t>, Decline> spatial_border(const Node& pad, std::vector<size_t> permutation) {
  const Pad::Attrs& a = pad.as<Pad>();
  const size_t rank = pad.input(0)->type.shape.rank();
  if (a.mode != PadMode::constant) return no("mode", "the border is not a constant");
  if (pad.input(3)) return no("axes", "the axes are an operand");
  if (pad.input(1) && !pad.input(1)->is_constant()) return no("not_constant", "the amounts are computed");
  const std::vector<int64_t> all = pad.input(1) ? pad.input(1)->constant->to_i64() : a.pads;
  if (all.size() != 2 * rank || rank < 3) return no("rank", "the amounts are not those of a map");
  if (permutation.empty()) {
    permutation.resize(rank);
    std::iota(permutation.begin(), permutation.end(), size_t{0});
  }
  std::vector<int64_t> spatial;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t amount = all[i / rank * rank + permutation[i % rank]];
    if (amount < 0) return no("cuts", "an amount is negative");
    if (i % rank >= 2)
      spatial.push_back(amount);
    else if (amount != 0)
      return no("axes", "images or channels are padded");
  }
  return spatial;
}

std::optional<double> border_value(const Node& pad) {
  const Value* given = pad.input(2);
  return given ? scalar_constant(given) : std::optional(pad.as<Pad>().value);
}

}  // namespace opfuse
