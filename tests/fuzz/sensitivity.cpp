// noise: every computed real value x and every input becomes x (1 + e r), r uniform in [-1, 1], e some rounding steps u
// of its type:
//
//   f32  16 u = 2^-20      f16  2 u = 2^-10      bf16  2 u = 2^-7
//
// Noise on operands of a sum of n terms moves it by e sqrt(n) rms(term), as roundings do. The tolerance of element i is
//
//   8 d_i + 4 rms(d) + 2 e |y_i| + m,     d_i = largest change of y_i over the samples, m = least number of the type
//
// One more sample rounds every value to its type, without noise: what is equal only then (a sum of halves and a
// constant) no noise would make equal. Two values that noise orders the other way round may be equal, whatever rounds
// them: an equality in a sample is true there too, and a cast to bool of what changes its sign is false. GELU and SiLU
// below -1 are moved by the 4e-7 that tables may be off there, too. What may be larger than the type's largest number
// may be infinite. A product of many numbers that leaves its type on the way may be anything, and
// squares that are summed may be 0 or infinite where their type ends.
#include "fuzz/sensitivity.hpp"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "fuzz/exactness.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"

namespace opfuse::fuzz {
namespace {

double step_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f64:
      return 0x1p-40;
    default:
      return 0x1p-20;
  }
}

void shake(Tensor& tensor, DType declared, double scale, Random& random) {
  if (tensor.dtype() != DType::f64) return;
  tensor = tensor.clone();
  const double step = step_of(declared) * scale;
  for (double& x : tensor.mutable_view<double>()) x *= 1 + step * (2 * random.uniform() - 1);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The least and the largest positive number of a type.
std::pair<double, double> range_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {0x1p-24, 65504};
    case DType::bf16:
      return {0x1p-126, 0x1.FEp127};
    case DType::f32:
      return {0x1p-126, 0x1.FFFFFEp127};
    default:
      return {0, kInfinity};
  }
}

/// SiLU and GELU by tables keep their distance to zero there, not their digits (docs/accuracy.md).
constexpr double kTableEnd = -1, kTableError = 4e-7;

void shake_activation(Tensor& result, const Tensor& operand, double scale, Random& random) {
  if (result.dtype() != DType::f64 || operand.elements() != result.elements()) return;
  result = result.clone();
  const auto values = result.mutable_view<double>();
  for (int64_t i = 0; i < operand.elements(); ++i)
    if (operand.real(i) < kTableEnd) values[static_cast<size_t>(i)] += kTableError * scale * (2 * random.uniform() - 1);
}

/// What equalities and casts to bool compare with zero, without noise.
using Compared = std::unordered_map<const Node*, Tensor>;

/// x - y of an equality of reals, x of their cast to bool; empty for all other nodes.
Tensor compared_by(const Node& node, const std::vector<const Tensor*>& operands) {
  const bool reals = !operands.empty() && operands[0] && operands[0]->dtype() == DType::f64;
  if (!reals) return {};
  if (node.is("cast") && node.output()->type.dtype == DType::boolean) return *operands[0];
  if (!node.is("equal")) return {};
  const OpInfo* sub = op_named("sub");
  return sub->reference(sub->attrs_from_map({}).get(), operands, Precision::exact).at(0);
}

/// Of a sample: zero lies between x and what it was without noise.
void meet_at_zero(const Node& node, const Tensor& x, const Tensor& base, Tensor& result) {
  if (x.sizes() != base.sizes() || result.elements() != x.elements()) return;
  result = result.clone();
  for (int64_t i = 0; i < x.elements(); ++i)
    if (x.real(i) * base.real(i) <= 0) result.set_integer(i, node.is("equal") ? 1 : 0);
}

