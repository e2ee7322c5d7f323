// Sizes that a run finds: what NonZero, NonMaxSuppression, Compress, Unique and computed bounds give has the shape and
// the values that the operators' references have, whatever the data, run after run in one context and from a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "driver/compilation.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "runtime/artifact.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<SymbolValues> sizes = {{}};
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

Executable compiled(const Graph& graph) {
  return compile(Model::from_graph(graph.clone()), Target::named("host"), {.cache = false, .threads = 1});
}

/// Random numbers, of which a share is positive; all of them, and none.
std::vector<std::vector<Tensor>> drawn(const Graph& graph, const SymbolValues& sizes) {
  std::vector<std::vector<Tensor>> all;
  for (const double sign : {0.0, 1.0, -1.0}) {
    std::vector<Tensor> inputs = random_inputs(graph, {.seed = 5, .symbols = sizes});
    for (Tensor& input : inputs)
      for (int64_t i = 0; sign != 0 && is_float(input.dtype()) && i < input.elements(); ++i)
        input.set_real(i, sign * (std::abs(input.real(i)) + 0.125));
    all.push_back(std::move(inputs));
  }
  return all;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].type().text(), want[i].type().text()) << what << ", output " << i;
    EXPECT_LE(difference(got[i], want[i]).relative(), 1e-5) << what << ", output " << i;
  }
}

class FoundSizes : public testing::TestWithParam<Case> {};

TEST_P(FoundSizes, AreThoseOfTheReference) {
  const Graph graph = parse_graph(GetParam().text, ops());
  const Executable executable = compiled(graph);
  const test::TemporaryFolder folder;
  executable.save(folder.path("model.opf"));
  const Executable loaded = Executable::load(folder.path("model.opf"));
  for (const SymbolValues& sizes : GetParam().sizes) {
    Context context = executable.create_context({.threads = 2});
    for (const std::vector<Tensor>& inputs : drawn(graph, sizes)) {
      const std::vector<Tensor> want = interpret(graph, inputs);
      expect_same(run_executable(loaded, inputs), want, "from a file");
      for (size_t i = 0; i < inputs.size(); ++i)
        context.bind(executable.inputs()[i].name,
                     {inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()});
      for (int again = 0; again < 2; ++again) {
        context.run();
        std::vector<Tensor> got;
        for (const TensorInfo& info : executable.outputs()) {
          const ArrayView view = context.output(info.name);
          EXPECT_EQ(context.output_shape(info.name), view.shape);
          got.push_back(Tensor::wrap(view.dtype, view.shape, view.data, nullptr).clone());
        }
        expect_same(got, want, "in a context");
      }
    }
  }
}

TEST_P(FoundSizes, AreProven) {
  const Graph graph = parse_graph(GetParam().text, ops());
  const Compilation compilation = compile_graph(graph, host_target(), {});
  const std::vector<Tensor> inputs = drawn(graph, GetParam().sizes.back())[0];
  const Comparison comparison = compare_model(graph, compilation.fused, compilation.program,
                                              Executable::from_artifact(compilation.artifact), inputs, {}, {});
  for (const GroupComparison& group : comparison.groups) EXPECT_TRUE(group.ok) << group.name << ": " << group.problem;
  for (const OutputComparison& output : comparison.outputs) EXPECT_TRUE(output.ok) << output.name;
}

