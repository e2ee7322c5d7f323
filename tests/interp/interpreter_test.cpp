// The interpreter: values, precision, lifetimes, bodies, errors.
#include "interp/interpreter.hpp"

#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "ir/outline.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

struct GraphOf {
  Graph g;
  Value* input(std::string name, Shape shape, DType dtype = DType::f32) {
    return g.add_input(std::move(name), {dtype, std::move(shape)});
  }
  Value* constant(const std::vector<double>& values, DType dtype = DType::f32) {
    return g.add_constant(Tensor::of(dtype, {static_cast<int64_t>(values.size())}, values));
  }
  Node* node(std::string_view op, std::vector<Value*> inputs, const AttrMap& attrs = {}) {
    return g.add_node(op_named(op), attrs, std::move(inputs), 1, {{std::string(op) + "_node", "Op", "", 17}});
  }
  Value* value(std::string_view op, std::vector<Value*> inputs, const AttrMap& attrs = {}) {
    return node(op, std::move(inputs), attrs)->output();
  }
};

Tensor f32(const std::vector<double>& values) {
  return Tensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostic().text();
  }
  return "no error";
}

TEST(Interpreter, RunsNodesAndReturnsDeclaredTypes) {
  GraphOf b;
  Value* x = b.input("x", {3});
  b.g.set_outputs({b.value("relu", {b.value("add", {x, b.constant({1})})})});
  const auto out = interpret(b.g, {f32({-3, 0, 2})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), DType::f32);
  EXPECT_TRUE(out[0].same_bits(f32({0, 1, 3})));
}

TEST(Interpreter, ExactKeepsWhatTypedRounds) {
  GraphOf b;
  Value* x = b.input("x", {1}, DType::f16);
  Value* sum = b.value("add", {x, b.constant({1.0 / 4096}, DType::f16)});
  b.g.set_outputs({b.value("sub", {sum, b.constant({1}, DType::f16)})});
  const Tensor one = Tensor::of<double>(DType::f16, {1}, {1});
  EXPECT_EQ(interpret(b.g, {one}, {.precision = Precision::typed})[0].real(0), 0) << "1 + 2^-12 is 1 in half precision";
  EXPECT_EQ(interpret(b.g, {one})[0].real(0), 1.0 / 4096);
  const Tensor kept = interpret(b.g, {one}, {.keep_exact = true})[0];
  EXPECT_EQ(kept.dtype(), DType::f64);
}

TEST(Interpreter, ObservesEveryValueInOrder) {
  GraphOf b;
  Value* x = b.input("x", {2});
  Value* a = b.value("neg", {x});
  Value* c = b.value("abs", {a});
  b.g.set_outputs({c});
  std::vector<const Value*> seen;
  interpret(b.g, {f32({1, -2})}, {.observe = [&](const Value* v, const Tensor& t) {
              seen.push_back(v);
              EXPECT_EQ(t.dtype(), DType::f64);
            }});
  EXPECT_EQ(seen, (std::vector<const Value*>{a, c}));
}

