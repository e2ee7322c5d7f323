#include "cpu/emit/generic/segments.hpp"

#include <algorithm>
#include <map>

#include "cpu/operation_cost.hpp"
#include "expr/real_ops.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kMostInTurns = 8;
constexpr int64_t kFewRegisters = 16;
constexpr double kLongestTurn = 4;  // of code that takes turns well, in functions as long as exp

bool computes_in_f64(ExprOp op) { return op == ExprOp::sin || op == ExprOp::cos || op == ExprOp::tan; }

double length_of(const Expr& e) {
  if (is_function(e.op())) return weight_of_function(e.op());
  return e.op() == ExprOp::pow ? kLongestTurn : 0;
}

std::vector<Expr> nodes_of(const Expr& value) {  // operands first
  std::vector<Expr> nodes;
  value.visit([&](const Expr& e) { nodes.push_back(e); });
  return nodes;
}

/// Nodes after which nothing but their own value goes on: places in the order of `nodes`. Between two of them as many
/// functions as take turns well, at least one.
std::vector<size_t> cuts_of(const std::vector<Expr>& nodes) {
  std::map<const ExprNode*, size_t> last;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const Expr& arg : nodes[i].args()) last[arg.node()] = i;
  std::vector<size_t> cuts;
  size_t end = 0;  // the last use of any value so far
  double length = 0, here = 0;
  size_t possible = nodes.size();  // none
  for (size_t i = 0; i < nodes.size(); ++i) {
    length += length_of(nodes[i]);
    const bool alone = end <= i && !nodes[i].args().empty() && nodes[i].dtype() == DType::f32 && !nodes[i].weak();
    if (possible < nodes.size() && length > kLongestTurn) {
      cuts.push_back(possible);
      length -= here;
      possible = nodes.size();
    }
    if (alone && length > 0) possible = i, here = length;
    if (!nodes[i].args().empty()) end = std::max(end, last[nodes[i].node()]);
  }
  return cuts;
}

/// The value of nodes[to], with nodes[from] read again; from the beginning where `from` is none of them.
Expr between(const std::vector<Expr>& nodes, size_t from, size_t to, const Expr& read) {
  std::map<const ExprNode*, Expr> made;
  for (size_t i = from < nodes.size() ? from : 0; i <= to; ++i) {
    if (from == i) {
      made.emplace(nodes[i].node(), read);
      continue;
    }
    std::vector<Expr> args;
    for (const Expr& arg : nodes[i].args()) {
      const auto at = made.find(arg.node());  // a leaf from before stays as it is
      args.push_back(at == made.end() ? arg : at->second);
    }
    made.emplace(nodes[i].node(), args.empty() ? nodes[i] : rebuilt(nodes[i], std::move(args)));
  }
  return made.at(nodes[to].node());
}

/// A result may lie where an operand of its size lies (program/in_place.hpp): the first loop overwrites that.
bool reads_place(const Kernel& k, const Stage& segment) {
  const StageOutput& output = segment.outputs[0];
  const std::set<int> used = reads_used(output.value);
  return std::any_of(used.begin(), used.end(), [&](int i) {
    const Read& read = segment.reads[static_cast<size_t>(i)];
    const Param& param = k.spec.region.params[static_cast<size_t>(read.index)];
    return read.index != output.param && param.role == ParamRole::input && param.type.shape == output.shape;
  });
}

}  // namespace

int64_t vectors_in_turns(const Expr& value, int64_t registers) {
  bool wide = registers <= kFewRegisters;
  value.visit([&](const Expr& e) { wide |= computes_in_f64(e.op()); });
  return wide ? kMostInTurns / 2 : kMostInTurns;
}

std::vector<Stage> segments_of(const Kernel& k, const StageEmitter& s) {
  const Stage& stage = s.stage;
  if (stage.outputs.size() != 1 || !stage.reductions.empty() || s.clips()) return {};
  const StageOutput& output = stage.outputs[0];
  const bool holds = output.param >= 0 && output.dtype == DType::f32 && output.value.dtype() == DType::f32;
  if (!holds) return {};
  const std::vector<Expr> nodes = nodes_of(output.value);
  std::vector<size_t> cuts = cuts_of(nodes);
  if (cuts.empty()) return {};
  cuts.push_back(nodes.size() - 1);
  const Expr again = Expr::read(static_cast<int>(stage.reads.size()), DType::f32);
  std::vector<Stage> segments;
  for (size_t i = 0; i < cuts.size(); ++i) {
    Stage segment = stage;
    segment.reads.push_back({-1, output.param, output.map});
    segment.outputs[0].value = between(nodes, i == 0 ? nodes.size() : cuts[i - 1], cuts[i], again);
    if (i > 0 && reads_place(k, segment)) return {};
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace opfuse::cpu
