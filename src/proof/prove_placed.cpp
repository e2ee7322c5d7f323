// A launch of a device, run alone on what the launches before it stored. Of pieces that are products with a bias, a
// BatchNorm and an activation it is known how far single precision may be off, whatever the order of the sums:
//
//     |got - want| <= 1.13 (K + 16) u S + 4 u |want|        S = sum |x| |w| + |b|, u = 2^-24, 1.13 the steepest GELU
//
// S is what the piece computes from magnitudes without its activations; means are subtracted, so theirs are negative.
// Pieces of other operators are held to 64 (K + 16) u of their largest result, K the longest row that they read; the
// outputs of the whole are judged by their conditioning besides.
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

constexpr double kSteepest = 1.13, kUnit = 0x1p-24, kOtherOperators = 64;
constexpr size_t kMeanOfBatchNorm = 3;

bool is_activation(const Node& node) { return operator_name(node) == "relu" || operator_name(node) == "gelu"; }

/// Weights are operands: a GPU's pieces have them inside.
bool is_product(const Graph& body) {
  static const std::set<std::string_view> kKnown{"matmul", "gemm", "conv", "batch_norm",
                                                 "add",    "relu", "gelu", kInProjection};
  for (const Value* constant : body.constants())
    if (constant->constant->elements() > 1) return false;
  return std::all_of(body.nodes().begin(), body.nodes().end(),
                     [](const Node* node) { return kKnown.contains(operator_name(*node)); });
}

bool is_mean(const Value& operand) {
  return std::any_of(operand.uses.begin(), operand.uses.end(), [](const Use& use) {
    return operator_name(*use.node) == "batch_norm" && static_cast<size_t>(use.index) == kMeanOfBatchNorm;
  });
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
  std::vector<Tensor> magnitudes;
  for (size_t i = 0; i < operands.size(); ++i) {
    magnitudes.push_back(magnitude(operands[i]));
    if (!is_mean(*sums.inputs()[i])) continue;
    for (int64_t e = 0; e < operands[i].elements(); ++e) magnitudes[i].set_real(e, -magnitudes[i].real(e));
  }
  return interpret(sums, magnitudes);
}

int64_t longest_in(const Value& v) {
  const std::vector<Dim>& dims = v.type.shape.dims;
  int64_t longest = 1, taps = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t size = dims[d].constant().value_or(1);
    longest = std::max(longest, size);
    if (d > 0) taps *= size;
  }
  return v.is_constant() && dims.size() == 4 ? taps : longest;  // filters sum over channels and taps
}

double longest_sum(const Node& piece) {
  int64_t longest = 1;
  for (const Value* v : piece.inputs)
    if (v) longest = std::max(longest, longest_in(*v));
  for (const Value* v : piece.body->constants()) longest = std::max(longest, longest_in(*v));
  return static_cast<double>(longest);
}

/// Of operators whose errors are not modelled.
std::string far_from(const Tensor& got, const Tensor& want, double longest) {
  double largest = 0, off = 0;
  for (int64_t i = 0, n = want.elements(); i < n; ++i) {
    largest = std::max(largest, std::fabs(want.real(i)));
    const double d = std::fabs(got.real(i) - want.real(i));
    if (!(d <= off)) off = d;
  }
  const double bound = kOtherOperators * (longest + 16) * kUnit * largest;
  if (off <= bound) return {};
  return fmt::format("off by {:.2g} where single precision allows {:.2g}", off, bound);
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
  if (at == graph_.nodes().end() || placed_kind(**at) != PlacedKind::run) return;
  const Node& piece = **at;
  std::vector<Tensor> operands;
  for (size_t i = 0; i < piece.inputs.size(); ++i)
    operands.push_back(piece.inputs[i]->is_constant() ? *piece.inputs[i]->constant : operand(launch.buffers[i], {}));
  const std::vector<Tensor> got = runner_.run_on_device(index, operands, piece);
  const std::vector<Tensor> want = interpret(*piece.body, operands);
  const bool product = is_product(*piece.body);
  const std::vector<Tensor> sums = product ? sums_of_magnitudes(*piece.body, operands) : std::vector<Tensor>();
  for (size_t r = 0; r < want.size(); ++r) {
    const std::string name = value_name(*piece.outputs[r]);
    const Difference d = difference(got[r], want[r]);
    if (r == 0 || d.relative() > result.difference.relative()) result.difference = d, result.output = name;
    if (result.problem.empty())
      result.problem = product ? beyond(got[r], want[r], sums[r], longest_sum(piece))
                               : far_from(got[r], want[r], longest_sum(piece));
    noise_[name] = distance_of(got[r], want[r]);
    values_[name] = got[r];
  }
  result.ok = result.problem.empty();
}

}  // namespace opfuse