const Case kCases[] = {
    {"NonZeroOfOpenSizes",
     R"(graph (%x: f32[a,b]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
       %y = non_zero(%p) {defines = ["n"]} return %y })",
     {{{"a", 3}, {"b", 5}}, {{"a", 1}, {"b", 1}}, {{"a", 0}, {"b", 4}}}},
    {"MaskThenSum",
     R"(graph (%x: f32[4,6]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
       %i = non_zero(%p) {defines = ["n"]} %t = transpose(%i) {perm = [1,0]} %v = gather_nd(%x, %t)
       %e = exp(%v) %s = reduce_sum(%e) {axes = [0], keepdims = false} %q = mul(%e, %s) return %q, %s })"},
    {"TwoMasksJoined",
     R"(graph (%x: f32[9], %t: f32[9,8]) { %z = const splat<0> : f32[] %p = greater(%x, %z) %q = less(%x, %z)
       %i = non_zero(%p) {defines = ["n"]} %j = non_zero(%q) {defines = ["m"]}
       %i1 = squeeze(%i) {axes = [0]} %j1 = squeeze(%j) {axes = [0]}
       %g = gather(%t, %i1) {axis = 0} %h = gather(%t, %j1) {axis = 0} %r = relu(%h)
       %c = concat(%g, %r) {axis = 0} %w = const rand<1> : f32[8,5] %mm = matmul(%c, %w)
       %y = softmax(%mm) {axis = -1} return %y, %i1 })"},
    {"Scattered",
     R"(graph (%x: f32[a,6]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
       %i = non_zero(%p) {defines = ["n"]} %t = transpose(%i) {perm = [1,0]} %v = gather_nd(%x, %t)
       %u = neg(%v) %y = scatter_nd(%x, %t, %u) return %y })",
     {{{"a", 4}}, {{"a", 1}}}},
    {"NonMaxSuppression",
     R"(graph (%b: f32[2,40,4], %s: f32[2,3,40]) { %m = const splat<4> : i64[] %o = const splat<0.3> : f32[]
       %l = const splat<0.25> : f32[] %r = non_max_suppression(%b, %s, %m, %o, %l) {defines = ["n"]}
       %i = slice(%r) {starts = [2], ends = [3], axes = [1]} %f = cast(%i) {to = f32} %y = mul(%f, %l) return %r, %y })"},
    {"Compress",
     R"(graph (%x: f32[5,4], %c: f32[4]) { %z = const splat<0> : f32[] %p = greater(%c, %z)
       %y = compress(%x, %p) {axis = [1], defines = ["n"]} %r = relu(%y)
       %f = compress(%x, %p) {defines = ["m"]} return %r, %f })"},
    {"Unique",
     R"(graph (%x: f32[n,3]) { %z = const splat<0> : f32[] %p = greater(%x, %z) %k = cast(%p) {to = i64}
       %y, %f, %i, %c = unique(%k) {axis = [0], sorted = false, defines = ["u"]} %r = mul(%c, %c)
       return %y, %f, %i, %r })",
     {{{"n", 7}}, {{"n", 1}}}},
    {"UniqueOfRounded",  // as many as there are whatever noise a proof adds
     R"(graph (%x: f32[6,4]) { %q = round(%x) %y, %f = unique(%q) {defines = ["u"]} %r = exp(%y) return %r, %f })"},
    {"ComputedBounds",
     R"(graph (%x: f32[7], %w: f32[2,9]) { %z = const splat<0> : f32[] %p = greater(%x, %z) %k = cast(%p) {to = i64}
       %s = reduce_sum(%k) {axes = [0], keepdims = true} %n = read_sizes(%s) {defines = ["n"]}
       %v, %at = top_k(%w, %n) {axis = 1} %c = concat(%n, %n) {axis = 0} %o = constant_of_shape(%c)
       %l = slice(%w, %n) {ends = [9], axes = [1]} %r = relu(%l) %e = exp(%v) return %e, %at, %o, %r })"},
    {"Chosen",
     R"(graph (%x: f32[8]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
       %i = non_zero(%p) {defines = ["n"]} %j = squeeze(%i) {axes = [0]} %g = gather(%x, %j) {axis = 0}
       %m = reduce_sum(%x) {axes = [0], keepdims = false} %c = greater(%m, %z)
       %y = choose(%c, %g, %x) {axes = [0], defines = ["k"]} %r = exp(%y) return %r })"},
};

INSTANTIATE_TEST_SUITE_P(Found, FoundSizes, testing::ValuesIn(kCases), name_of);

constexpr const char* kMask = R"(graph (%x: f32[8]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
  %i = non_zero(%p) {defines = ["n"]} %j = squeeze(%i) {axes = [0]} %y = gather(%x, %j) {axis = 0} return %y })";

