// Evaluates shape arithmetic backwards from a value, through OpInfo::dims of its producers. Each value is evaluated
// once (shared subexpressions), and only when its own type says that it is small and integer. Chains may be of any
// length: a node whose operands are not known yet says which it asked for, and is asked again behind them.
#include "ir/dim_values.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "ir/body.hpp"

namespace opfuse {
namespace {

using Dims = std::optional<std::vector<Dim>>;

Dims integers_of(const Tensor& t) {
  if ((!is_integer(t.dtype()) && t.dtype() != DType::boolean) || t.elements() > most_dim_values()) return std::nullopt;
  std::vector<Dim> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.emplace_back(t.integer(i));
  return out;
}

/// A whole number cast to a real one, as the ends of ranges are. Results of arithmetic with reals do not count as
/// sizes.
bool is_size_as_real(const Value& value) {
  const Node* node = value.producer;
  return is_float(value.type.dtype) && node && node->inputs.size() == 1 && is_integer(node->input(0)->type.dtype);
}

bool is_integral(const TensorType& type) {
  return (type.dtype == DType::i64 || type.dtype == DType::i32 || type.dtype == DType::boolean) && type.shape.ranked;
}

/// Its producer may say what it holds, or the body that it stands for.
bool may_hold_dims(const Value& value) {
  const Node* node = value.producer;
  if (!node || !value.type.shape.ranked || !(is_integral(value.type) || is_size_as_real(value))) return false;
  if (!stands_for_body(*node) && (!node->op->dims || node->outputs.size() != 1)) return false;
  const auto count = value.type.shape.elements().constant();
  return count && *count <= most_dim_values();
}

}  // namespace

int64_t most_dim_values() { return limits_in_force().shape_values; }

Dims DimEvaluator::of(const Value& value) {
  if (value.constant) return integers_of(*value.constant);
  if (const auto found = known_.find(value.id); found != known_.end()) return found->second;
  if (!may_hold_dims(value)) return std::nullopt;
  std::vector<const Value*> open{&value};
  while (!open.empty()) {
    const Value& next = *open.back();
    std::vector<const Value*> missing;
    if (!known_.contains(next.id)) {
      Dims dims = stands_for_body(*next.producer) ? attempt_body(next, missing) : attempt(*next.producer, missing);
      if (missing.empty()) known_[next.id] = std::move(dims);
    }
    if (missing.empty()) open.pop_back();
    open.insert(open.end(), missing.begin(), missing.end());
  }
  return known_.at(value.id);
}

/// The node's answer, which does not count where it asked for operands that are `missing`.
Dims DimEvaluator::attempt(const Node& node, std::vector<const Value*>& missing) const {
  std::vector<TensorType> types;
  std::vector<const Tensor*> constants;
  for (const Value* in : node.inputs) {
    types.push_back(in ? in->type : TensorType{});
    constants.push_back(in && in->constant ? &*in->constant : nullptr);
  }
  Inference inference(types, constants, 1, [&](size_t i) -> Dims {
    const Value* in = node.input(i);
    if (!in || in->constant) return std::nullopt;
    if (const auto found = known_.find(in->id); found != known_.end()) return found->second;
    if (!may_hold_dims(*in)) return std::nullopt;
    missing.push_back(in);
    return std::nullopt;
  });
  try {
    return node.op->dims(node.attrs(), inference);
  } catch (const Error&) {
    if (missing.empty()) throw;
    return std::nullopt;
  }
}

/// Size arithmetic that was grouped: its body with what is known of the node's operands.
Dims DimEvaluator::attempt_body(const Value& value, std::vector<const Value*>& missing) const {
  const Node& node = *value.producer;
  DimEvaluator inside;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* in = node.inputs[i];
    if (!in) continue;
    Dims& known = inside.known_[node.body->inputs()[i]->id];
    if (in->constant) {
      known = integers_of(*in->constant);
    } else if (may_hold_dims(*in)) {
      if (const auto found = known_.find(in->id); found != known_.end())
        known = found->second;
      else
        missing.push_back(in);
    }
  }
  if (!missing.empty()) return std::nullopt;
  const auto at = std::find(node.outputs.begin(), node.outputs.end(), &value) - node.outputs.begin();
  return inside.of(*node.body->outputs()[static_cast<size_t>(at)]);
}

Dims dim_values(const Value& value) { return DimEvaluator{}.of(value); }

Dims Inference::dims(size_t i) const {
  if (const Tensor* t = constant(i)) return integers_of(*t);
  return dim_values_ ? dim_values_(i) : std::nullopt;
}

std::vector<Dim> Inference::require_dims(size_t i, std::string_view what) const {
  if (auto found = dims(i)) return *found;
  const auto count = type(i).shape.ranked ? type(i).shape.elements().constant() : std::nullopt;
  if (is_integral(type(i)) && count && *count > most_dim_values())
    throw fail(E::unknown_dimension, "{} of {} integers must be constant, only {} are followed through shapes", what,
               *count, most_dim_values())
        .hint("fix the dimensions it depends on (--dim NAME=VALUE), or " + how_to_raise("shape_values"));
  throw fail(E::unknown_dimension, "{} must be constant or follow from shapes, but is computed from data", what)
      .hint("fix the dimensions it depends on (--dim NAME=VALUE), or export the model with static shapes");
}

}  // namespace opfuse