/// A product of many numbers may leave its type on the way and come back: 2^-100 2^-100 2^120 2^100 is 2^20 in double,
/// and in f32 0, infinite or NaN, as the order has it. In a sample such a product is one of these.
void leave_the_type(const Node& node, const std::vector<const Tensor*>& operands, const SymbolValues& symbols,
                    Tensor& result, Random& random) {
  const auto [least, largest] = range_of(node.output()->type.dtype);
  const auto bound = [&](auto&& of) {
    std::vector<const Tensor*> pointers = operands;
    Tensor magnitudes = operands[0]->clone();
    for (int64_t i = 0; i < magnitudes.elements(); ++i) magnitudes.set_real(i, of(std::abs(magnitudes.real(i))));
    pointers[0] = &magnitudes;
    return interpret_node(node, pointers, {.symbols = symbols, .keep_exact = true}).at(0);
  };
  const Tensor high = bound([](double x) { return std::max(x, 1.0); });
  const Tensor low = bound([](double x) { return x == 0 ? 1 : std::min(x, 1.0); });
  result = result.clone();
  for (int64_t i = 0; i < result.elements(); ++i) {
    if (high.real(i) > largest)
      result.set_real(i, random.uniform() < 0.5 ? std::numeric_limits<double>::quiet_NaN() : kInfinity);
    else if (low.real(i) < least && random.uniform() < 0.5)
      result.set_real(i, 0);
  }
}

/// Nodes that sum squares, which leave the type before their root does: of 2^-70 in f32 they are 0.
bool sums_squares(const Node& node) {
  return node.is("reduce_l2") || node.is("reduce_sum_square") || node.is("lp_pool") || node.is("global_lp_pool");
}

/// In a sample, numbers whose square leaves the type at its lower end are 0 or what they are; at its upper end
/// infinite.
Tensor with_squares_of(DType declared, const Tensor& x, Random& random) {
  const auto [least, largest] = range_of(declared);
  Tensor flushed = x.clone();
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double square = x.real(i) * x.real(i);
    if (square > largest)
      flushed.set_real(i, kInfinity);
    else if (square < least && random.uniform() < 0.5)
      flushed.set_real(i, 0);
  }
  return flushed;
}

/// How values are kept.
struct Values {
  Random* random = nullptr;  ///< noise of `scale`; null: as they are
  double scale = 0;
  bool rounded = false;               ///< to their types
  bool* exact = nullptr;              ///< becomes false when a value or a partial sum needs too many bits
  Compared* record = nullptr;         ///< of the run without noise
  const Compared* against = nullptr;  ///< of samples
};

/// The graph in double.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& symbols,
                        const Values& how) {
  std::unordered_map<const Value*, Tensor> values;
  const auto keep = [&](const Value* value, Tensor tensor) {
    const DType dtype = value->type.dtype;
    if (how.rounded && is_float(dtype) && tensor.dtype() != dtype) tensor = tensor.cast(dtype);
    if (is_float(tensor.dtype()) && tensor.dtype() != DType::f64) tensor = tensor.cast(DType::f64);
    if (how.exact && is_float(dtype)) *how.exact = *how.exact && bits_needed(tensor) <= exact_bits(dtype);
    if (how.random && !value->is_constant()) shake(tensor, dtype, how.scale, *how.random);
    values[value] = std::move(tensor);
  };
  for (size_t i = 0; i < inputs.size(); ++i) keep(graph.inputs()[i], inputs[i]);
  for (const Value* constant : graph.constants()) keep(constant, *constant->constant);
  for (const Node* node : graph.nodes()) {
    std::vector<const Tensor*> operands;
    for (const Value* value : node->inputs) operands.push_back(value ? &values.at(value) : nullptr);
    if (how.exact && *how.exact) *how.exact = sums_stay_exact(*node, operands, symbols);
    Tensor squared;
    if (how.random && sums_squares(*node) && operands[0]->dtype() == DType::f64) {
      squared = with_squares_of(node->output()->type.dtype, *operands[0], *how.random);
      operands[0] = &squared;
    }
    std::vector<Tensor> results = interpret_node(*node, operands, {.symbols = symbols, .keep_exact = true});
    if (how.random && (node->is("gelu") || node->is("silu")))
      shake_activation(results[0], *operands[0], how.scale, *how.random);
    if (how.random && node->is("reduce_prod") && results[0].dtype() == DType::f64)
      leave_the_type(*node, operands, symbols, results[0], *how.random);
    if (how.record || how.against) {
      Tensor x = compared_by(*node, operands);
      if (how.record && !x.empty())
        (*how.record)[node] = std::move(x);
      else if (how.against)
        if (const auto at = how.against->find(node); at != how.against->end())
          meet_at_zero(*node, x, at->second, results[0]);
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) keep(node->outputs[i], std::move(results[i]));
  }
  std::vector<Tensor> outputs;
  for (const Value* value : graph.outputs()) outputs.push_back(values.at(value));
  return outputs;
}

