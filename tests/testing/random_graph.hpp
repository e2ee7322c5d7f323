// Random valid graphs for property tests: several dtypes and shapes, symbolic dimensions, names of every
// kind, sources, fused and opaque nodes, absent operands, dead nodes. Made with RapidCheck's generators, so
// failures shrink.
#pragma once

#include <fmt/core.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace opfuse::testing {

struct RandomGraphOptions {
  int max_nodes = 12;
  bool opaque = true;   ///< false: the graph can be interpreted
  bool strange = true;  ///< quoted names, metadata, odd constants
  bool bodies = true;
};

class RandomGraph {
 public:
  explicit RandomGraph(RandomGraphOptions options = {}) : options_(options) {}

  Graph make() {
    Graph graph;
    if (*rc::gen::arbitrary<bool>()) graph.name = "g";
    if (options_.strange && pick(4) == 0) graph.metadata = {{"producer \"x\"\n", "\x01 \\ é"}};
    const int inputs = 1 + pick(2);
    for (int i = 0; i < inputs; ++i) pool_.push_back(graph.add_input(fresh_name(), random_type()));
    const int constants = pick(4);
    for (int i = 0; i < constants; ++i) pool_.push_back(graph.add_constant(random_constant(), fresh_name()));
    const int nodes = 1 + pick(options_.max_nodes);
    for (int i = 0; i < nodes; ++i) add_node(graph);
    std::vector<Value*> outputs = {graph.nodes().back()->outputs[0]};
    for (Value* v : pool_) {
      if (v->producer != nullptr && v != outputs[0] && pick(4) == 0) outputs.push_back(v);
    }
    graph.set_outputs(outputs);
    return graph;
  }

 private:
  RandomGraphOptions options_;
  std::vector<Value*> pool_;
  int names_ = 0;

