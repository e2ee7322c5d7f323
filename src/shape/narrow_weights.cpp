// Weights lie in memory in 16 bits and become f32 in the registers of the kernel that multiplies them:
//
//     w f32 -- [conv, relu] --          becomes          w' f16 -- [cast f32, conv, relu] --
//
// Data, sums and results stay f32. Two wish for it: a plan that says f16 where the target has no products of f16 (the
// weights are rounded), and whoever asks for the least memory (only weights that lose nothing by it, as those of a file
// of 16 bits, and tables that a gather reads too). Winograd transforms weights beforehand, so such convolutions are
// direct.
#include "shape/narrow_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fusion/precision.hpp"
#include "ir/body.hpp"
#include "ops/conv.hpp"
#include "ops/gather.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "shape/inner_operand.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "narrow-weights";
constexpr int64_t kSmallest = 4096;  ///< bytes: less is not worth a conversion
constexpr DType kHalves[] = {DType::f16, DType::bf16};

/// What is asked of a group.
struct Wish {
  bool rounds = false;  ///< to f16, whatever is lost; else only what loses nothing
};

std::optional<Wish> wish_for(const Node& node, const ShapeContext& context) {
  const auto asked = [&](const std::string& name) {
    const auto at = context.precisions.find(name);
    return at != context.precisions.end() && at->second == name_of(DType::f16);
  };
  const bool named = asked(node.label) || std::any_of(node.sources.begin(), node.sources.end(),
                                                      [&](const Source& s) { return asked(s.name); });
  if (named && !context.multiplies_f16) return Wish{true};
  return context.least_memory ? std::optional(Wish{}) : std::nullopt;
}

/// Operands of a group that may be narrow.
struct Weights {
  std::vector<size_t> operands;
  bool multiplied = false;  ///< some of them
};

/// Constants of f32 that are worth it.
bool is_wide(const Value& value) {
  return value.is_constant() && value.type.dtype == DType::f32 &&
         static_cast<int64_t>(value.constant->bytes()) >= kSmallest;
}

/// Weights of products, and tables of gathers. Depthwise filters are small, and their kernels read them for every
/// pixel.
void weights_in(const Node& group, const Node& inside, Weights& found) {
  const auto add = [&](size_t operand, bool multiplied) {
    const Value* value = &group == &inside ? group.input(operand) : inner_operand(group, inside, operand, true);
    const auto at = std::find(group.inputs.begin(), group.inputs.end(), value);
    if (!value || at == group.inputs.end() || !is_wide(*value)) return;
    found.operands.push_back(static_cast<size_t>(at - group.inputs.begin()));
    found.multiplied |= multiplied;
  };
  if (is_product(inside) && !is_depthwise(inside)) add(1, true);
  if (is_a<Gather>(inside)) add(0, false);
  if (!inside.body || !stands_for_body(inside)) return;
  for (const Node* node : inside.body->nodes()) weights_in(group, *node, found);
}

/// Some finite number is infinite in the narrow type.
bool overflows(const Tensor& wide, const Tensor& narrow) {
  for (int64_t i = 0; i < wide.elements(); ++i)
    if (std::isfinite(wide.real(i)) && !std::isfinite(narrow.real(i))) return true;
  return false;
}

/// In 16 bits; none: that would lose something, or one of them altogether.
std::optional<Tensor> narrowed(const Tensor& weights, const Wish& wish) {
  if (wish.rounds) {
    Tensor narrow = weights.cast(DType::f16);
    return overflows(weights, narrow) ? std::nullopt : std::optional(std::move(narrow));
  }
  for (const DType type : kHalves)
    if (Tensor narrow = weights.cast(type); narrow.cast(DType::f32).same_bits(weights)) return narrow;
  return std::nullopt;
}

/// A product of one row: its lanes hold outputs, whatever skeleton a group that stands alone would have.
bool is_one_row(const Node& group) {
  const Shape& y = group.output()->type.shape;
  return y.ranked && y.rank() > 0 &&
         std::count_if(y.dims.begin(), y.dims.end(), [](const Dim& d) { return !(d == Dim(1)); }) <= 1;
}

