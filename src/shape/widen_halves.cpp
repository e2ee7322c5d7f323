// Values of 16-bit types are computed and kept in f32, where the machine's units are: f16 and bf16 remain what the
// model reads from its caller and gives back.
//
//     x f16 -- conv -- relu -- y f16      becomes      x f16 -- cast -- x' f32 -- conv -- relu -- y' f32 -- cast -- y
//     f16
//
// Weights are widened once, when compiling; that loses nothing. Values between two operators are no longer rounded to
// 16 bits, so results are nearer to the real numbers that the model stands for, and what left the range of f16 stays
// finite. Casts between these types and f32 become nothing. Bodies of groups have the same nodes as before.
#include <algorithm>
#include <utility>

#include "ops/bit_cast.hpp"
#include "ops/cast.hpp"
#include "ops/is_a.hpp"
#include "ops/registry.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "widen-halves";

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
bool is_half(const Value* value) { return value && is_half(value->type.dtype); }

/// A node that reads or makes the bits of halves: these stay what they are.
const Node* reader_of_bits(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    const bool halves = std::any_of(node->inputs.begin(), node->inputs.end(), [](auto* v) { return is_half(v); }) ||
                        std::any_of(node->outputs.begin(), node->outputs.end(), [](auto* v) { return is_half(v); });
    if (halves && (node->op == opaque_op() || is_a<BitCast>(*node))) return node;
    if (node->body)
      if (const Node* inner = reader_of_bits(*node->body)) return inner;
  }
  return nullptr;
}

/// Attributes that name an element type.
void widen_attributes(Node& node) {
  AttrMap attrs = node.attr_map();
  bool changed = false;
  for (auto& [name, value] : attrs)
    if (auto* dtype = std::get_if<DType>(&value); dtype && is_half(*dtype)) *dtype = DType::f32, changed = true;
  if (changed) node.attrs_ = node.op->attrs_from_map(attrs);
}

/// Results of f32, but what a cast makes of a half for whoever asked for f32.
int64_t count_floats(const Graph& graph) {
  int64_t floats = 0;
  for (const Node* node : graph.nodes()) {
    if (node->body)
      floats += count_floats(*node->body);
    else if (!is_a<Cast>(*node) || !is_half(node->input(0)))
      floats += std::count_if(node->outputs.begin(), node->outputs.end(),
                              [](const Value* value) { return value->type.dtype == DType::f32; });
  }
  return floats;
}

/// What widening did.
struct Widened {
  int64_t values = 0, casts = 0, bytes = 0;  ///< bytes: by which constants grew
  int64_t floats = 0;                        ///< values that were f32 before
  DType from = DType::unknown;
};

void widen_constant(Graph& graph, Value* value, Widened& done) {
  done.bytes += static_cast<int64_t>(value->constant->bytes());
  if (value->as_output > 0) {  // the caller gets it as it is
    Value* wide = graph.add_constant(value->constant->cast(DType::f32));
    for (const Use& use : std::vector<Use>(value->uses)) graph.set_input(use.node, use.index, wide);
    return;
  }
  value->constant = value->constant->cast(DType::f32);
  value->type.dtype = DType::f32;
}

/// `inputs`: those of a body change with what stands outside; a model's own stay.
void widen_values(Graph& graph, bool inputs, Widened& done) {
  for (Value* value : graph.values()) {
    if (!is_half(value)) continue;
    done.from = value->type.dtype;
    if (value->is_constant()) {
      widen_constant(graph, value, done);
    } else if (value->producer || inputs) {
      value->type.dtype = DType::f32;
      ++done.values;
    }
  }
  for (Node* node : graph.nodes()) {
    widen_attributes(*node);
    if (node->body) widen_values(*node->body, true, done);
  }
}

/// Casts from f32 to f32, but one that is all of a body.
void drop_casts(Graph& graph, bool body) {
  for (Node* node : std::vector<Node*>(graph.nodes())) {
    if (node->body) drop_casts(*node->body, true);
    if (!is_a<Cast>(*node) || node->input(0)->type.dtype != DType::f32 || node->output()->type.dtype != DType::f32)
      continue;
    if ((body && graph.nodes().size() == 1) || !graph.can_replace(node->output(), node->input(0))) continue;
    graph.replace_uses(node->output(), node->input(0));
    graph.erase(node);
  }
}

Node* add_cast(Graph& graph, Value* value, DType to, Node* before = nullptr) {
  return graph.add_node(ops().find("cast"), AttrMap{{"to", to}}, {value}, 1, {}, before);
}

void cast_inputs(Graph& graph, Widened& done) {
  for (Value* input : graph.inputs()) {
    if (!is_half(input) || input->uses.empty()) continue;
    const std::vector<Use> uses = input->uses;
    Node* wide = add_cast(graph, input, DType::f32, graph.nodes().front());
    for (const Use& use : uses) graph.set_input(use.node, use.index, wide->output());
    ++done.casts;
  }
}

void cast_outputs(Graph& graph, const std::vector<DType>& types, Widened& done) {
  std::vector<Value*> outputs = graph.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->type.dtype == types[i]) continue;
    Node* narrow = add_cast(graph, outputs[i], types[i]);
    narrow->output()->name = std::exchange(outputs[i]->name, {});
    const Value* wide = outputs[i];
    for (Value*& output : outputs)
      if (output == wide) output = narrow->output();
    ++done.casts;
  }
  graph.set_outputs(std::move(outputs));
}

bool has_halves(const Graph& graph) {
  const std::vector<Value*> values = graph.values();
  return std::any_of(values.begin(), values.end(), [](const Value* v) { return is_half(v); });
}

bool run(Graph& graph, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (!has_halves(graph)) return false;
  ShapeVerdict& verdict = verdicts.emplace_back(ShapeVerdict{.pass = kPass});
  if (const Node* reader = reader_of_bits(graph))
    verdict.refused = Decline{"opaque_operand", "'" + reader->name() + "' needs its 16-bit operands", {reader->name()}};
  if (!verdict.refused) verdict.refused = context.switched_off(kPass);
  if (verdict.refused) return false;
  std::vector<DType> types;
  for (const Value* output : graph.outputs()) types.push_back(output->type.dtype);
  Widened done;
  done.floats = count_floats(graph);
  widen_values(graph, false, done);
  cast_inputs(graph, done);
  cast_outputs(graph, types, done);
  drop_casts(graph, false);
  verdict.subject = name_of(done.from);
  verdict.numbers = {{"values", done.values}, {"casts", done.casts}, {"bytes", done.bytes}, {"floats", done.floats}};
  return true;
}

}  // namespace

ShapingPass widen_halves() {
  return {.name = kPass, .summary = "Values of 16 bits are computed and kept in f32.", .run = run, .whole = true};
}

}  // namespace opfuse
