#include "cpu/rested_value.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace opfuse {
namespace {

constexpr size_t kMostNodes = 64;  // of a value that is looked for

using Pairs = std::set<std::pair<const ExprNode*, const ExprNode*>>;

/// The same operations of the same operands, along whichever axes these are read; `known` pairs are.
bool resemble(const Stage& stage, const Expr& a, const Expr& b, Pairs& known) {
  if (a.op() != b.op() || !(a.dtype() == b.dtype()) || a.args().size() != b.args().size()) return false;
  if (a.op() == ExprOp::read) {
    const Read &x = stage.reads[static_cast<size_t>(a.index())], &y = stage.reads[static_cast<size_t>(b.index())];
    return x.stage == y.stage && x.index == y.index;
  }
  if (a.args().empty()) return a == b;
  if (known.contains({a.node(), b.node()})) return true;
  for (size_t i = 0; i < a.args().size(); ++i)
    if (!resemble(stage, a.args()[i], b.args()[i], known)) return false;
  known.insert({a.node(), b.node()});
  return true;
}

bool is_short(const Expr& value) {
  size_t nodes = 0;
  value.visit([&](const Expr&) { ++nodes; });
  return nodes <= kMostNodes;
}

}  // namespace

RestedValue::RestedValue(const Stage& stage) : stage_(stage) {
  if (stage.anchor != Anchor::row) return;
  for (const StageOutput& o : stage.outputs) {
    if (o.param < 0 || o.dtype != DType::f32 || o.value.dtype() != DType::f32 || o.value.args().empty()) continue;
    if (!is_short(o.value)) continue;
    output_ = &o;
    for (reduction_ = 0; reduction_ < stage.reductions.size(); ++reduction_) {
      const Expr& reduced = stage.reductions[reduction_].value;
      bool holds = false;
      reduced.visit([&](const Expr& e) { holds |= is(e); });
      if (holds) return;
    }
    same_.clear();
  }
  output_ = nullptr;
}

bool RestedValue::is(const Expr& e) const {
  if (!output_ || e.op() != output_->value.op()) return false;
  const auto [at, fresh] = same_.try_emplace(e.node());
  Pairs known;
  if (fresh) at->second = resemble(stage_, e, output_->value, known);
  return at->second;
}

const std::vector<const Expr*>& RestedValue::nodes_over(const Expr& value) const {
  const auto [at, fresh] = over_.try_emplace(value.node());
  if (!fresh) return at->second;
  std::unordered_set<const ExprNode*> needed{value.node()};
  std::vector<const Expr*> all;
  value.visit([&](const Expr& e) { all.push_back(&e); });
  for (size_t i = all.size(); i-- > 0;) {
    if (!needed.contains(all[i]->node())) continue;
    at->second.push_back(all[i]);
    if (!is(*all[i]))
      for (const Expr& arg : all[i]->args()) needed.insert(arg.node());
  }
  std::reverse(at->second.begin(), at->second.end());
  return at->second;
}

}  // namespace opfuse
