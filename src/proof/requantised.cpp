#include "proof/requantised.hpp"

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "cpu/contraction/codes.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

bool is_defined(ExprOp op) {
  switch (op) {
    case ExprOp::constant:
    case ExprOp::read:
    case ExprOp::in_bounds:
    case ExprOp::coord:
    case ExprOp::result:
    case ExprOp::extent:
    case ExprOp::neg:
    case ExprOp::abs:
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round_even:
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul:
    case ExprOp::min:
    case ExprOp::max:
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::gt:
    case ExprOp::ge:
    case ExprOp::eq:
    case ExprOp::ne:
    case ExprOp::select:
    case ExprOp::cast:
      return true;
    default:
      return false;
  }
}

bool is_defined(const Expr& e) {
  bool all = true;
  e.visit([&](const Expr& x) { all &= is_defined(x.op()); });
  return all;
}

int64_t other_bits(const Tensor& a, const Tensor& b) {
  OPFUSE_CHECK(a.dtype() == b.dtype() && a.sizes() == b.sizes(), "results of other types than the law's");
  const size_t size = byte_size(a.dtype());
  const auto *x = static_cast<const char*>(a.data()), *y = static_cast<const char*>(b.data());
  int64_t off = 0;
  for (size_t i = 0; i < a.bytes(); i += size) off += std::memcmp(x + i, y + i, size) != 0;
  return off;
}

}  // namespace

bool is_requantised(const Region& region) {
  if (!sums_codes(region) || !is_single_stage(region)) return false;
  const Stage& stage = region.stages[0];
  return std::all_of(stage.outputs.begin(), stage.outputs.end(), [](const StageOutput& output) {
    return output.param >= 0 && !output.clipped && byte_size(output.dtype) == 1 && is_defined(output.value);
  });
}

int64_t off_the_law(const Region& region, const std::vector<Tensor>& operands, const std::vector<Tensor>& results,
                    const SymbolValues& symbols) {
  const std::vector<Tensor> law = interpret(region, operands, symbols, Precision::typed);
  OPFUSE_CHECK(law.size() == results.size(), "{} results, and the law has {}", results.size(), law.size());
  int64_t off = 0;
  for (size_t i = 0; i < law.size(); ++i) off += other_bits(law[i], results[i]);
  return off;
}

}  // namespace opfuse
