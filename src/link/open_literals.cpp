// A thousand branches of one input, each with its own slope, are launches of some branches each:
//
//     y1 = leaky(x, 0.1), y2 = leaky(x, 0.2) ...      z1 = leaky(x, 0.3), z2 = leaky(x, 0.4) ...
//     y1 = leaky(x, c[0]), y2 = leaky(x, c[1]) ...    one kernel, c the last of its operands
#include "link/open_literals.hpp"

#include <algorithm>
#include <unordered_set>

#include "cpu/activation_form.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

/// What is emitted for these is the same whether an operand is a number or read.
bool takes_any(ExprOp op) {
  switch (op) {
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul:
    case ExprOp::min:
    case ExprOp::max:
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::gt:
    case ExprOp::ge:
    case ExprOp::select:
      return true;
    default:
      return false;
  }
}

bool is_literal(const Expr& e) { return e.is_constant() && !e.weak() && e.dtype() == DType::f32; }

size_t recognised(const Stage& stage) {
  size_t count = 0;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) { count += activation_form(e).has_value(); });
  return count;
}

bool is_plain_map(const KernelSpec& spec) {
  if (!is_single_stage(spec.region) || spec.schedule.skeleton != "generic") return false;
  const Stage& stage = spec.region.stages[0];
  return stage.anchor == Anchor::map && stage.reductions.empty();
}

}  // namespace

std::vector<float> Literals::values() const {
  std::vector<float> values;
  for (const Expr& e : nodes) values.push_back(static_cast<float>(e.value()));
  return values;
}

std::optional<Literals> literals_of(const KernelSpec& spec) {
  if (!is_plain_map(spec)) return std::nullopt;
  Literals found;
  std::unordered_set<const ExprNode*> seen, fixed;
  bool codes = false;
  const auto look = [&](const Expr& e) {
    codes |= e.op() == ExprOp::round_even;  // codes are looked up in tables, which numbers make
    if (is_literal(e) && seen.insert(e.node()).second) found.nodes.push_back(e);
    if (!takes_any(e.op()))
      for (const Expr& arg : e.args()) fixed.insert(arg.node());
  };
  for (const StageOutput& o : spec.region.stages[0].outputs) o.value.visit(look);
  std::erase_if(found.nodes, [&](const Expr& e) { return fixed.contains(e.node()); });
  if (codes || found.nodes.empty()) return std::nullopt;
  return found;
}

std::optional<KernelSpec> with_open(const KernelSpec& spec, const Literals& literals, const std::vector<bool>& open) {
  KernelSpec opened = spec;
  Stage& stage = opened.region.stages[0];
  const int param = static_cast<int>(opened.region.params.size());
  std::vector<std::pair<Expr, Expr>> reads;
  for (size_t i = 0; i < literals.nodes.size(); ++i) {
    if (!open[i]) continue;
    const IndexExpr place{{}, Dim(static_cast<int64_t>(reads.size())), {}};
    reads.emplace_back(literals.nodes[i], Expr::read(static_cast<int>(stage.reads.size()), DType::f32));
    stage.reads.push_back({-1, param, IndexMap{{place}}});
  }
  const auto read_of = [&](const Expr& leaf) {
    const auto at =
        std::find_if(reads.begin(), reads.end(), [&](const auto& r) { return r.first.node() == leaf.node(); });
    return at == reads.end() ? leaf : at->second;
  };
  for (StageOutput& o : stage.outputs) o.value = o.value.map_leaves(read_of);
  if (recognised(stage) != recognised(spec.region.stages[0])) return std::nullopt;
  const Shape shape{Dim(static_cast<int64_t>(reads.size()))};
  opened.region.params.push_back({ParamRole::constant, TensorType{DType::f32, shape}});
  opened.layouts.push_back({Layout::dense(1), {Dim(1)}});
  return opened;
}

}  // namespace opfuse