Tensor eight(int64_t positive) {
  Tensor x(DType::f32, {8});
  for (int64_t i = 0; i < 8; ++i) x.set_real(i, i < positive ? i + 1 : -1);
  return x;
}

/// Both branches of an If are computed: sizes that only one needs are told when compiling, and where a run breaks them.
TEST(FoundSizesOfBranches, AreToldWhereTheySuitOneBranchAlone) {
  const Graph graph = parse_graph(R"(graph (%x: f32[8], %t: f32[3]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
    %i = non_zero(%p) {defines = ["n"]} %j = squeeze(%i) {axes = [0]} %g = gather(%x, %j) {axis = 0}
    %a = add(%g, %t) %m = reduce_sum(%x) {axes = [0], keepdims = false} %c = greater(%m, %z)
    %y = choose(%c, %x, %a) {axes = [0], defines = ["k"]} return %y })",
                                  ops());
  const std::vector<std::string> notes = compile_graph(graph, host_target(), {}).notes();
  EXPECT_THAT(notes, testing::Contains(testing::AllOf(testing::HasSubstr("both branches are computed"),
                                                      testing::HasSubstr("n = 3 or n = 1"))));
  const Executable executable = compiled(graph);
  const Tensor t(DType::f32, {3});
  EXPECT_EQ(run_executable(executable, {eight(3), t})[0].sizes(), std::vector<int64_t>{8});
  try {
    run_executable(executable, {eight(5), t});
    ADD_FAILURE() << "sizes of 5 and 3 were added";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().code, "E0204");
    EXPECT_THAT(error.diagnostic().hint,
                testing::AllOf(testing::HasSubstr("found by this run"), testing::Not(testing::HasSubstr("--dim"))));
  }
}

TEST(FoundSizesOfOutputs, AnArrayOfTheCallersNeedsRoom) {
  const Executable executable = compiled(parse_graph(kMask, ops()));
  Context context = executable.create_context({.threads = 1});
  Tensor x = eight(5), room(DType::f32, {6});
  context.bind("x", {DType::f32, x.mutable_data(), {8}});
  context.bind(executable.outputs()[0].name, {DType::f32, room.mutable_data(), {6}});
  context.run();
  EXPECT_EQ(context.output(executable.outputs()[0].name).shape, std::vector<int64_t>{5});
  EXPECT_EQ(room.real(4), 5);
  Tensor more = eight(7);
  context.bind("x", {DType::f32, more.mutable_data(), {8}});
  EXPECT_THROW(context.run(), Error);
  context.bind("x", {DType::f32, x.mutable_data(), {8}});
  context.run();
  EXPECT_EQ(context.output(executable.outputs()[0].name).shape, std::vector<int64_t>{5});
}

TEST(FoundSizesOfMemory, ArenasOfFoundSizesCount) {
  const Executable executable = compiled(parse_graph(R"(graph (%x: f32[8]) { %z = const splat<0> : f32[]
    %p = greater(%x, %z) %y = compress(%x, %p) {axis = [0], defines = ["n"]}
    %q = unsqueeze(%y) {axes = [0]} %e = exp(%q) %m = reduce_sum(%e) {axes = [1], keepdims = true} %d = div(%e, %m)
    %s = non_zero(%d) {defines = ["k"]} return %s })",
                                                     ops()));
  Context context = executable.create_context({.threads = 1});
  const Tensor few = eight(1), more = eight(8);
  size_t before = 0;
  for (const Tensor* x : {&few, &more}) {
    context.bind("x", {DType::f32, const_cast<void*>(x->data()), {8}});
    context.run();
    EXPECT_GT(context.intermediate_bytes(), before);
    before = context.intermediate_bytes();
    EXPECT_GE(context.arena_bytes(), 4 * sizeof(float)) << "of what compress keeps";
  }
}

