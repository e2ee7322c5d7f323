// f(constants) = constant, computed by f's own reference; and shape arithmetic whose dimensions are known:
//   Shape, Size, Gather, Slice, Concat, arithmetic ... of shapes, through OpInfo::dims
// DequantizeLinear of constants stays: quantised weights are smaller and faster as they are. A constant
// that would outgrow its operands by more than fold_growth_bytes stays a node, with a note.
#include <fmt/format.h>

#include <optional>

#include "interp/interpreter.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/dim_values.hpp"
#include "ops/is_a.hpp"
#include "ops/read_sizes.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

bool foldable(const Node& node) {
  if (!node.op->reference || node.op->has_body || node.inputs.empty() || node.is("dequantize_linear")) return false;
  for (const Value* v : node.inputs) {
    if (v != nullptr && !v->is_constant()) return false;
  }
  for (const Value* v : node.outputs) {
    if (!v->type.shape.is_static()) return false;
  }
  return true;
}

/// What folding would add to the model's constants.
int64_t growth_bytes(const Node& node) {
  Dim bytes = 0;
  for (const Value* v : node.outputs)
    bytes = bytes + v->type.shape.elements() * Dim(static_cast<int64_t>(byte_size(v->type.dtype)));
  for (const Value* v : node.inputs) {
    if (v != nullptr) bytes = bytes - Dim(static_cast<int64_t>(v->constant->bytes()));
  }
  return bytes.value();
}

std::optional<std::vector<Tensor>> computed(const Node& node, PassContext& context) {
  if (const int64_t growth = growth_bytes(node); growth > context.fold_growth_bytes) {
    context.note(
        fmt::format("fold-constants: {} ({}) is kept, folding it would add {} bytes (limit fold_growth_bytes = {})",
                    node.name(), node.op->name, growth, context.fold_growth_bytes));
    return std::nullopt;
  }
  std::vector<const Tensor*> operands;
  for (const Value* v : node.inputs) operands.push_back(v == nullptr ? nullptr : &*v->constant);
  return interpret_node(node, operands, {.precision = Precision::typed});
}

/// The value of shape arithmetic when no symbol is left in it.
std::optional<std::vector<Tensor>> known_dims(const Node& node, DimEvaluator& evaluator) {
  if (node.outputs.size() != 1 || !node.op->dims || !node.output()->type.shape.is_static()) return std::nullopt;
  const auto dims = evaluator.of(*node.output());
  if (!dims) return std::nullopt;
  Tensor t(node.output()->type.dtype, node.output()->type.shape.sizes());
  if (static_cast<int64_t>(dims->size()) != t.elements()) return std::nullopt;
  for (size_t i = 0; i < dims->size(); ++i) {
    if (!(*dims)[i].is_constant()) return std::nullopt;
    const int64_t value = (*dims)[i].value();
    if (is_float(t.dtype()))
      t.set_real(static_cast<int64_t>(i), static_cast<double>(value));
    else
      t.set_integer(static_cast<int64_t>(i), value);
  }
  return std::vector<Tensor>{t};
}

/// What the run would have found: shapes may speak of it long after the node is gone.
void settle(const Node& node, const std::vector<Tensor>& results, SymbolValues& settled) {
  const std::vector<std::string> symbols = defined_symbols(node);
  for (size_t i = 0; i < symbols.size(); ++i) settled[symbols[i]] = results[0].integer(static_cast<int64_t>(i));
}

bool run(Graph& graph, PassContext& context) {
  bool changed = false;
  SymbolValues settled;
  DimEvaluator evaluator;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    auto results = known_dims(*node, evaluator);
    if (!results && foldable(*node)) results = computed(*node, context);
    if (!results) continue;
    if (is_a<ReadSizes>(*node)) settle(*node, *results, settled);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      Value* old = node->outputs[i];
      const std::string name = graph.is_output(old) ? std::string() : std::exchange(old->name, {});
      graph.replace_uses(old, graph.add_constant((*results)[i], name));
    }
    graph.erase(node);
    changed = true;
  }
  if (!settled.empty()) settle_found_sizes(graph, settled);
  return changed;
}

}  // namespace

Pass fold_constants() {
  return {"fold-constants", "Computes what depends on constants and known shapes only.", run, {}};
}

}  // namespace opfuse
