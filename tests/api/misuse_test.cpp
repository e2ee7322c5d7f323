// What callers do by mistake: use what they moved away, write a model over the file it was read from.
#include <gtest/gtest.h>

#include <filesystem>

#include "opfuse/network.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

Model doubled() {
  Network net;
  auto x = net.input("x", {"4", "8"});
  net.output("y", net.add(x, x));
  return net.model();
}

template <class F>
std::string code_of(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.diagnostic().code;
  }
  return "nothing thrown";
}

TEST(Moved, ContextsExecutablesAndModelsAnswerWithAnError) {
  Model model = doubled();
  Executable exe = compile(model, Target::host());
  Context context = exe.create_context({.threads = 1});
  const Context kept = std::move(context);
  EXPECT_EQ(code_of([&] { context.run(); }), "E0602");          // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { context.bind("x", {}); }), "E0602");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { context.threads(); }), "E0602");      // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(kept.threads(), 1);

  const Executable other = std::move(exe);
  EXPECT_EQ(code_of([&] { exe.create_context(); }), "E0602");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { exe.inputs(); }), "E0602");          // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(other.inputs().size(), 1u);

  const Model moved = std::move(model);
  EXPECT_EQ(code_of([&] { model.text(); }), "E0401");                    // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { compile(model, Target::host()); }), "E0401");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(code_of([&] { const Model copy = model; }), "E0401");        // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(moved.text().empty());
}

/// A product written over its operand would read what it wrote.
TEST(Bind, RefusesOutputsThatShareMemory) {
  Network net;
  auto x = net.input("x", {"n", "8"}), w = net.input("w", {"8", "8"});
  net.output("y", net.op("matmul", {x, w}));
  net.output("z", net.op("relu", {x}));
  const Executable exe = compile(net.model(), Target::host());
  std::vector<float> memory(256, 1.0F), weights(64, 1.0F), more(64);
  const auto run = [&](const ArrayView& y, const ArrayView& z) {
    Context context = exe.create_context({.threads = 1});
    context.bind("x", {DType::f32, memory.data(), {4, 8}});
    context.bind("w", view(weights, {8, 8}));
    context.bind("y", y);
    context.bind("z", z);
    return code_of([&] { context.run(); });
  };
  const auto at = [&](size_t offset, int64_t rows) { return ArrayView{DType::f32, memory.data() + offset, {rows, 8}}; };
  const ArrayView apart{DType::f32, more.data(), {4, 8}};
  EXPECT_EQ(run(at(32, 4), at(64, 4)), "nothing thrown");  // one behind the other
  EXPECT_EQ(run(at(0, 4), apart), "E0602");
  EXPECT_EQ(run(at(31, 4), apart), "E0602");
  EXPECT_EQ(run(apart, apart), "E0602");
  EXPECT_EQ(run({DType::f32, weights.data(), {4, 8}}, apart), "E0602");
}

/// Nobody runs them, and nothing may visit their elements one by one.
TEST(Compile, TakesExtentsOfBillions) {
  Network net;
  const std::vector<float> weights(std::size_t{8} * 8 * 9, 0.5F);
  auto x = net.input("x", {"10000000000", "8"}), z = net.input("z", {"1", "8", "10000000000", "4"});
  auto w = net.constant(view(weights, {8, 8, 3, 3})), v = net.constant(view(weights, {8, 72}));
  net.output("y", net.op("matmul", {x, v}));
  net.output("c", net.op("conv", {z, w}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  EXPECT_EQ(compile(net.model(), Target::host()).outputs().size(), 2u);
}

TEST(Save, RefusesTheFileThatTheModelWasReadFrom) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path("m.onnx"), link = folder.path("link.onnx");
  doubled().save(file);
  doubled().save(file);  // not read from there
  std::filesystem::create_symlink(file, link);
  const Model read = Model::load(file);
  const Fused fused = apply(read, plan(read, Target::host()));
  for (const std::string& path : {file, link}) {
    EXPECT_EQ(code_of([&] { read.save(path); }), "E0401") << path;
    EXPECT_EQ(code_of([&] { fused.model.save(path); }), "E0401") << path;
  }
  read.save(folder.path("other.onnx"));
}

}  // namespace
}  // namespace opfuse