/// Data decide, and one branch adds three numbers: so many have to be given in either case.
TEST(FoundSizesOfBranches, TellOfSizesThatTheCallerGives) {
  const Graph graph = parse_graph(R"(graph (%x: f32[a], %t: f32[3]) { %z = const splat<0> : f32[] %a = add(%x, %t)
    %m = reduce_sum(%x) {axes = [0], keepdims = false} %c = greater(%m, %z)
    %y = choose(%c, %x, %a) {axes = [0], defines = ["k"]} return %y })",
                                  ops());
  EXPECT_THAT(compile_graph(graph, host_target(), {}).notes(),
              testing::Contains(testing::AllOf(testing::HasSubstr("both branches are computed"),
                                               testing::HasSubstr("a = 3 or a = 1"))));
}

TEST(FoundSizesOfOutputs, ARunThatFailedFailsAgain) {
  const Executable executable = compiled(parse_graph(R"(graph (%x: f32[8]) { %z = const splat<0> : f32[]
    %p = greater(%x, %z) %i = non_zero(%p) {defines = ["n"]} return %i })",
                                                     ops()));
  Context context = executable.create_context({.threads = 1});
  Tensor x = eight(7), room(DType::i64, {1, 6});
  context.bind("x", {DType::f32, x.mutable_data(), {8}});
  context.bind(executable.outputs()[0].name, {DType::i64, room.mutable_data(), {1, 6}});
  for (int again = 0; again < 2; ++again) EXPECT_THROW(context.run(), Error) << again;
}

TEST(FoundSizesOfBoxes, AScoreThatIsNoNumberNeverStays) {
  const Graph graph = parse_graph(R"(graph (%b: f32[1,64,4], %s: f32[1,1,64]) { %m = const splat<64> : i64[]
    %o = const splat<0.9> : f32[] %r = non_max_suppression(%b, %s, %m, %o) {defines = ["n"]} return %r })",
                                  ops());
  std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3});
  for (int64_t i = 0; i < 64; i += 3) inputs[1].set_real(i, i % 2 == 0 ? NAN : -INFINITY);
  const Tensor want = interpret(graph, inputs)[0];
  ASSERT_GT(want.dim(0), 0);
  for (int64_t row = 0; row < want.dim(0); ++row) EXPECT_FALSE(std::isnan(inputs[1].real(want.integer(3 * row + 2))));
  expect_same(run_executable(compiled(graph), inputs), {want}, "scores that are no numbers");
}

TEST(FoundSizesOfOutputs, AreNotKnownBeforeTheRun) {
  const Executable executable = compiled(parse_graph(kMask, ops()));
  Context context = executable.create_context({.threads = 1});
  const Tensor x = eight(3);
  context.bind("x", {DType::f32, const_cast<void*>(x.data()), {8}});
  try {
    context.output_shape(executable.outputs()[0].name);
    ADD_FAILURE() << "a shape that nobody knows";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "missing_dimension");
    EXPECT_NE(error.diagnostic().hint, "");
  }
}

TEST(FoundSizesOfDevices, AreRefusedWithWhatHelps) {
  const Graph graph = parse_graph(kMask, ops());
  for (const bool reference : {false, true}) try {
      compile(Model::from_graph(graph.clone()), Target::named("cuda:sm_90"),
              {.cache = false, .allow_reference = reference});
      ADD_FAILURE() << "compiled";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostic().name, "uncompilable") << error.what();
      EXPECT_NE(error.diagnostic().hint.find("cpu targets"), std::string::npos) << error.what();
    }
}

TEST(FoundSizesOfOperands, AreComparedWhenTheyAreKnown) {
  const Executable executable = compiled(parse_graph(R"(graph (%x: f32[8], %y: f32[8]) {
    %z = const splat<0> : f32[] %p = greater(%x, %z) %q = greater(%y, %z)
    %i = non_zero(%p) {defines = ["n"]} %j = non_zero(%q) {defines = ["m"]} %s = add(%i, %j) return %s })",
                                                     ops()));
  EXPECT_NO_THROW(run_executable(executable, {eight(3), eight(3)}));
  EXPECT_EQ(run_executable(executable, {eight(3), eight(1)})[0].sizes(), (std::vector<int64_t>{1, 3}));  // stretches
  try {
    run_executable(executable, {eight(3), eight(2)});
    ADD_FAILURE() << "3 and 2 were added";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "shape_mismatch") << error.what();
  }
}

}  // namespace
}  // namespace opfuse
