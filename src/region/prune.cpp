// Removes stages without outputs, reads that no expression uses and parameters that no read or output uses, and
// renumbers what is left. Lowering tries epilogues that may not work out; this keeps their traces out of the region.
#include "expr/visit_each.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

void mark_reads(std::span<const Expr* const> values, const Stage& stage, std::vector<char>& used) {
  visit_each(values, [&](const Expr& e) {
    if ((e.op() != ExprOp::read && e.op() != ExprOp::in_bounds) || used[e.index()]) return;
    used[e.index()] = 1;
    std::vector<const Expr*> places;
    for (const IndexExpr& dim : stage.reads[e.index()].map.dims) places.push_back(&dim.dynamic);
    mark_reads(places, stage, used);
  });
}

void prune_reads(Stage& stage) {
  std::vector<char> used(stage.reads.size(), 0);
  std::vector<const Expr*> values;
  for (const Reduction& r : stage.reductions) values.push_back(&r.value);
  for (const StageOutput& o : stage.outputs) {
    values.push_back(&o.value);
    for (const IndexExpr& dim : o.map.dims) values.push_back(&dim.dynamic);
  }
  mark_reads(values, stage, used);
  std::vector<int> number(used.size(), -1);
  std::vector<Read> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    number[i] = static_cast<int>(kept.size());
    kept.push_back(stage.reads[i]);
  }
  if (kept.size() == stage.reads.size()) return;
  auto rename = [&](const Expr& expr) {
    return expr.map_leaves([&](const Expr& leaf) {
      if (leaf.op() == ExprOp::read) return Expr::read(number[leaf.index()], leaf.dtype());
      if (leaf.op() == ExprOp::in_bounds) return Expr::in_bounds(number[leaf.index()]);
      return leaf;
    });
  };
  for (Reduction& r : stage.reductions) r.value = rename(r.value);
  const auto rename_map = [&](IndexMap& map) {
    for (IndexExpr& dim : map.dims)
      if (dim.dynamic) dim.dynamic = rename(dim.dynamic);
  };
  for (StageOutput& o : stage.outputs) {
    o.value = rename(o.value);
    rename_map(o.map);
  }
  for (Read& read : kept) rename_map(read.map);
  stage.reads = std::move(kept);
}

/// Nothing reads a stage without outputs, because a read makes one.
void prune_stages(Region& region) {
  for (size_t s = region.stages.size(); s-- > 0;) {
    const int index = static_cast<int>(s);
    if (!region.stages[s].outputs.empty()) continue;
    region.stages.erase(region.stages.begin() + index);
    for (Stage& stage : region.stages)
      for (Read& read : stage.reads)
        if (read.stage > index) --read.stage;
  }
}

}  // namespace

void prune(LoweredGroup& lowered) {
  Region& region = lowered.region;
  prune_stages(region);
  std::vector<char> used(region.params.size(), 0);
  for (Stage& stage : region.stages) {
    prune_reads(stage);
    for (const Read& read : stage.reads)
      if (read.stage < 0) used[read.index] = 1;
    for (const StageOutput& output : stage.outputs)
      if (output.param >= 0) used[output.param] = 1;
  }
  std::vector<int> number(used.size(), -1);
  std::vector<Param> params;
  std::vector<LoweredOperand> operands;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    number[i] = static_cast<int>(params.size());
    params.push_back(region.params[i]);
    operands.push_back(lowered.operands[i]);
  }
  for (Stage& stage : region.stages) {
    for (Read& read : stage.reads)
      if (read.stage < 0) read.index = number[read.index];
    for (StageOutput& output : stage.outputs)
      if (output.param >= 0) output.param = number[output.param];
  }
  region.params = std::move(params);
  lowered.operands = std::move(operands);
}

}  // namespace opfuse
