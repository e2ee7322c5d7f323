// The planner's model (cpu/group_cost.hpp) on the regions that were lowered: channels count as blocked where an operand
// of four dimensions lies so in the program. That model compares forms of one group, so of sums of products it counts
// what the forms share without the register tiles they run in; here their multiply-adds count, as tiles do them. On
// GPUs bytes and launches are all there is.
#include "driver/predict_launches.hpp"

#include <algorithm>

#include "cpu/contraction/codes.hpp"
#include "cpu/group_cost.hpp"
#include "cpu/memory_rates.hpp"
#include "program/body.hpp"

namespace opfuse {
namespace {

LayoutGuess layout_of(const Program& program, const Launch& launch) {
  for (const int b : launch.buffers) {
    if (b < 0) continue;
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    if (buffer.kind != BufferKind::constant && buffer.type.shape.rank() == 4 && !buffer.layout.blocks.empty())
      return LayoutGuess::channel_blocks;
  }
  return LayoutGuess::dense;
}

LaunchPrediction of_bytes(const Region& region, const TargetInfo& target) {
  SymbolValues ones;
  for (const std::string& symbol : region.symbols()) ones[symbol] = 1;
  const RegionCost traffic = cost_of(region, ones);
  LaunchPrediction p;
  p.bytes = static_cast<int64_t>(traffic.bytes_read + traffic.bytes_written);
  p.memory = 1e6 * static_cast<double>(p.bytes) / target.gpu_bytes_per_second;
  p.start = 1e6 * target.gpu_launch_seconds;
  p.microseconds = p.memory + p.start;
  return p;
}

/// A product of what is read: nothing is computed again for each tap.
bool is_plain(const Expr& value) {
  int products = 0, others = 0;
  value.visit([&](const Expr& e) {
    const bool moves = e.args().empty() || e.op() == ExprOp::select || e.op() == ExprOp::cast;
    if (e.op() == ExprOp::mul)
      ++products;
    else if (!moves && is_float(e.dtype()))
      ++others;
  });
  return products == 1 && others == 0;
}

bool sums_products(const Region& region) {
  return std::any_of(region.stages.begin(), region.stages.end(), [](const Stage& stage) {
    if (stage.anchor != Anchor::contraction && stage.anchor != Anchor::window) return false;
    return !stage.reductions.empty() &&
           std::all_of(stage.reductions.begin(), stage.reductions.end(),
                       [](const Reduction& r) { return r.kind == ReduceKind::sum && is_plain(r.value); });
  });
}

constexpr double kPairedProducts = 2;  // of codes in pairs (pmaddubsw): MiniLM-L6 takes 0.56 of floats

/// Products that a lane adds up with one instruction, or with as many as there are products.
double products_at_once(const Launch& launch, const TargetInfo& target) {
  if (!sums_codes(launch.region)) return 1;
  if (has_byte_products(target)) return 4;
  return launch.schedule.get("paired", 0) ? kPairedProducts : 1;
}

/// Cycles of the multiply-adds of register tiles.
double multiply_adds(const Launch& launch, const TargetInfo& target) {
  const Region& region = launch.region;
  SymbolValues ones;
  for (const std::string& symbol : region.symbols()) ones[symbol] = 1;
  const auto per_cycle = static_cast<double>(std::max<int64_t>(target.lanes_f32() * target.fma_units, 1));
  return cost_of(region, ones).flops / 2 / per_cycle / products_at_once(launch, target);
}

/// In a body, of all its parts or steps. Constants are the same in each.
void repeat(LaunchPrediction& p, const Region& region, const Body& body) {
  const auto times = static_cast<double>(body.times.constant().value_or(1));
  for (double* time : {&p.microseconds, &p.instructions, &p.memory, &p.start}) *time *= times;
  int64_t constants = 0;
  for (const Param& param : region.params)
    if (param.role == ParamRole::constant)
      constants += param.type.shape.elements().constant().value_or(0) * byte_size(param.type.dtype);
  constants = std::min(constants, p.bytes);
  p.bytes = constants + (p.bytes - constants) * static_cast<int64_t>(times);
}

}  // namespace

const char* LaunchPrediction::bound() const {
  if (start >= std::max(instructions, memory)) return "launch";
  return memory > instructions ? "memory" : "instructions";
}

std::vector<LaunchPrediction> predict_launches(const Program& program, const TargetInfo& target) {
  std::vector<LaunchPrediction> all;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    LaunchPrediction& p = all.emplace_back();
    if (launch.reference) continue;
    const Body* body = body_of(program, i);
    if (!target.traits.on_host) {
      p = of_bytes(launch.region, target);
      if (body) repeat(p, launch.region, *body);
      continue;
    }
    const GroupCost cost = group_cost(launch.region, target, layout_of(program, launch));
    const double work = sums_products(launch.region) ? std::min(cost.work, multiply_adds(launch, target)) : cost.work;
    p.microseconds = microseconds(target.launch.cycles + overlapped(work, cost.memory, target), target);
    p.instructions = microseconds(work, target);
    p.memory = microseconds(cost.memory, target);
    p.start = microseconds(target.launch.cycles, target);
    p.bytes = static_cast<int64_t>(cost.bytes);
    if (body) repeat(p, launch.region, *body);
  }
  return all;
}

double balance_of(int64_t parts, int threads) {
  const int64_t t = std::max(threads, 1), p = std::max<int64_t>(parts, 1);
  return static_cast<double>(p) / static_cast<double>(t * ((p + t - 1) / t));
}

double predicted_balance(const std::vector<LaunchPrediction>& launches, const std::vector<int64_t>& parts,
                         int threads) {
  double work = 0, taken = 0;
  for (size_t i = 0; i < launches.size() && i < parts.size(); ++i) {
    const double shared = launches[i].shared_microseconds();
    work += shared;
    taken += shared / balance_of(parts[i], threads);
  }
  return taken > 0 ? work / taken : 1;
}

}  // namespace opfuse
