// Weights of matrix products that a model stores as codes stay codes: the kernel decodes them.
//
//     x, codes -- DequantizeLinear, Transpose -- [matmul, relu] --
//     x, words, scales -- [dequantize_words, matmul, relu] --
//
// Data, products and sums are f32, and what is computed is what the model says: (code - zero) * scale, then the
// product. Where no kernel decodes them, weights become f32 when the program is made (passes/fold_dequantized.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "ir/body.hpp"
#include "ops/conv.hpp"
#include "ops/dequantize_words.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/registry.hpp"
#include "ops/transpose.hpp"
#include "shape/coded_matrix.hpp"
#include "shape/inner_operand.hpp"
#include "shape/join.hpp"
#include "shape/separate_products.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "pack-codes";
constexpr int64_t kSmallest = 4096;  ///< elements: fewer are not worth a kernel that decodes them

/// A product of the group whose weights come from codes outside of it.
struct Found {
  size_t operand = 0;       ///< of the group
  bool transposed = false;  ///< it lies [N, K]
  bool convolution = false;
};

/// The operand of a product's weights, by transposes inside the group.
std::optional<Found> weights_of(const Node& group, const Node& product) {
  Found found{.transposed = is_a<Gemm>(product) && product.as<Gemm>().transB};
  const Node* reader = &product;
  size_t index = 1;
  for (const Value* v = product.input(1); v && v->producer && is_a<Transpose>(*v->producer) && v->uses.size() == 1;
       v = reader->input(0)) {
    if (&group == &product) break;  // it stands outside
    const std::vector<int64_t>& perm = v->producer->as<Transpose>().perm;
    if (v->type.shape.rank() != 2) return std::nullopt;
    if (perm.empty() || perm[0] == 1) found.transposed = !found.transposed;
    reader = v->producer, index = 0;
  }
  const Value* weights = &group == &product ? group.input(1) : inner_operand(group, *reader, index, true);
  const auto at = std::find(group.inputs.begin(), group.inputs.end(), weights);
  const bool large = weights && weights->type.shape.is_static() && weights->type.shape.elements().value() >= kSmallest;
  if (!large || at == group.inputs.end() || !dequantizer_of(weights)) return std::nullopt;
  found.operand = static_cast<size_t>(at - group.inputs.begin());
  return found;
}

/// Not those of quantised data, of which sum-codes tells.
bool convolves_floats(const Node& group, const Node& inside) {
  if (!is_a<Conv>(inside)) return false;
  const Value* data = &group == &inside ? inside.input(0) : inner_operand(group, inside, 0);
  return !data || !data->producer || !is_a<DequantizeLinear>(*data->producer);
}

void products_in(const Node& group, const Node& inside, std::vector<Found>& found) {
  if (convolves_floats(group, inside))
    if (auto weights = weights_of(group, inside)) weights->convolution = true, found.push_back(*weights);
  if (is_matrix_product(inside))
    if (const auto weights = weights_of(group, inside)) found.push_back(*weights);
  if (!inside.body || !stands_for_body(inside)) return;
  for (const Node* node : inside.body->nodes()) products_in(group, *node, found);
}

/// Another precision of factors was asked for.
bool is_narrow(const Node& group, const ShapeContext& context) { return context.multiplies_narrow(group); }

std::variant<int64_t, Decline> pack(Graph& graph, Node* group, const Found& found, const ShapeContext& context) {
  if (auto why = context.switched_off(kPass)) return *why;
  Value* before = group->inputs[found.operand];
  if (const DType type = before->type.dtype; type != DType::f32)
    return Decline{"types", fmt::format("a product of {}", name_of(type)), {}};
  const bool transposed = found.transposed;
  auto made = pack_matrix(before, transposed);
  if (const auto* why = std::get_if<Decline>(&made)) return *why;
  auto& packed = std::get<PackedMatrix>(made);
  const int64_t bytes = packed.bytes(), wide = 4 * before->type.shape.elements().value();
  std::vector<Value*> operands{graph.add_constant(std::move(packed.words)),
                               graph.add_constant(std::move(packed.scales))};
  if (packed.zeros) operands.push_back(graph.add_constant(*std::move(packed.zeros)));
  const AttrMap attrs{
      {"depth", packed.depth}, {"bits", packed.bits}, {"block_size", packed.block}, {"zero", packed.zero}};
  std::vector<Node*> nodes{graph.add_node(dequantize_words_op(), attrs, operands, 1, {}, group)};
  if (transposed)
    nodes.push_back(graph.add_node(ops().find("transpose"), AttrMap{{"perm", std::vector<int64_t>{1, 0}}},
                                   {nodes.back()->output()}, 1, {}, group));
  graph.set_input(group, found.operand, nodes.back()->output());
  const std::vector<Node*> added = nodes;
  nodes.push_back(group);
  const Outline how{fused_op(), name_of_group(*group), group->pattern};
  const auto joined =
      outline_unless(graph, nodes, how, [&](const Node& trial) { return context.refuses(kPass, trial); });
  if (std::holds_alternative<Node*>(joined)) return wide - bytes;
  graph.set_input(group, found.operand, before);
  for (auto node = added.rbegin(); node != added.rend(); ++node) graph.erase(*node);
  return std::get<Decline>(joined);
}

std::vector<Found> products_of(const Node& group, const ShapeContext& context) {
  std::vector<Found> found;
  if (!is_narrow(group, context)) products_in(group, group, found);
  return found;
}

/// Projections of one operand, which a pattern made one group: a kernel decodes the weights of one product.
bool separate(Graph& graph, const ShapeContext& context) {
  if (context.switched_off(kPass)) return false;
  const auto coded = [](const Value*, const Value* weights) { return weights && dequantizer_of(weights); };
  bool changed = false;
  for (Node* node : std::vector<Node*>(graph.nodes()))
    if (products_of(*node, context).size() > 1) changed |= separate_products(graph, node, coded);
  return changed;
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  bool changed = separate(graph, context);
  for (Node* node : std::vector<Node*>(graph.nodes())) {
    const std::vector<Found> found = products_of(*node, context);
    if (found.empty()) continue;
    ShapeVerdict& verdict = verdicts.emplace_back(ShapeVerdict{.pass = kPass, .nodes = {name_of_group(*node)}});
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    if (found.size() > 1) {
      verdict.refused = Decline{"several_products", "its kernel computes several products", {}};
      continue;
    }
    if (found[0].convolution) {
      verdict.refused = Decline{"convolution", "kernels of convolutions do not decode weights", {}};
      continue;
    }
    const auto done = pack(graph, node, found[0], context);
    if (const auto* why = std::get_if<Decline>(&done)) verdict.refused = *why;
    if (const auto* saved = std::get_if<int64_t>(&done)) verdict.numbers["bytes"] = *saved, changed = true;
  }
  return changed;
}

}  // namespace

ShapingPass pack_codes() {
  return {kPass, "Weights that are stored as codes stay codes, and kernels decode them.", run};
}

}  // namespace opfuse
