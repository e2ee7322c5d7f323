// Small operators at the edges of their domains: the compiled kernel, on every CPU target that runs here, and the
// interpreter give the same named values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "driver/compilation.hpp"
#include "interp/interpreter.hpp"
#include "ops/run_op.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Executable compiled(const Graph& graph, const TargetInfo& target) {
  CompilationOptions options;
  options.artifact.cache = false;
  return Executable::from_artifact(compile_graph(graph, target, options).artifact);
}

std::vector<TargetInfo> runnable_targets() { return targets_here({"cpu:avx512", "cpu:avx2", "cpu:baseline"}); }

/// Equal, where infinities, NaN and the signs of zeros count.
void expect_same(const Tensor& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(want.size())) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const double g = got.real(static_cast<int64_t>(i));
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(g)) << what << " element " << i << " is " << g;
    } else {
      EXPECT_EQ(g, want[i]) << what << " element " << i;
      EXPECT_EQ(std::signbit(g), std::signbit(want[i])) << what << " element " << i;
    }
  }
}

void expect_everywhere(const std::string& text, const std::vector<Tensor>& inputs, const std::vector<double>& want,
                       bool interpreted = true) {
  const Graph graph = parse_graph("graph " + text, ops());
  if (interpreted)
    expect_same(interpret(graph, inputs, {.precision = Precision::typed})[0], want, text + " interpreted");
  for (const TargetInfo& target : runnable_targets())
    expect_same(run_executable(compiled(graph, target), inputs)[0], want, text + " on " + target.name);
}

TEST(Edges, ARemainderHasTheSignOfItsDivisorThatOfZeroToo) {
  const Tensor x = reals(DType::f32, {6, -6, 6, -6, 5, -5, 0, -0.0}),
               y = reals(DType::f32, {3, 3, -3, -3, -3, 3, -2, 2});
  expect_everywhere("(%x: f32[8], %y: f32[8]) { %z = mod(%x, %y) return %z }", {x, y},
                    {0, 0, -0.0, -0.0, -1, 1, -0.0, 0});
  expect_everywhere("(%x: f32[8], %y: f32[8]) { %z = mod(%x, %y) {fmod = true} return %z }", {x, y},
                    {0, -0.0, 0, -0.0, 2, -2, 0, -0.0});
}

TEST(Edges, IntegersNeitherTrapNorOverflow) {
  const Tensor x = integers(DType::i32, {7, -7, INT32_MIN, INT32_MIN}), y = integers(DType::i32, {0, 0, -1, 2});
  expect_everywhere("(%x: i32[4], %y: i32[4]) { %z = div(%x, %y) return %z }", {x, y},
                    {0, 0, INT32_MIN, INT32_MIN / 2});
  expect_everywhere("(%x: i32[4], %y: i32[4]) { %z = mod(%x, %y) return %z }", {x, y}, {0, 0, 0, 0});
  const Tensor u = integers(DType::u8, {1, 255, 255, 3}), by = integers(DType::u8, {7, 8, 200, 1});
  expect_everywhere("(%x: u8[4], %y: u8[4]) { %z = bit_shift(%x, %y) {direction = \"left\"} return %z }", {u, by},
                    {128, 0, 0, 6});
  expect_everywhere("(%x: i32[4]) { %z = reduce_sum(%x) return %z }", {integers(DType::i32, {INT32_MAX, 1, 0, 0})},
                    {INT32_MIN});
}

TEST(Edges, ReductionsOfNothingAreNeutralInTheirType) {
  const auto reduced = [](const std::string& law, DType dtype, double want) {
    const std::string type(name_of(dtype));
    expect_everywhere("(%x: " + type + "[0,1]) { %y = reduce_" + law + "(%x) {axes = [0]} return %y }",
                      {Tensor(dtype, {0, 1})}, {want});
  };
  reduced("max", DType::boolean, 0);
  reduced("min", DType::boolean, 1);
  reduced("max", DType::i32, INT32_MIN);
  reduced("min", DType::u8, 255);
  reduced("max", DType::u8, 0);
  reduced("max", DType::f32, -kInf);
  reduced("sum", DType::f32, 0);
  reduced("prod", DType::i64, 1);
}

