#include "kernel/product_type.hpp"

#include <algorithm>
#include <set>

#include "kernel/reads.hpp"
#include "kernel/view_parts.hpp"

namespace opfuse {
namespace {

/// Both factors as they lie: one that is widened for the other's sake is multiplied in f32.
const char* type_of(const Region& region, const Stage& stage, const Expr& value) {
  if (value.dtype() == DType::i32) return "int8";
  const std::set<int> reads = reads_used(value);
  const auto all = [&](DType type) {
    return std::all_of(reads.begin(), reads.end(),
                       [&](int r) { return dtype_of(region, stage.reads[static_cast<size_t>(r)]) == type; });
  };
  if (reads.empty()) return "f32";
  return all(DType::bf16) ? "bf16" : all(DType::f16) ? "f16" : "f32";
}

double products_in(const Stage& stage) {
  double count = 1;  // an open extent counts as 1
  for (const auto* axes : {&stage.domain, &stage.reduce})
    for (const Dim& extent : *axes) count *= static_cast<double>(extent.constant().value_or(1));
  return count;
}

}  // namespace

const char* product_type(const Region& region) {
  const char* type = "f32";
  double most = 0;
  for (const Stage& stage : region.stages)
    for (const Reduction& reduction : stage.reductions) {
      if (reduction.kind != ReduceKind::sum || products_in(stage) <= most) continue;
      most = products_in(stage);
      type = type_of(region, stage, reduction.value);
    }
  return type;
}

}  // namespace opfuse