TEST(Interpreter, InputsMayBeOutputsAndValuesMayBeReadTwice) {
  GraphOf b;
  Value* x = b.input("x", {2});
  Value* y = b.value("mul", {x, x});
  b.g.set_outputs({x, y, y, b.constant({7})});
  const auto out = interpret(b.g, {f32({3, -2})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_TRUE(out[0].same_bits(f32({3, -2})));
  EXPECT_TRUE(out[1].same_bits(f32({9, 4})));
  EXPECT_TRUE(out[2].same_bits(out[1]));
  EXPECT_TRUE(out[3].same_bits(f32({7})));
}

TEST(Interpreter, RunsTheBodiesOfFusedNodes) {
  GraphOf b;
  Value* x = b.input("x", {Dim::symbol("n")});
  Node* add = b.node("add", {x, b.constant({1, 2})});
  Node* relu = b.node("relu", {add->output()});
  b.g.set_outputs({b.value("neg", {relu->output()})});
  const auto before = interpret(b.g, {f32({-5, 5})});
  outline(b.g, {add, relu}, {fused_op(), "FusedAddRelu", "test"});
  ASSERT_EQ(b.g.nodes().size(), 2u);
  size_t outside = 0, inside = 0;
  const auto after = interpret(b.g, {f32({-5, 5})}, {.observe = [&](const Value*, const Tensor&) { ++outside; }});
  interpret(b.g, {f32({-5, 5})}, {.observe = [&](const Value*, const Tensor&) { ++inside; }, .observe_bodies = true});
  EXPECT_TRUE(after[0].same_bits(before[0]));
  EXPECT_EQ(outside, 2u);
  EXPECT_EQ(inside, 4u);
}

TEST(Interpreter, NamesAnOpaqueNode) {
  GraphOf b;
  Value* x = b.input("x", {2});
  auto attrs = std::make_shared<OpaqueAttrs>(OpaqueAttrs{"my.domain", "Frobnicate", ""});
  Node* node = b.g.add_node(opaque_op(), attrs, {x}, 1, {{"frob_1", "Frobnicate", "my.domain", 1}}, nullptr,
                            {{DType::f32, Shape{2}}});
  b.g.set_outputs({node->output()});
  const std::string message = message_of([&] { interpret(b.g, {f32({1, 2})}); });
  EXPECT_NE(message.find("unsupported_op"), std::string::npos) << message;
  EXPECT_NE(message.find("frob_1"), std::string::npos) << message;
  EXPECT_NE(message.find("Frobnicate"), std::string::npos) << message;
}

TEST(Interpreter, BindsSymbolsFromItsInputs) {
  GraphOf b;
  const Dim n = Dim::symbol("n");
  Value* x = b.input("x", {n, 2});
  Value* y = b.input("y", {n * Dim(2)});
  b.g.set_outputs({x, y});
  EXPECT_EQ(bind_symbols(b.g, {Tensor(DType::f32, {3, 2}), Tensor(DType::f32, {6})}).at("n"), 3);
  auto message = [&](std::vector<Tensor> inputs) { return message_of([&] { bind_symbols(b.g, inputs); }); };
  EXPECT_NE(message({Tensor(DType::f32, {3, 2}), Tensor(DType::f32, {5})}).find("bad_binding"), std::string::npos);
  EXPECT_NE(message({Tensor(DType::f32, {3, 4}), Tensor(DType::f32, {6})}).find("bad_binding"), std::string::npos);
  EXPECT_NE(message({Tensor(DType::i32, {3, 2}), Tensor(DType::f32, {6})}).find("bad_binding"), std::string::npos);
  EXPECT_NE(message({Tensor(DType::f32, {3, 2})}).find("bad_binding"), std::string::npos);
}

TEST(Interpreter, FollowsShapesThatAreComputed) {
  // PyTorch's x.view(x.size(0), -1) with a dynamic batch.
  GraphOf b;
  Value* x = b.input("x", {Dim::symbol("n"), 4, 3});
  Value* first = b.value("shape", {x}, {{"end", int64_t{1}}});
  Value* target = b.value("concat", {first, b.constant({-1}, DType::i64)}, {{"axis", int64_t{0}}});
  Value* y = b.value("reshape", {x, target});
  b.g.set_outputs({y});
  EXPECT_EQ(y->type.shape.text(), "[n,12]");
  EXPECT_EQ(interpret(b.g, {Tensor(DType::f32, {5, 4, 3})})[0].sizes(), (std::vector<int64_t>{5, 12}));
}

TEST(Interpreter, LocatesErrorsOfReferences) {
  GraphOf b;
  Value* x = b.input("x", {Dim::symbol("n")});
  Value* y = b.input("y", {Dim::symbol("m")});
  b.g.set_outputs({b.value("add", {x, y})});
  const std::string message = message_of([&] { interpret(b.g, {f32({1, 2}), f32({1, 2, 3})}); });
  EXPECT_NE(message.find("shape_mismatch"), std::string::npos) << message;
  EXPECT_NE(message.find("add_node"), std::string::npos) << message;
}

}  // namespace
}  // namespace opfuse
