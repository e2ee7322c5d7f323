#include "cpu/emit/sum_start.hpp"

#include <algorithm>

#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

/// One number for each position along `axis`.
bool runs_along(const Read& read, int axis) {
  bool found = false;
  for (const IndexExpr& dim : read.map.dims) {
    if (dim.dynamic || dim.terms.size() > 1) return false;
    for (const IndexTerm& term : dim.terms) {
      if (term.axis != axis || found) return false;
      found = true;
    }
  }
  return found;
}

/// sum + bias; the bias is an argument of it.
bool adds_bias(const Expr& e, const Stage& stage, int channel, int* bias) {
  if (e.op() != ExprOp::add || e.dtype() != DType::i32) return false;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Expr &sum = e.args()[side], &read = e.args()[1 - side];
    if (sum.op() != ExprOp::result || read.op() != ExprOp::read || read.dtype() != DType::i32) continue;
    const Read& of = stage.reads[static_cast<size_t>(read.index())];
    if (of.stage >= 0 || !runs_along(of, channel)) continue;
    *bias = read.index();
    return true;
  }
  return false;
}

bool mentions_sum(const Expr& e) {
  bool found = false;
  e.visit([&](const Expr& x) { found |= x.op() == ExprOp::result; });
  return found;
}

}  // namespace

std::optional<SumStart> start_of_sums(const Stage& stage, int channel) {
  if (stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum ||
      stage.reductions[0].value.dtype() != DType::i32)
    return std::nullopt;
  std::optional<Expr> added, sum;
  int bias = -1;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (e.op() == ExprOp::result) sum = e;
      if (!added && adds_bias(e, stage, channel, &bias)) added = e;
    });
  if (!added || !sum || guarded_reads(stage).contains(bias)) return std::nullopt;
  SumStart start{stage, bias};
  for (StageOutput& o : start.stage.outputs) {
    if (mentions_sum(replaced(o.value, *added, Expr::constant(DType::i32, 0)))) return std::nullopt;
    o.value = replaced(o.value, *added, *sum);
  }
  return start;
}

Value* load_bias(StageEmitter& s, int bias, const Env& env) {
  const Operand& operand = s.reads[static_cast<size_t>(bias)];
  const Address at = address_of(s.k, operand, s.stage.reads[static_cast<size_t>(bias)].map, env, nullptr);
  return s.k.splat(load(s.k, operand, at, env, nullptr), env.width);
}

}  // namespace opfuse::cpu
