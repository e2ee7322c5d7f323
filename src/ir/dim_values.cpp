// Evaluates shape arithmetic backwards from a value, through OpInfo::dims of its producers. Each value is
// evaluated once per call (shared subexpressions), and only when its own type says that it is small and integer.
#include "ir/dim_values.hpp"

#include <map>

#include "base/fail.hpp"

namespace opfuse {
namespace {

using Dims = std::optional<std::vector<Dim>>;

constexpr int kMaxDepth = 200;  // producers in a chain; deeper ones are not shape arithmetic

Dims integers_of(const Tensor& t) {
  if ((!is_integer(t.dtype()) && t.dtype() != DType::boolean) || t.elements() > kMaxDimValues) return std::nullopt;
  std::vector<Dim> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.emplace_back(t.integer(i));
  return out;
}

bool may_hold_dims(const TensorType& type) {
  if (type.dtype != DType::i64 && type.dtype != DType::i32 && type.dtype != DType::boolean) return false;
  if (!type.shape.ranked) return false;
  auto count = type.shape.elements().constant();
  return count && *count <= kMaxDimValues;
}

struct Evaluator {
  std::map<int, Dims> known;  // by value id

  Dims of(const Value& value, int depth) {
    if (value.constant) return integers_of(*value.constant);
    const Node* node = value.producer;
    if (!node || !node->op->dims || node->outputs.size() != 1 || depth > kMaxDepth) return std::nullopt;
    if (!may_hold_dims(value.type)) return std::nullopt;
    if (auto found = known.find(value.id); found != known.end()) return found->second;
    return known[value.id] = of_node(*node, depth);
  }

  Dims of_node(const Node& node, int depth) {
    std::vector<TensorType> types;
    std::vector<const Tensor*> constants;
    for (const Value* in : node.inputs) {
      types.push_back(in ? in->type : TensorType{});
      constants.push_back(in && in->constant ? &*in->constant : nullptr);
    }
    Inference inference(types, constants, 1, [&](size_t i) -> Dims {
      return i < node.inputs.size() && node.inputs[i] ? of(*node.inputs[i], depth + 1) : std::nullopt;
    });
    return node.op->dims(node.attrs(), inference);
  }
};

}  // namespace

Dims dim_values(const Value& value) { return Evaluator{}.of(value, 0); }

Dims Inference::dims(size_t i) const {
  if (const Tensor* t = constant(i)) return integers_of(*t);
  return dim_values_ ? dim_values_(i) : std::nullopt;
}

std::vector<Dim> Inference::require_dims(size_t i, std::string_view what) const {
  if (auto found = dims(i)) return *found;
  throw fail(E::unknown_dimension, "{} must be constant or follow from shapes, but is computed from data", what)
      .hint("fix the dimensions it depends on (--dim NAME=VALUE), or export the model with static shapes");
}

}  // namespace opfuse