TEST(Edges, ReductionsOverNoAxesStillApplyTheirLaw) {
  const auto reduced = [](const std::string& law, const std::vector<double>& x, const std::vector<double>& want) {
    const Tensor data = reals(DType::f32, x);
    expect_everywhere("(%x: f32[2]) { %y = reduce_" + law + "(%x) {noop_with_empty_axes = true} return %y }", {data},
                      want);
    expect_everywhere("(%x: f32[]) { %y = reduce_" + law + "(%x) return %y }", {reals(DType::f32, {x[0]}).reshaped({})},
                      {want[0]});
  };
  for (const char* law : {"l1", "l2"}) reduced(law, {-2, 0.5}, {2, 0.5});
  reduced("sum_square", {-3, 0.5}, {9, 0.25});
  reduced("log_sum", {1, 0}, {0, -kInf});
  for (const char* law : {"sum", "mean", "max", "min", "prod"}) reduced(law, {-2, 0.5}, {-2, 0.5});
}

TEST(Edges, TheSignOfANaNIsNaN) {
  expect_everywhere("(%x: f32[5]) { %y = sign(%x) return %y }", {reals(DType::f32, {kNan, -3, 0, kInf, -kInf})},
                    {kNan, -1, 0, 1, -1});
}

TEST(Edges, ReductionsKeepInfinitiesAndUnsignedOrder) {
  expect_everywhere("(%x: f32[3,2]) { %y = reduce_log_sum_exp(%x) {axes = [1], keepdims = false} return %y }",
                    {reals(DType::f32, {kInf, 0, -kInf, -kInf, kNan, 1}).reshaped({3, 2})}, {kInf, -kInf, kNan});
  expect_everywhere("(%x: u8[3]) { %y = reduce_max(%x) return %y }", {integers(DType::u8, {1, 200, 3})}, {200});
  expect_everywhere("(%x: f32[3], %y: f32[3]) { %z = max(%x, %y) return %z }",
                    {reals(DType::f32, {kNan, 1, kInf}), reals(DType::f32, {0, kNan, kNan})}, {kNan, kNan, kNan});
  expect_everywhere("(%x: f32[4]) { %y = cast(%x) {to = i8} return %y }", {reals(DType::f32, {kNan, kInf, -kInf, 300})},
                    {0, 127, -128, 127});
}

TEST(Edges, ANaNIsLargerThanAllNumbersWhereElementsAreOrdered) {
  const Tensor x =
      reals(DType::f32, {1, kNan, 3, 2, kNan, kNan, kNan, kNan, kInf, -kInf, kNan, 0, kInf, kNan, kInf, kInf})
          .reshaped({4, 4});
  const auto expect = [&](const std::string& statement, const std::vector<double>& want) {
    expect_everywhere("(%x: f32[4,4]) { " + statement + " return %y }", {x}, want);
  };
  expect("%y = arg_max(%x) {axis = 1}", {1, 0, 2, 1});
  expect("%y = arg_max(%x) {axis = 1, select_last_index = true}", {1, 3, 2, 1});
  expect("%y = arg_min(%x) {axis = 1}", {0, 0, 1, 0});
  expect("%y = arg_min(%x) {axis = 1, select_last_index = true}", {0, 3, 1, 3});
  expect("%y = hardmax(%x)", {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0});
  expect("%v, %y = top_k(%x) {k = 3}", {1, 2, 3, 0, 1, 2, 2, 0, 3, 1, 0, 2});
  expect("%v, %y = top_k(%x) {k = 3, largest = false}", {0, 3, 2, 0, 1, 2, 1, 3, 0, 0, 2, 3});
  expect("%y, %i = top_k(%x) {k = 3}", {kNan, 3, 2, kNan, kNan, kNan, kNan, kInf, 0, kNan, kInf, kInf});
  expect("%y, %i = top_k(%x) {k = 3, largest = false}", {1, 2, 3, kNan, kNan, kNan, -kInf, 0, kInf, kInf, kInf, kInf});
}

TEST(Edges, AnIndexThatAReductionFindsIsReadBehindIt) {
  expect_everywhere(
      "(%x: f32[2,3], %i: i64[3], %u: f32[4,2], %b: f32[2,2]) { %m = arg_max(%x) {axis = 1, keepdims = false} "
      "%g = gather(%i, %m) {axis = 0} %h = gather(%u, %g) {axis = 0} %y = add(%h, %b) return %y }",
      {reals(DType::f32, {0, 5, 1, 7, 2, 3}).reshaped({2, 3}), integers(DType::i64, {3, 1, 0}),
       reals(DType::f32, {0, 1, 10, 11, 20, 21, 30, 31}).reshaped({4, 2}),
       reals(DType::f32, {1, 1, 2, 2}).reshaped({2, 2})},
      {11, 12, 32, 33});
}

