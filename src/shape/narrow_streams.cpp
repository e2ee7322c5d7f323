// An image that groups with products in bf16 (f16, tf32) pass on lies in memory in that type alone, residual streams
// too:
//
//     [conv, add r, relu, cast] -- y f32 ---------------- [conv, add y, relu]
//                               -- y' bf16 -- [conv] ..                          y f32 is written and read for the add
//
// becomes   [conv, add r, relu, cast] -- y' bf16 -- [cast f32, conv, add, relu]
//
// Sums, bias, activation and the addition stay f32. Features of transformers keep their f32 streams: norms read them.
#include <algorithm>
#include <set>

#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "shape/narrow_value.hpp"
#include "shape/shaping_passes.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "narrow-streams";
constexpr size_t kImageRank = 4;

bool is_narrow(DType type) { return type == DType::bf16 || type == DType::f16 || type == kTf32; }

bool multiplies(const Node& group) {
  return group.body && std::any_of(group.body->nodes().begin(), group.body->nodes().end(),
                                   [](const Node* node) { return is_product(*node); });
}

/// The type of the weights of a group that multiplies narrow factors; unknown: it does not.
DType factors_of(const Node* node) {
  if (!node || node->op != fused_op() || !multiplies(*node)) return DType::unknown;
  for (const Value* operand : node->inputs)
    if (operand->is_constant() && is_narrow(operand->type.dtype) && operand->type.shape.rank() >= kImageRank)
      return operand->type.dtype;
  return DType::unknown;
}

/// Only groups of the producer's type read it.
bool is_stream(const Value& value) {
  const DType type = factors_of(value.producer);
  return type != DType::unknown && value.type.dtype == DType::f32 && value.type.shape.rank() >= kImageRank &&
         value.as_output == 0 && !value.uses.empty() &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const Use& use) { return factors_of(use.node) == type; });
}

Value* next_stream(const Graph& graph, const std::set<const Value*>& refused) {
  for (const Node* node : graph.nodes())
    for (Value* value : node->outputs)
      if (is_stream(*value) && !refused.contains(value)) return value;
  return nullptr;
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.precisions.empty() || context.switched_off(kPass)) return false;
  std::set<const Value*> refused;
  int64_t streams = 0;
  while (Value* value = next_stream(graph, refused)) {
    if (narrow_value(graph, value, factors_of(value->producer), context))
      ++streams;
    else
      refused.insert(value);
  }
  if (streams == 0) return false;
  verdicts.push_back({.pass = kPass, .numbers = {{"streams", streams}}});
  return true;
}

}  // namespace

ShapingPass narrow_streams() {
  return {kPass, "Images between products in bf16, f16 or tf32 lie in that type alone, residual streams too.", run};
}

}  // namespace opfuse
