// Without the instruction bf16 factors get no kernel: f32 needs as many multiply-adds and rounds less.
#include "cpu/contraction/halves.hpp"

#include <fmt/format.h>

#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/window/chain_view.hpp"
#include "region/single_stage.hpp"

namespace opfuse {

bool has_half_products(const TargetInfo& target) {
  return target.has("avx512bf16") && (target.vector_bytes == 64 || target.has("avx512vl"));
}

std::optional<std::string> no_halves_kernel(const Region& region, const TargetInfo& target) {
  const bool chain = std::holds_alternative<ChainView>(view_chain(region));
  if (!is_single_stage(region) && !chain) return "more than one stage";
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (view && view->types.data == DType::f16) return "CPUs have no products of f16";
  if (!has_half_products(target)) return target.name + " has no products of bf16 (avx512bf16)";
  if (!view) return std::get<std::string>(found);
  if (view->types.data != DType::bf16) return "the factors are not read as bf16";
  if (skeleton_as_wished(region, target) == (chain ? "chain" : "contraction")) return std::nullopt;
  return "its operands cannot lie as it needs them";
}

std::optional<std::string> halves_lose(const Region& region, const TargetInfo& target) {
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view || !may_multiply_matrices(region.stages[0], *view, target)) return std::nullopt;
  const Schedule schedule = schedule_as_wished(region, target);
  const int64_t step = schedule.get("step", 1), depth = channel_depth(region.stages[0], *view);
  if (schedule.get("matrix", 0) != 0 && 2 * depth < step && step != kJoinedChannels)
    return fmt::format("rows of matrices have {} channels, and this product {}: most of them would be zeros", step,
                       depth);
  if (schedule.get("matrix", 0) != 0) return std::nullopt;
  return "where there is AMX, vdpbf16ps is slower than multiply-adds of f32, and matrices do not take this product";
}

}  // namespace opfuse
