#include "proof/bias_codes.hpp"

#include <algorithm>
#include <cmath>

#include "ir/value_name.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"

namespace opfuse {
namespace {

/// The constant that a value of a group's body is; null: none.
const Tensor* constant_of(const Node& group, const Value* value) {
  const std::vector<Value*>& inputs = group.body->inputs();
  const auto at = std::find(inputs.begin(), inputs.end(), value);
  if (at != inputs.end()) value = group.inputs[static_cast<size_t>(at - inputs.begin())];
  return value && value->constant ? &*value->constant : nullptr;
}

double largest_of(const Node& group) {
  double largest = 0;
  for (const Node* node : group.body->nodes()) {
    if (!is_a<DequantizeLinear>(*node) || node->input(0)->type.dtype != DType::i32) continue;
    const Tensor* codes = constant_of(group, node->input(0));
    for (int64_t i = 0, n = codes ? codes->elements() : 0; i < n; ++i)
      largest = std::max(largest, std::fabs(static_cast<double>(codes->integer(i))));
  }
  return largest;
}

}  // namespace

std::map<std::string, double> bias_codes(const Graph& graph) {
  std::map<std::string, double> of_result;
  for (const Node* node : graph.nodes()) {
    const double largest = node->body ? largest_of(*node) : 0;
    if (largest > 0)
      for (const Value* result : node->outputs) of_result[value_name(*result)] = largest;
  }
  return of_result;
}

}  // namespace opfuse
