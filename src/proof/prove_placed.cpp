// A launch of a plug-in, run alone on what the launches before it stored. Of pieces that are products with a bias and
// an activation it is known how far single precision may be off, whatever the order of the sums:
//
//     |got - want| <= 1.13 (K + 16) u S + 4 u |want|        S = sum |x| |w| + |b|, u = 2^-24, 1.13 the steepest GELU
//
// S is what the piece computes from magnitudes without its activations. Other pieces are judged by the outputs alone.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "interp/interpreter.hpp"
#include "ir/placed.hpp"
#include "ir/value_name.hpp"
#include "match/attention.hpp"
#include "match/pattern.hpp"
#include "proof/judge.hpp"
#include "proof/prove_groups.hpp"

namespace opfuse {
namespace {

constexpr double kSteepest = 1.13, kUnit = 0x1p-24;

bool is_activation(const Node& node) { return operator_name(node) == "relu" || operator_name(node) == "gelu"; }

bool is_judged(const Graph& body) {
  static const std::set<std::string_view> kKnown{"matmul", "gemm", "add", "relu", "gelu", kInProjection};
  return std::all_of(body.nodes().begin(), body.nodes().end(),
                     [](const Node* node) { return kKnown.contains(operator_name(*node)); });
}

Tensor magnitude(const Tensor& t) {
  Tensor positive = t.clone();
  for (int64_t i = 0, n = t.elements(); i < n; ++i) positive.set_real(i, std::fabs(t.real(i)));
  return positive;
}

std::vector<Tensor> sums_of_magnitudes(const Graph& body, const std::vector<Tensor>& operands) {
  Graph sums = body.clone();
  const std::vector<Node*> nodes = sums.nodes();
  for (Node* node : nodes)
    if (is_activation(*node)) sums.replace_uses(node->output(), node->input(0));
  std::vector<Tensor> positive;
  for (const Tensor& t : operands) positive.push_back(magnitude(t));
  return interpret(sums, positive);
}

double longest_sum(const Node& piece) {
  int64_t longest = 1;
  for (const Value* v : piece.inputs)
    if (v && v->is_constant())
      for (const int64_t size : v->constant->sizes()) longest = std::max(longest, size);
  return static_cast<double>(longest);
}

/// The first element beyond its bound, in words; empty: none.
std::string beyond(const Tensor& got, const Tensor& want, const Tensor& sums, double longest) {
  for (int64_t i = 0, n = want.elements(); i < n; ++i) {
    const double bound = kSteepest * (longest + 16) * kUnit * sums.real(i) + 4 * kUnit * std::fabs(want.real(i));
    const double off = std::fabs(got.real(i) - want.real(i));
    if (!(off <= bound))
      return fmt::format("element {} is {} where {} is expected, off by {:.2g}; single precision allows {:.2g}", i,
                         got.real(i), want.real(i), off, bound);
  }
  return {};
}

}  // namespace

void GroupProver::prove_placed(size_t index, GroupComparison& result) {
  const Launch& launch = runner_.program().launches[index];
  const auto is_it = [&](const Node* node) { return node->op == placed_op() && node->label == launch.name; };
  const auto at = std::find_if(graph_.nodes().begin(), graph_.nodes().end(), is_it);
  if (at == graph_.nodes().end() || placed_kind(**at) != PlacedKind::run || !is_judged(*(*at)->body)) return;
  const Node& piece = **at;
  std::vector<Tensor> operands;
  for (size_t i = 0; i < piece.inputs.size(); ++i)
    operands.push_back(piece.inputs[i]->is_constant() ? *piece.inputs[i]->constant : operand(launch.buffers[i], {}));
  const std::vector<Tensor> got = runner_.run_on_device(index, operands, piece);
  const std::vector<Tensor> want = interpret(*piece.body, operands);
  const std::vector<Tensor> sums = sums_of_magnitudes(*piece.body, operands);
  for (size_t r = 0; r < want.size(); ++r) {
    const std::string name = value_name(*piece.outputs[r]);
    const Difference d = difference(got[r], want[r]);
    if (r == 0 || d.relative() > result.difference.relative()) result.difference = d, result.output = name;
    if (result.problem.empty()) result.problem = beyond(got[r], want[r], sums[r], longest_sum(piece));
    noise_[name] = distance_of(got[r], want[r]);
    values_[name] = got[r];
  }
  result.ok = result.problem.empty();
}

}  // namespace opfuse
