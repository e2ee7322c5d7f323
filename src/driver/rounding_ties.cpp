// Values are computed backwards from the one that is asked for, down to what is known.
//
//     x -- conv -- u -- quantize -- q -- dequantize -- y        u / scale = 3.4999999: q is 3, or 4 where the tie at
//                                                               3.5 is nearer than the error of u
#include "driver/rounding_ties.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/fail.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "ops/axes.hpp"
#include "ops/quantize.hpp"

namespace opfuse {

namespace {

constexpr size_t kMostRoundings = 8;
constexpr double kDivision = 0x1p-22;  // relative error of one fp32 division and of its operands' rounding

bool by_element(const Node& node) { return node.op->kind == OpKind::elementwise || node.op->kind == OpKind::injective; }

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (std::isfinite(t.real(i))) most = std::max(most, std::fabs(t.real(i)));
  return most;
}

/// Elements of x behind one another that share a scale.
int64_t run_of_scale(const Tensor& x, int64_t axis) {
  int64_t inner = 1;
  for (size_t d = normalize_axis(axis, x.rank()) + 1; d < x.rank(); ++d) inner *= x.dim(d);
  return inner;
}

struct Quantised {
  const Tensor &x, &scale;
  const Tensor* zero;  ///< null: 0
  int64_t axis;
};

/// Moves the elements of q that lie on ties to the other step.
void decide_otherwise(Tensor& q, const Quantised& from, double absolute, double relative) {
  const auto& [x, scale, zero, axis] = from;
  const int64_t run = scale.elements() == 1 ? x.elements() : run_of_scale(x, axis);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t p = i / run % scale.elements();
    const double s = scale.real(p), u = x.real(i) / s;
    if (!(std::fabs(u) < 1e9)) continue;  // saturated, infinite or NaN
    const double below = std::floor(u);
    if (std::fabs(u - (below + 0.5)) > std::max(absolute / s, relative * std::fabs(u))) continue;
    const auto other = static_cast<int64_t>(std::nearbyint(u) == below ? below + 1 : below);
    q.set_integer(i, other + (zero ? zero->integer(p) : 0));  // saturates
  }
}

}  // namespace

RoundingTies::RoundingTies(const Graph& fused, SymbolValues symbols, double tolerance)
    : graph_(fused.clone()), symbols_(std::move(symbols)), tolerance_(tolerance) {
  expand_bodies(graph_);
  for (const Value* v : graph_.inputs()) by_name_[value_name(*v)] = v;
  for (const Value* v : graph_.constants()) by_name_[value_name(*v)] = v;
  for (const Node* node : graph_.nodes())
    for (const Value* v : node->outputs) by_name_[value_name(*v)] = v;
}

/// One computation: roundings of `flipped` are decided the other way.
struct RoundingTies::Evaluation {
  const RoundingTies& owner;
  const std::map<std::string, Tensor>& known;
  const std::set<std::string>* leaves;  ///< null: all of `known`
  std::set<const Node*> flipped = {};
  std::map<const Value*, Tensor> done = {};

  bool is_leaf(const Value& v) const {
    return !v.producer || (known.contains(value_name(v)) && (!leaves || leaves->contains(value_name(v))));
  }

  const Tensor& operator()(const Value& v) {
    if (const auto at = done.find(&v); at != done.end()) return at->second;
    if (is_leaf(v)) {
      OPFUSE_CHECK(v.constant || known.contains(value_name(v)), "value '{}' was not computed before it is read",
                   value_name(v));
      const Tensor& given = v.constant ? *v.constant : known.at(value_name(v));
      const bool real = is_float(given.dtype()) && given.dtype() != DType::f64;
      return done[&v] = real ? given.cast(DType::f64) : given;
    }
    const Node& node = *v.producer;
    std::vector<const Tensor*> operands;
    for (const Value* input : node.inputs) operands.push_back(input ? &(*this)(*input) : nullptr);
    InterpretOptions options;
    options.symbols = owner.symbols_;
    std::vector<Tensor> results = interpret_node(node, operands, options);
    if (flipped.contains(&node)) decide(node, operands, results[0]);
    for (size_t i = 0; i < results.size(); ++i) done[node.outputs[i]] = std::move(results[i]);
    return done.at(&v);
  }

  void decide(const Node& node, const std::vector<const Tensor*>& operands, Tensor& q) const {
    const bool read = is_leaf(*node.input(0));
    const double absolute = read ? 0 : owner.tolerance_ * largest(*operands[0]);
    const Tensor* zero = operands.size() > 2 ? operands[2] : nullptr;
    decide_otherwise(q, {*operands[0], *operands[1], zero, node.as<QuantizeLinear>().axis}, absolute, kDivision);
  }

  /// Roundings between the leaves and `v` on paths of single elements, and the values on these paths.
  void collect(const Value& v, std::vector<const Node*>& found, std::set<const Value*>& path) const {
    if (is_leaf(v) || !by_element(*v.producer) || !path.insert(&v).second) return;
    if (v.producer->is("quantize_linear")) found.push_back(v.producer);
    for (const Value* input : v.producer->inputs)
      if (input) collect(*input, found, path);
  }
};

/// Subsets of `n` things as bits, the small ones first; without the empty one.
static std::vector<size_t> subsets(size_t n) {
  std::vector<size_t> all;
  for (size_t subset = 1; subset < size_t{1} << n; ++subset) all.push_back(subset);
  std::stable_sort(all.begin(), all.end(), [](size_t a, size_t b) { return std::popcount(a) < std::popcount(b); });
  return all;
}

Tensor RoundingTies::value(const std::string& name, const std::map<std::string, Tensor>& known) {
  Evaluation evaluate{*this, known, nullptr};
  return evaluate(*by_name_.at(name));
}

void RoundingTies::values(const std::string& name, const std::map<std::string, Tensor>& known,
                          const std::set<std::string>& leaves, const std::function<bool(const Tensor&)>& take) {
  const Value& wanted = *by_name_.at(name);
  Evaluation base{*this, known, &leaves};
  if (!take(base(wanted))) return;
  std::vector<const Node*> roundings;
  std::set<const Value*> path;
  base.collect(wanted, roundings, path);
  roundings.resize(std::min(roundings.size(), kMostRoundings));
  for (const Value* v : path) base.done.erase(v);  // what is left does not depend on these roundings
  for (const size_t subset : subsets(roundings.size())) {
    Evaluation evaluate = base;
    for (size_t i = 0; i < roundings.size(); ++i)
      if (subset >> i & 1) evaluate.flipped.insert(roundings[i]);
    if (!take(evaluate(wanted))) return;
  }
}

}  // namespace opfuse
