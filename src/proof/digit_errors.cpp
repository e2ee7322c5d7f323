#include "proof/digit_errors.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/contraction/digits.hpp"

namespace opfuse {
namespace {

/// The operand of the factor that is no code.
std::optional<size_t> data_of(const Region& region) {
  const Stage& stage = region.stages[0];
  const auto coded = coded_weights(region, stage);
  if (!coded) return std::nullopt;
  for (const Expr& factor : stage.reductions[0].value.args())
    if (factor.op() == ExprOp::read) return static_cast<size_t>(stage.reads[static_cast<size_t>(factor.index())].index);
  return std::nullopt;
}

}  // namespace

std::optional<std::pair<size_t, BoundedTensor>> digit_errors(const Launch& launch, const std::vector<Tensor>& operands,
                                                             const BoundOptions& options) {
  const auto operand = launch.schedule.get(kDigits, 0) ? data_of(launch.region) : std::nullopt;
  if (!operand) return std::nullopt;
  const Tensor& data = operands[*operand];
  const int64_t depth = data.rank() ? data.dim(data.rank() - 1) : 0;
  if (data.elements() != depth) return std::nullopt;
  const auto given = options.bounded.find(*operand);
  BoundedTensor row = given == options.bounded.end() ? BoundedTensor(data) : *given->second;
  row.error.resize(row.value.size());
  row.tie.resize(row.value.size());
  for (int64_t first = 0; first < depth; first += kLongestChunk) {
    const auto begin = static_cast<size_t>(first), end = static_cast<size_t>(std::min(depth, first + kLongestChunk));
    double most = 0;
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(row.value[i])) most = std::max(most, std::fabs(row.value[i]));
    for (size_t i = begin; i < end; ++i) row.error[i] += Reach::both(1.01 * std::ldexp(most, -23));
  }
  return std::pair(*operand, std::move(row));
}

}  // namespace opfuse