/// A kernel of the same kind; products need one of register tiles.
Legality kind_kept(const ShapeContext& context, const Node& group, bool multiplies) {
  const std::string before = context.skeleton ? context.skeleton(group) : "";
  return [&context, before, multiplies](const Node& trial) -> std::optional<Decline> {
    if (auto why = context.refuses(kPass, trial)) return why;
    const std::string after = context.skeleton ? context.skeleton(trial) : "";
    const bool tiles = after == "contraction" && is_one_row(trial);
    if (after != before && !tiles)
      return Decline{"no_gain", fmt::format("its kernel would be {} instead of {}", after, before), {}};
    if (multiplies && context.skeleton && after != "contraction" && after != "chain")
      return Decline{"no_kernel", "its kernel does not widen weights", {}};
    return std::nullopt;
  };
}

/// Bytes that are saved, or why none are.
std::variant<int64_t, Decline> narrow(Graph& graph, Node* group, const Weights& weights, const Wish& wish,
                                      const ShapeContext& context) {
  if (auto why = context.switched_off(kPass)) return *why;
  const std::vector<Value*> before = group->inputs;
  std::vector<Node*> nodes;
  int64_t saved = 0;
  for (size_t operand : weights.operands) {
    Value* wide = before[operand];
    std::optional<Tensor> narrow = narrowed(*wide->constant, wish);
    if (!narrow) continue;
    saved += static_cast<int64_t>(wide->constant->bytes() - narrow->bytes());
    Value* value = graph.add_constant(*std::move(narrow));
    nodes.push_back(graph.add_node(ops().find("cast"), AttrMap{{"to", DType::f32}}, {value}, 1, {}, group));
    graph.set_input(group, operand, nodes.back()->output());
  }
  if (nodes.empty() && wish.rounds) return Decline{"out_of_range", "a weight is larger than f16 can hold", {}};
  if (nodes.empty())
    return Decline{"rounds", "16 bits cannot hold the weights exactly, and memory is saved without rounding", {}};
  const std::vector<Node*> casts = nodes;
  nodes.push_back(group);
  const Outline how{fused_op(), name_of_group(*group), group->pattern};
  const auto joined = outline_unless(graph, nodes, how, kind_kept(context, *group, weights.multiplied));
  if (std::holds_alternative<Node*>(joined)) return saved;
  for (size_t i = 0; i < before.size(); ++i) graph.set_input(group, i, before[i]);
  for (Node* cast : casts) graph.erase(cast);
  return std::get<Decline>(joined);
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.precisions.empty() && !context.least_memory) return false;
  bool changed = false;
  for (Node* node : std::vector<Node*>(graph.nodes())) {
    const std::optional<Wish> wish = wish_for(*node, context);
    Weights weights;
    if (wish) weights_in(*node, *node, weights);
    if (weights.operands.empty()) continue;
    ShapeVerdict& verdict = verdicts.emplace_back(ShapeVerdict{.pass = kPass, .nodes = {name_of_group(*node)}});
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    const auto done = narrow(graph, node, weights, *wish, context);
    if (const auto* why = std::get_if<Decline>(&done)) verdict.refused = *why;
    if (const auto* saved = std::get_if<int64_t>(&done)) verdict.numbers["bytes"] = *saved, changed = true;
  }
  return changed;
}

}  // namespace

bool lies_in_16_bits(const Node& group, const Value& weights, const ShapeContext& context) {
  const std::optional<Wish> wish = context.switched_off(kPass) ? std::nullopt : wish_for(group, context);
  return wish && is_wide(weights) && narrowed(*weights.constant, *wish);
}

ShapingPass narrow_weights() {
  return {kPass, "Weights of products lie in 16 bits, and kernels widen them in registers.", run};
}

}  // namespace opfuse
