// Checks a lowering: the region interpreter against the graph interpreter on random inputs.
#pragma once

#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "region/lower.hpp"

namespace opfuse::testing_region {

/// A small graph under construction; every node call gives its first output.
struct Net {
  Graph graph;
  uint64_t seed = 1;

  Value* input(Shape shape, DType dtype = DType::f32) {
    return graph.add_input("in" + std::to_string(graph.inputs().size()), {dtype, std::move(shape)});
  }
  Value* constant(std::vector<int64_t> sizes, double low = -1, double high = 1, DType dtype = DType::f32) {
    Tensor tensor(dtype, std::move(sizes));
    Random random(seed++, "constant");
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_real(i, low + (high - low) * random.uniform());
    return graph.add_constant(std::move(tensor));
  }
  Value* integers(const std::vector<int64_t>& values) { return graph.add_constant(Tensor::from_i64(values)); }
  Value* scalar(double value) { return graph.add_constant(Tensor::scalar(DType::f32, value)); }
  Node* node(std::string_view op, std::vector<Value*> inputs, const AttrMap& attrs = {}, size_t outputs = 1) {
    return graph.add_node(op_named(op), attrs, std::move(inputs), outputs);
  }
  Value* operator()(std::string_view op, std::vector<Value*> inputs, const AttrMap& attrs = {}) {
    return node(op, std::move(inputs), attrs)->output();
  }
  Value* conv(Value* x, int64_t out, int64_t kernel, AttrMap attrs = {}, bool bias = true) {
    int64_t group = 1;
    if (const AttrValue* g = find(attrs, "group")) group = std::get<int64_t>(*g);
    const int64_t channels = x->type.shape[1].value();
    std::vector<int64_t> sizes = {out, channels / group};
    for (size_t i = 2; i < x->type.shape.rank(); ++i) sizes.push_back(kernel);
    std::vector<Value*> operands = {x, constant(sizes)};
    if (bias) operands.push_back(constant({out}));
    return (*this)("conv", operands, attrs);
  }
  Value* batch_norm(Value* x) {
    const int64_t c = x->type.shape[1].value();
    return (*this)("batch_norm", {x, constant({c}, 0.5, 2), constant({c}), constant({c}), constant({c}, 0.1, 3)});
  }
  /// Groups all nodes into one fused node whose results are `outputs`.
  Node* fuse(std::vector<Value*> outputs) {
    graph.set_outputs(std::move(outputs));
    const std::vector<Node*> nodes = graph.nodes();
    return outline(graph, nodes, {fused_op(), "FusedTest__all", "Test"});
  }
};

inline std::vector<Tensor> region_inputs(const LoweredGroup& group, const Graph& graph,
                                         const std::vector<Tensor>& inputs) {
  std::vector<Tensor> params;
  for (size_t i = 0; i < group.operands.size(); ++i) {
    const LoweredOperand& operand = group.operands[i];
    Tensor tensor;
    if (group.region.params[i].role == ParamRole::constant) tensor = operand.bytes();
    for (size_t k = 0; k < inputs.size(); ++k)
      if (graph.inputs()[k] == operand.value) tensor = inputs[k];
    params.push_back(std::move(tensor));
  }
  return params;
}

/// Lowers the graph's only node and compares its results; returns the region for further checks.
inline Region expect_lowers(Graph& graph, const Node* node, double tolerance = 1e-9, const SymbolValues& symbols = {}) {
  if (graph.outputs().empty()) {
    std::vector<Value*> outputs(node->outputs.begin(), node->outputs.end());
    graph.set_outputs(outputs);
  }
  auto lowered = lower_group(*node);
  if (const Decline* why = std::get_if<Decline>(&lowered)) {
    ADD_FAILURE() << node->op->name << " declined: " << why->code << ": " << why->message;
    return {};
  }
  const LoweredGroup& group = std::get<LoweredGroup>(lowered);
  EXPECT_EQ(parse_region(print(group.region)), group.region) << print(group.region);
  RandomInputOptions random;
  random.seed = 7;
  random.symbols = symbols;
  const std::vector<Tensor> inputs = random_inputs(graph, random);
  InterpretOptions exact;
  exact.keep_exact = true;
  const std::vector<Tensor> want = interpret(graph, inputs, exact);
  const std::vector<Tensor> got =
      interpret(group.region, region_inputs(group, graph, inputs), symbols, Precision::exact);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    EXPECT_EQ(want[i].sizes(), got[i].sizes());
    if (want[i].sizes() != got[i].sizes()) continue;
    EXPECT_LE(difference(got[i], want[i]).relative(), tolerance) << node->op->name << "\n" << print(group.region);
  }
  return group.region;
}

inline Region expect_lowers(Net& net, Value* result, double tolerance = 1e-9, const SymbolValues& symbols = {}) {
  return expect_lowers(net.graph, result->producer, tolerance, symbols);
}

inline Decline expect_declines(const Node* node) {
  auto lowered = lower_group(*node);
  const Decline* why = std::get_if<Decline>(&lowered);
  EXPECT_NE(why, nullptr) << "lowered";
  return why != nullptr ? *why : Decline{};
}

using Ints = std::vector<int64_t>;

}  // namespace opfuse::testing_region