Tensor tolerance_of(const Tensor& base, const std::vector<Tensor>& samples, DType declared) {
  Tensor tolerance(DType::f64, base.sizes());
  const auto t = tolerance.mutable_view<double>();
  double squares = 0;
  for (int64_t i = 0; i < base.elements(); ++i) {
    const double y = base.real(i);
    double& d = t[static_cast<size_t>(i)];
    for (const Tensor& sample : samples) {
      const double other = sample.sizes() == base.sizes() ? sample.real(i) : kInfinity;
      d = std::isfinite(y) && std::isfinite(other) ? std::max(d, std::abs(other - y)) : kInfinity;
    }
    if (!is_float(base.dtype())) d = d > 0 ? kInfinity : 0;
    if (std::isfinite(d)) squares += d * d;
  }
  if (!is_float(base.dtype())) return tolerance;
  const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(base.elements())));
  for (int64_t i = 0; i < base.elements(); ++i) {
    double& d = t[static_cast<size_t>(i)];
    d = 8 * d + 4 * rms + 2 * step_of(declared) * std::abs(base.real(i)) + range_of(declared).first;
    if (std::isnan(d)) d = kInfinity;
  }
  return tolerance;
}

}  // namespace

Expected expected_of(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& symbols,
                     const SensitivityOptions& options) {
  Compared compared;
  Expected expected{run(graph, inputs, symbols, {.record = &compared}), {}};
  std::vector<std::vector<Tensor>> samples(expected.outputs.size());
  Random random(options.seed, "noise");
  for (int s = 0; s <= options.samples; ++s) {
    Values how = s == 0 ? Values{.rounded = true} : Values{.random = &random, .scale = options.scale};
    how.against = &compared;
    const std::vector<Tensor> sample = run(graph, inputs, symbols, how);
    for (size_t i = 0; i < sample.size(); ++i) samples[i].push_back(sample[i]);
  }
  for (size_t i = 0; i < samples.size(); ++i)
    expected.tolerances.push_back(tolerance_of(expected.outputs[i], samples[i], graph.outputs()[i]->type.dtype));
  return expected;
}

std::optional<Expected> exactly(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& symbols) {
  bool exact = true;
  Expected expected{run(graph, inputs, symbols, {.exact = &exact}), {}};
  if (!exact) return std::nullopt;
  for (const Tensor& output : expected.outputs) expected.tolerances.emplace_back(DType::f64, output.sizes());
  return expected;
}

std::string judge(const Expected& expected, const std::vector<Tensor>& got, const Graph& graph) {
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor &want = expected.outputs[i], &tolerance = expected.tolerances[i];
    const std::string& name = graph.outputs()[i]->name;
    if (got[i].sizes() != want.sizes())
      return fmt::format("{} is {}, expected {}", name, got[i].type().text(), want.type().text());
    for (int64_t k = 0; k < want.elements(); ++k) {
      const double g = got[i].real(k), w = want.real(k), t = tolerance.real(k);
      if (t == kInfinity || std::abs(g - w) <= t || g == w) continue;
      if (std::isinf(g) && (g > 0 ? w + t : t - w) >= range_of(graph.outputs()[i]->type.dtype).second) continue;
      return fmt::format("{}[{}] of {} is {:.9g}, expected {:.9g} +- {:.2g}", name, k, got[i].type().text(), g, w, t);
    }
  }
  return {};
}

}  // namespace opfuse::fuzz
