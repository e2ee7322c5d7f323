// The sums of codes are exact in every order, so they come from the proof's blocked products
// (proof/bounded_product.cpp); what follows is interpreted, rounding by rounding.
#include "proof/requantised.hpp"

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "cpu/contraction/codes.hpp"
#include "proof/judge.hpp"
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

/// A parameter of the stage's whole domain.
int add_param(Region& region, ParamRole role, DType dtype) {
  region.params.push_back({role, {dtype, Shape{region.stages[0].domain}}});
  return static_cast<int>(region.params.size()) - 1;
}

/// The sums alone, stored as they are.
std::vector<Tensor> sums_of(const Region& region, const std::vector<Tensor>& operands, const SymbolValues& symbols) {
  Region sums = region;
  Stage& stage = sums.stages[0];
  stage.outputs.clear();
  const Shape domain{stage.domain};
  for (size_t k = 0; k < stage.reductions.size(); ++k) {
    const DType dtype = stage.reductions[k].value.dtype();
    const int param = add_param(sums, ParamRole::output, dtype);
    stage.outputs.push_back(
        {param, Expr::result(static_cast<int>(k), dtype), IndexMap::identity(domain.rank()), domain, dtype});
  }
  const BoundedRun run = bound_errors(sums, operands, symbols, {{.folded = false}, {}, {}});
  std::vector<Tensor> made;
  for (const StageOutput& output : stage.outputs)
    made.push_back(values_of({&run.results[static_cast<size_t>(output.param)]}));
  return made;
}

/// What is behind the sums, which are operands.
Region behind_sums(const Region& region) {
  Region rest = region;
  Stage& stage = rest.stages[0];
  std::vector<Expr> sums;
  for (const Reduction& r : stage.reductions) {
    const int param = add_param(rest, ParamRole::input, r.value.dtype());
    stage.reads.push_back({-1, param, IndexMap::identity(stage.domain.size())});
    sums.push_back(Expr::read(static_cast<int>(stage.reads.size()) - 1, r.value.dtype()));
  }
  stage.reductions.clear(), stage.reduce.clear();
  for (StageOutput& output : stage.outputs)
    output.value = output.value.map_leaves(
        [&](const Expr& leaf) { return leaf.op() == ExprOp::result ? sums[static_cast<size_t>(leaf.index())] : leaf; });
  return rest;
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
  std::vector<Tensor> params = operands;
  params.resize(region.params.size());
  for (Tensor& sum : sums_of(region, operands, symbols)) params.push_back(std::move(sum));
  const std::vector<Tensor> law = interpret(behind_sums(region), params, symbols, Precision::typed);
  OPFUSE_CHECK(law.size() == results.size(), "{} results, and the law has {}", results.size(), law.size());
  int64_t off = 0;
  for (size_t i = 0; i < law.size(); ++i) off += other_bits(law[i], results[i]);
  return off;
}

}  // namespace opfuse
