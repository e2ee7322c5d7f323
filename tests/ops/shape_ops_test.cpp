// Shape operators: values, inference with symbols, and what they refuse.
#include <gtest/gtest.h>

#include <numeric>

#include "ops/run_op.hpp"

namespace opfuse {
namespace {

using Sizes = std::vector<int64_t>;
using Dims = std::vector<Dim>;

Tensor counting(const Sizes& sizes) {
  Tensor t(DType::f32, sizes);
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, static_cast<double>(i));
  return t;
}

AttrMap axes(const Sizes& list) { return {{"axes", list}}; }

TEST(Reshape, ResolvesZeroAndMinusOne) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(run_op("reshape", {}, {x, Tensor::from_i64({0, -1})}).sizes(), (Sizes{2, 12}));
  EXPECT_EQ(run_op("reshape", {}, {x, Tensor::from_i64({4, 6})}).sizes(), (Sizes{4, 6}));
  EXPECT_EQ(run_op("reshape", {}, {x, Tensor::from_i64({-1, 0, 2})}).sizes(), (Sizes{4, 3, 2}));
  EXPECT_EQ(run_op("reshape", {}, {counting({1}), Tensor::from_i64({})}).sizes(), Sizes{});
  const Tensor none = counting({0, 3});
  EXPECT_EQ(run_op("reshape", {{"allowzero", true}}, {none, Tensor::from_i64({3, 0})}).sizes(), (Sizes{3, 0}));
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const Tensor x = counting({2, 3, 4});
  auto error = [&](const Sizes& target, bool allowzero = false) {
    return error_of([&] { infer_op("reshape", {{"allowzero", allowzero}}, {x, Tensor::from_i64(target)}); });
  };
  EXPECT_EQ(error({5, 5}), "shape_mismatch");
  EXPECT_EQ(error({-1, 5}), "shape_mismatch");
  EXPECT_EQ(error({-1, -1}), "bad_dimension");
  EXPECT_EQ(error({-2, 12}), "bad_dimension");
  EXPECT_EQ(error({1, 1, 24, 0}), "bad_dimension");
  EXPECT_EQ(error({0, -1}, true), "bad_dimension");
}

TEST(Reshape, KeepsSymbols) {
  const Dim n = Dim::symbol("n"), h = Dim::symbol("h");
  auto text = [&](const Shape& x, const Dims& target) {
    const TensorType shape_type{DType::i64, Shape{static_cast<int64_t>(target.size())}};
    return infer_types("reshape", {}, {{DType::f32, x}, shape_type}, {{1, target}}).shape.text();
  };
  EXPECT_EQ(text({n, 64, 7, 7}, {0, -1}), (Shape{n, 3136}).text());
  EXPECT_EQ(text({n, 64, h, 7}, {n, 64, -1}), (Shape{n, 64, h * Dim(7)}).text());
  EXPECT_EQ(text({n, 12}, {-1, 3, 4}), (Shape{n, 3, 4}).text());
  EXPECT_EQ(text({n, h, 8}, {n * h, 8}), (Shape{n * h, 8}).text());
}

TEST(Flatten, SplitsAtItsAxis) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(run_op("flatten", {}, {x}).sizes(), (Sizes{2, 12}));
  EXPECT_EQ(run_op("flatten", {{"axis", int64_t{0}}}, {x}).sizes(), (Sizes{1, 24}));
  EXPECT_EQ(run_op("flatten", {{"axis", int64_t{3}}}, {x}).sizes(), (Sizes{24, 1}));
  EXPECT_EQ(run_op("flatten", {{"axis", int64_t{-1}}}, {x}).sizes(), (Sizes{6, 4}));
  EXPECT_EQ(error_of([&] { infer_op("flatten", {{"axis", int64_t{4}}}, {x}); }), "bad_attribute");
}