  static int pick(int below) { return *rc::gen::inRange(0, std::max(1, below)); }
  Value* any() { return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))]; }

  std::string fresh_name() {
    const int n = names_++;
    switch (pick(options_.strange ? 5 : 3)) {
      case 0:
        return "";
      case 1:
        return fmt::format("v{}", n);
      case 2:
        return fmt::format("/block.{}/Conv_out", n);
      case 3:
        return fmt::format("{}", n);  // digits, as old exporters write
      default:
        return fmt::format("odd \"{}\" \\ %:\n", n);
    }
  }

  TensorType random_type() {
    const DType dtype = *rc::gen::element(DType::f32, DType::f32, DType::f16, DType::i64);
    Shape shape;
    const int rank = pick(4);
    for (int i = 0; i < rank; ++i) {
      switch (pick(5)) {
        case 0:
          shape.dims.push_back(Dim::symbol("n"));
          break;
        case 1:
          shape.dims.push_back(floor_div(Dim::symbol("h") + 1, 2) * Dim::symbol("n"));
          break;
        default:
          shape.dims.push_back(1 + pick(4));
      }
    }
    return {dtype, shape};
  }

  Tensor random_constant() {
    const DType dtype = options_.strange ? *rc::gen::element(DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                                             DType::u64, DType::boolean)
                                         : DType::f32;
    static const std::vector<std::vector<int64_t>> kSizes = {{}, {0}, {1}, {2, 3}, {5, 5}};
    Tensor t(dtype, kSizes[static_cast<size_t>(pick(5))]);
    const double scale = *rc::gen::element(0.0, 1.0, 0.1, 1e30);
    for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, (i + pick(3)) * scale);
    if (dtype == DType::f32 && t.elements() > 1 && options_.strange && pick(3) == 0)
      t.mutable_view<uint32_t>()[0] = 0x7fc12345;  // a NaN with payload
    return t;
  }

  std::vector<Source> sources() {
    std::vector<Source> out;
    const int count = pick(3);
    for (int i = 0; i < count; ++i) {
      Source s;
      if (pick(4) > 0) s.name = fmt::format("node {}", pick(100));
      if (pick(2) == 0) s.op_type = *rc::gen::element<std::string>("Conv", "odd type", "1");
      if (pick(3) == 0) s.domain = *rc::gen::element<std::string>("com.microsoft", "a b");
      if (pick(2) == 0) s.opset = pick(22);
      out.push_back(s);
    }
    return out;
  }

  void finish(Node* node) {
    for (Value* v : node->outputs) {
      v->name = fresh_name();
      pool_.push_back(v);
    }
  }

  void add_node(Graph& graph) {
    Value* x = any();
    const bool real = is_float(x->type.dtype);
    switch (pick(options_.opaque ? 8 : 7)) {
      case 0:
        return finish(graph.add_node(op_named(real ? "relu" : "identity"), AttrMap{}, {x}, 1, sources()));
      case 1:
        return finish(graph.add_node(op_named(twice(x)), AttrMap{}, {x, x}, 1, sources()));
      case 2:
        return finish(graph.add_node(op_named("transpose"), AttrMap{}, {x}, 1, sources()));
      case 3:
        if (x->type.shape.ranked && x->type.shape.rank() == 0) x = rank_one(graph);
        return finish(graph.add_node(op_named("concat"), AttrMap{{"axis", int64_t{0}}}, with_rank(x), 1, sources()));
      case 4:
        return finish(graph.add_node(op_named("cast"), AttrMap{{"to", DType::f32}}, {x}, 1, sources()));
      case 5: {
        if (!real) return finish(graph.add_node(op_named("identity"), AttrMap{}, {x}, 1, sources()));
        return finish(graph.add_node(op_named("clip"), AttrMap{},
                                     {x, nullptr, graph.add_constant(Tensor::scalar(x->type.dtype, 3))}, 1, sources()));
      }
      case 6:
        return options_.bodies ? add_fused(graph, x)
                               : finish(graph.add_node(op_named("identity"), AttrMap{}, {x}, 1, sources()));
      default:
        return add_opaque(graph, x);
    }
  }

  static const char* twice(const Value* x) { return x->type.dtype == DType::boolean ? "and" : "add"; }

  Value* rank_one(Graph& graph) {
    return pool_.emplace_back(graph.add_constant(Tensor::from_i64({1, 2}), fresh_name()));
  }

  std::vector<Value*> with_rank(Value* x) {
    if (!x->type.shape.ranked || x->type.shape.rank() == 0 || x->type.dtype == DType::unknown) return {x};
    return {x, x};
  }

  void add_fused(Graph& graph, Value* x) {
    auto body = std::make_unique<Graph>();
    Value* inner = body->add_input(pick(2) == 0 ? x->name : "inner", x->type);
    Node* first = body->add_node(op_named("identity"), AttrMap{}, {inner});
    Node* second = body->add_node(op_named(twice(x)), AttrMap{}, {first->output(), inner});
    std::vector<Value*> outputs = {second->output()};
    if (pick(2) == 0) outputs.push_back(first->output());
    body->set_outputs(outputs);
    std::vector<TensorType> types;
    for (Value* v : outputs) types.push_back(v->type);
    const bool composite = pick(2) == 0;
    Node* node = graph.add_node(composite ? composite_op() : fused_op(), std::shared_ptr<const void>(), {x},
                                outputs.size(), sources(), nullptr, types);
    node->body = std::move(body);
    node->label = composite ? "square" : fmt::format("Fused__{}", names_);
    if (!composite || pick(2) == 0) node->pattern = "Square";
    finish(node);
  }

  void add_opaque(Graph& graph, Value* x) {
    const AttrMap attrs = {
        {"domain", std::string("my.domain")}, {"op_type", std::string("Thing")}, {"raw", std::string("\0\xff\"", 3)}};
    const TensorType type = pick(2) == 0 ? TensorType{DType::unknown, Shape::unknown()} : random_type();
    finish(
        graph.add_node(opaque_op(), opaque_op()->attrs_from_map(attrs), {x, nullptr}, 1, sources(), nullptr, {type}));
  }
};

}  // namespace opfuse::testing
