#include "codegen/first_addend.hpp"

#include <algorithm>
#include <unordered_map>

namespace opfuse {
namespace {

/// The read that is added to the sum in `e`, -1.
int addend_of(const Expr& e) {
  if (e.op() != ExprOp::add || e.weak() || e.dtype() != DType::f32) return -1;
  const Expr& x = e.args()[0];
  const Expr& y = e.args()[1];
  if (x.op() == ExprOp::result && y.op() == ExprOp::read) return y.index();
  return y.op() == ExprOp::result && x.op() == ExprOp::read ? x.index() : -1;
}

/// Nothing else reads the sum: it would find the addend in it.
bool alone_reads_sum(const Expr& value, int read) {
  bool alone = value.op() != ExprOp::result;
  value.visit([&](const Expr& e) {
    for (const Expr& arg : e.args()) alone &= arg.op() != ExprOp::result || addend_of(e) == read;
  });
  return alone;
}

}  // namespace

Expr without_addend(const Expr& value, int read) {
  std::unordered_map<const ExprNode*, Expr> rebuilt;  // each shared node once; looked up, never iterated
  value.visit([&](const Expr& e) {
    if (addend_of(e) == read) {
      rebuilt[e.node()] = e.args()[e.args()[0].op() == ExprOp::result ? 0 : 1];
      return;
    }
    std::vector<Expr> args;
    for (const Expr& arg : e.args()) args.push_back(rebuilt.at(arg.node()));
    if (args.empty())
      rebuilt[e.node()] = e;
    else
      rebuilt[e.node()] = e.op() == ExprOp::cast ? Expr::make_cast(args[0], e.dtype()) : Expr::make(e.op(), args);
  });
  return rebuilt.at(value.node());
}

int first_addend(const Stage& stage, int vec) {
  int read = -1;
  for (const StageOutput& o : stage.outputs) o.value.visit([&](const Expr& e) { read = std::max(read, addend_of(e)); });
  if (read < 0 || stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum) return -1;
  const Read& addend = stage.reads[static_cast<size_t>(read)];
  for (const IndexExpr& index : addend.map.dims)
    if (index.dynamic ||
        std::any_of(index.terms.begin(), index.terms.end(), [&](const IndexTerm& term) { return term.axis != vec; }))
      return -1;
  const bool alone = std::all_of(stage.outputs.begin(), stage.outputs.end(),
                                 [&](const StageOutput& o) { return alone_reads_sum(o.value, read); });
  return alone ? read : -1;
}

}  // namespace opfuse