TEST(Squeeze, RemovesOnes) {
  const Tensor x = counting({1, 3, 1, 5});
  EXPECT_EQ(run_op("squeeze", {}, {x}).sizes(), (Sizes{3, 5}));
  EXPECT_EQ(run_op("squeeze", axes({-2}), {x}).sizes(), (Sizes{1, 3, 5}));
  EXPECT_EQ(run_op("squeeze", {}, {x, Tensor::from_i64({0})}).sizes(), (Sizes{3, 1, 5}));
  EXPECT_EQ(error_of([&] { infer_op("squeeze", axes({1}), {x}); }), "shape_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("squeeze", axes({0, 0}), {x}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { infer_op("squeeze", axes({9}), {x}); }), "bad_attribute");
}

TEST(Unsqueeze, InsertsOnesAtPositionsOfTheResult) {
  const Tensor x = counting({3, 5});
  EXPECT_EQ(run_op("unsqueeze", axes({0, 3}), {x}).sizes(), (Sizes{1, 3, 5, 1}));
  EXPECT_EQ(run_op("unsqueeze", {}, {x, Tensor::from_i64({-1, 1})}).sizes(), (Sizes{3, 1, 5, 1}));
  EXPECT_EQ(error_of([&] { infer_op("unsqueeze", axes({4}), {x}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { infer_op("unsqueeze", axes({0, 0}), {x}); }), "bad_attribute");
}

TEST(Expand, StretchesBothWays) {
  const Tensor x = counting({3, 1});
  const Tensor out = run_op("expand", {}, {x, Tensor::from_i64({2, 1, 4})});
  ASSERT_EQ(out.sizes(), (Sizes{2, 3, 4}));
  for (int64_t i = 0; i < out.elements(); ++i) EXPECT_EQ(out.real(i), static_cast<double>(i / 4 % 3));
  EXPECT_EQ(error_of([&] { infer_op("expand", {}, {x, Tensor::from_i64({2, 4})}); }), "shape_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("expand", {}, {x, Tensor::from_i64({-1, 4})}); }), "bad_dimension");
}

TEST(Transpose, PermutesEveryElementSize) {
  for (DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
    const Tensor x = counting({2, 3, 4}).cast(dtype);
    const Tensor out = run_op("transpose", {{"perm", Sizes{2, 0, 1}}}, {x});
    ASSERT_EQ(out.sizes(), (Sizes{4, 2, 3}));
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(out.real((a * 2 + b) * 3 + c), x.real((b * 3 + c) * 4 + a));
  }
  EXPECT_EQ(run_op("transpose", {}, {counting({2, 3, 4})}).sizes(), (Sizes{4, 3, 2}));
  EXPECT_EQ(run_op("transpose", {}, {counting({})}).sizes(), Sizes{});
  const Tensor x = counting({2, 3});
  EXPECT_EQ(error_of([&] { infer_op("transpose", {{"perm", Sizes{0}}}, {x}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { infer_op("transpose", {{"perm", Sizes{0, 0}}}, {x}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { infer_op("transpose", {{"perm", Sizes{0, 2}}}, {x}); }), "bad_attribute");
}

TEST(ShapeOf, GivesARangeOfDimensions) {
  const Tensor x = counting({2, 3, 4});
  auto shape = [&](int64_t start, int64_t end) {
    return run_op("shape", {{"start", start}, {"end", end}}, {x}).to_i64();
  };
  EXPECT_EQ(run_op("shape", {}, {x}).to_i64(), (Sizes{2, 3, 4}));
  EXPECT_EQ(shape(1, 99), (Sizes{3, 4}));
  EXPECT_EQ(shape(-1, 99), (Sizes{4}));
  EXPECT_EQ(shape(0, -1), (Sizes{2, 3}));
  EXPECT_EQ(shape(2, 1), Sizes{});
  EXPECT_EQ(shape(-99, 1), (Sizes{2}));
  EXPECT_EQ(run_op("size", {}, {x}).integer(0), 24);
}

TEST(Range, CountsUpAndDown) {
  auto range = [](int64_t a, int64_t b, int64_t c) {
    return run_op(
               "range", {},
               {Tensor::scalar(DType::i64, static_cast<double>(a)), Tensor::scalar(DType::i64, static_cast<double>(b)),
                Tensor::scalar(DType::i64, static_cast<double>(c))})
        .to_i64();
  };
  EXPECT_EQ(range(1, 6, 2), (Sizes{1, 3, 5}));
  EXPECT_EQ(range(10, 4, -3), (Sizes{10, 7}));
  EXPECT_EQ(range(3, 3, 1), Sizes{});
  EXPECT_EQ(range(3, 0, 1), Sizes{});
  EXPECT_EQ(error_of([&] { range(0, 1, 0); }), "bad_dimension");
  const Tensor reals = run_op(
      "range", {}, {Tensor::scalar(DType::f32, 0), Tensor::scalar(DType::f32, 1), Tensor::scalar(DType::f32, 0.25)});
  EXPECT_EQ(reals.sizes(), (Sizes{4}));
  EXPECT_EQ(reals.real(3), 0.75);
  const Dim n = Dim::symbol("n");
  const TensorType i64{DType::i64, {}};
  EXPECT_EQ(infer_types("range", {}, {i64, i64, i64}, {{0, {Dim(0)}}, {1, {n}}, {2, {Dim(1)}}}).shape, (Shape{n}));
}

TEST(ConstantOfShape, FillsWithItsValue) {
  const Tensor out = run_op("constant_of_shape", {{"dtype", DType::i64}, {"value", 7.0}}, {Tensor::from_i64({2, 2})});
  EXPECT_EQ(out.sizes(), (Sizes{2, 2}));
  EXPECT_EQ(out.to_i64(), (Sizes{7, 7, 7, 7}));
  EXPECT_EQ(run_op("constant_of_shape", {}, {Tensor::from_i64({3})}).real(2), 0);
  EXPECT_EQ(error_of([] {
              infer_op("constant_of_shape", {{"dtype", DType::i64}, {"value", 0.5}}, {Tensor::from_i64({1})});
            }),
            "bad_attribute");
  EXPECT_EQ(error_of([] { infer_op("constant_of_shape", {}, {Tensor::from_i64({-1})}); }), "bad_dimension");
}

TEST(EyeLike, PutsOnesOnADiagonal) {
  const Tensor x = counting({2, 3});
  const Tensor out = run_op("eye_like", {{"k", int64_t{1}}}, {x});
  EXPECT_EQ(out.real(1), 1);
  EXPECT_EQ(out.real(5), 1);
  EXPECT_EQ(out.real(0) + out.real(2) + out.real(3) + out.real(4), 0);
  EXPECT_EQ(run_op("eye_like", {{"k", INT64_MAX}}, {x}).real(0), 0);
}

/// dims() of an operator whose operands' elements are given.
std::optional<Dims> dims_of(std::string_view op, const AttrMap& attrs, const std::vector<TensorType>& types,
                            const std::map<size_t, Dims>& values) {
  const OpInfo* info = op_named(op);
  auto lookup = [&](size_t i) -> std::optional<Dims> {
    auto found = values.find(i);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  return info->dims(info->attrs_from_map(attrs).get(), Inference(types, {}, 1, lookup));
}

TEST(ShapeArithmetic, FollowsLawsOnSymbols) {
  const Dim n = Dim::symbol("n"), h = Dim::symbol("h");
  const TensorType scalar{DType::i64, {}}, two{DType::i64, Shape{2}};
  EXPECT_EQ(dims_of("shape", {}, {{DType::f32, Shape{n, 3, h}}}, {}), (Dims{n, 3, h}));
  EXPECT_EQ(dims_of("size", {}, {{DType::f32, Shape{n, 3}}}, {}), (Dims{n * Dim(3)}));
  EXPECT_EQ(dims_of("mul", {}, {scalar, scalar}, {{0, {n}}, {1, {Dim(4)}}}), (Dims{n * Dim(4)}));
  EXPECT_EQ(dims_of("div", {}, {scalar, scalar}, {{0, {h}}, {1, {Dim(2)}}}), (Dims{floor_div(h, Dim(2))}));
  EXPECT_EQ(dims_of("add", {}, {two, scalar}, {{0, {n, h}}, {1, {Dim(1)}}}), (Dims{n + Dim(1), h + Dim(1)}));
  EXPECT_EQ(dims_of("cast", {{"to", DType::i32}}, {scalar}, {{0, {n}}}), (Dims{n}));
  EXPECT_EQ(dims_of("cast", {{"to", DType::f32}}, {scalar}, {{0, {n}}}), (Dims{n}));  // the end of a range
  for (const DType to : {DType::f16, DType::bf16, DType::i8, DType::boolean})
    EXPECT_EQ(dims_of("cast", {{"to", to}}, {scalar}, {{0, {n}}}), std::nullopt);
  EXPECT_EQ(dims_of("equal", {}, {two, scalar}, {{0, {n, Dim(-1)}}, {1, {Dim(-1)}}}), (Dims{0, 1}));
  const TensorType condition{DType::boolean, Shape{2}};
  EXPECT_EQ(dims_of("where", {}, {condition, two, two}, {{0, {0, 1}}, {1, {7, 8}}, {2, {n, h}}}), (Dims{n, 8}));
  EXPECT_EQ(dims_of("mul", {}, {scalar, scalar}, {{0, {n}}}), std::nullopt);
  EXPECT_EQ(dims_of("add", {}, {scalar, scalar}, {{0, {n}}, {1, {Dim(INT64_MAX)}}}), std::nullopt);
  EXPECT_EQ(dims_of("min", {}, {scalar, scalar}, {{0, {Dim(3)}}, {1, {Dim(INT64_MAX)}}}), (Dims{3}));
  EXPECT_EQ(dims_of("unsqueeze", axes({0}), {scalar}, {{0, {n}}}), (Dims{n}));
}

}  // namespace
}  // namespace opfuse