TEST(Edges, OfTheSecondOperandOfCastLikeOnlyTheTypeCounts) {
  expect_everywhere("(%x: f32[2], %like: i32[3,1,1]) { %y = cast_like(%x, %like) return %y }",
                    {reals(DType::f32, {2.5, -1}), Tensor(DType::i32, {3, 1, 1})}, {2, -1});
  expect_everywhere("(%x: f32[2], %like: i32[5]) { %r = relu(%x) %y = cast_like(%r, %like) return %y }",
                    {reals(DType::f32, {2.5, -1}), Tensor(DType::i32, {5})}, {2, 0});
}

TEST(Edges, ComputedIndicesOutsideReadTheNearestElementAndWriteNothing) {
  const Tensor at = integers(DType::i64, {-9, -1, 7});
  expect_everywhere("(%x: f32[3], %i: i64[3]) { %y = gather(%x, %i) return %y }", {reals(DType::f32, {1, 2, 3}), at},
                    {1, 3, 3}, false);
  expect_everywhere("(%x: f32[3], %i: i64[3], %u: f32[3]) { %y = scatter_elements(%x, %i, %u) return %y }",
                    {reals(DType::f32, {1, 2, 3}), at, reals(DType::f32, {7, 8, 9})}, {1, 2, 8}, false);
  const Graph graph = parse_graph("graph (%x: f32[3], %i: i64[3]) { %y = gather(%x, %i) return %y }", ops());
  EXPECT_EQ(error_of([&] { interpret(graph, {reals(DType::f32, {1, 2, 3}), at}); }), "bad_dimension");
}

TEST(Edges, ConstantIndicesOutsideAreRefused) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_graph("graph (%x: f32[3,4], %u: f32[1,4]) { " + text + " return %y }", ops()); });
  };
  const auto with = [&](int64_t index, const std::string& rest) {
    return error("%i = const splat<" + std::to_string(index) + "> : i64[1,1] " + rest);
  };
  for (const char* rest : {"%y = gather(%x, %i)", "%y = gather_nd(%x, %i)", "%y = gather_elements(%x, %i)",
                           "%y = scatter_nd(%x, %i, %u)"}) {
    EXPECT_EQ(with(3, rest), "bad_dimension") << rest;
    EXPECT_EQ(with(-4, rest), "bad_dimension") << rest;
    EXPECT_EQ(with(-3, rest), "none") << rest;
    EXPECT_EQ(with(2, rest), "none") << rest;
  }
}

TEST(Edges, OfWhatOnlyHasItsShapeReadNothingIsCompiled) {
  const Graph graph = parse_graph(R"(graph (%x: f32[1,3,8,8]) {
      %w = const rand<1> : f32[8,3,3,3]
      %c = conv(%x, %w)
      %r = relu(%c)
      %y = const dense<1,8,6,6> : i64[4]
      return %y })",
                                  ops());
  CompilationOptions options;
  options.artifact.cache = false;
  const Compilation compilation = compile_graph(graph, host_target(), options);
  EXPECT_LE(compilation.program.launches.size(), 1u);
  expect_same(run_executable(Executable::from_artifact(compilation.artifact), {Tensor(DType::f32, {1, 3, 8, 8})})[0],
              {1, 8, 6, 6}, "shape");
}

TEST(Edges, ProductsOverNothingAreZero) {
  expect_everywhere("(%x: f32[0,3,4], %w: f32[4,5]) { %y = matmul(%x, %w) return %y }",
                    {Tensor(DType::f32, {0, 3, 4}), Tensor(DType::f32, {4, 5})}, {});
  expect_everywhere("(%x: f32[2,0], %w: f32[0,2]) { %y = matmul(%x, %w) return %y }",
                    {Tensor(DType::f32, {2, 0}), Tensor(DType::f32, {0, 2})}, {0, 0, 0, 0});
}

}  // namespace
}  // namespace opfuse
