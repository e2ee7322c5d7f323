// Gather and scatter families, one_hot, non_zero, quantisation.
#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

TEST(Gather, ReadsSlices) {
  const Tensor x = ramp({2, 3});
  expect_values(run_checked("gather", {}, {x, i64({2}, {1, -2})}), {2, 3}, {3, 4, 5, 0, 1, 2});
  expect_values(run_checked("gather", {{"axis", int64_t{1}}}, {x, i64({1, 2}, {2, 0})}), {2, 1, 2}, {2, 0, 5, 3});
  expect_values(run_checked("gather", {{"axis", int64_t{-1}}}, {x, i64({}, {1})}), {2}, {1, 4});
  EXPECT_EQ(inferred("gather", {}, {"f32[30522,768]", "i64[n,s]"}), "f32[n,s,768]");
  EXPECT_EQ(error_of([&] { run_op("gather", {}, {x, i64({1}, {2})}); }), "bad_dimension");
  EXPECT_EQ(error_of([&] { run_op("gather", {}, {x, i64({1}, {-3})}); }), "bad_dimension");
  EXPECT_EQ(inference_error("gather", {}, {"f32[2,3]", "f32[1]"}), "dtype_mismatch");
}

TEST(GatherElements, ReadsOneElementPerIndex) {
  const Tensor x = ramp({2, 2}, 1);
  expect_values(run_checked("gather_elements", {{"axis", int64_t{1}}}, {x, i64({2, 2}, {0, 0, 1, -2})}), {2, 2},
                {1, 1, 4, 3});
  expect_values(run_checked("gather_elements", {}, {x, i64({1, 2}, {1, 0})}), {1, 2}, {3, 2});
  EXPECT_EQ(error_of([&] { run_op("gather_elements", {}, {x, i64({1, 2}, {2, 0})}); }), "bad_dimension");
  EXPECT_EQ(inference_error("gather_elements", {}, {"f32[2,3]", "i64[2]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("gather_elements", {}, {"f32[2,3]", "i64[2,4]"}), "shape_mismatch");
}

TEST(GatherND, ReadsAtTuples) {
  const Tensor x = ramp({2, 2, 2});
  expect_values(run_checked("gather_nd", {}, {x, i64({2, 2}, {0, 1, 1, 0})}), {2, 2}, {2, 3, 4, 5});
  expect_values(run_checked("gather_nd", {}, {x, i64({1, 3}, {1, 1, -1})}), {1}, {7});
  expect_values(run_checked("gather_nd", {{"batch_dims", int64_t{1}}}, {x, i64({2, 1}, {1, 0})}), {2, 2}, {2, 3, 4, 5});
  EXPECT_EQ(error_of([&] { run_op("gather_nd", {}, {x, i64({1, 1}, {2})}); }), "bad_dimension");
  EXPECT_EQ(inference_error("gather_nd", {}, {"f32[2,2]", "i64[1,3]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("gather_nd", {{"batch_dims", int64_t{1}}}, {"f32[2,2]", "i64[2]"}), "shape_mismatch");
}

TEST(ScatterElements, WritesAndReduces) {
  const Tensor x = f64({1, 5}, {1, 2, 3, 4, 5}), at = i64({1, 2}, {1, -2}), updates = f64({1, 2}, {1.5, 10});
  const auto scatter = [&](const char* reduction) {
    return run_checked("scatter_elements", {{"axis", int64_t{1}}, {"reduction", reduction}}, {x, at, updates});
  };
  expect_values(scatter("none"), {1, 5}, {1, 1.5, 3, 10, 5});
  expect_values(scatter("add"), {1, 5}, {1, 3.5, 3, 14, 5});
  expect_values(scatter("mul"), {1, 5}, {1, 3, 3, 40, 5});
  expect_values(scatter("max"), {1, 5}, {1, 2, 3, 10, 5});
  expect_values(scatter("min"), {1, 5}, {1, 1.5, 3, 4, 5});
  expect_values(x, {1, 5}, {1, 2, 3, 4, 5});  // the operand is untouched
  EXPECT_EQ(error_of([&] {
              run_op("scatter_elements", {{"axis", int64_t{1}}}, {x, i64({1, 1}, {5}), f64({1, 1}, {0})});
            }),
            "bad_dimension");
  EXPECT_EQ(inference_error("scatter_elements", {}, {"f32[2,3]", "i64[1,1]", "f32[1,2]"}), "shape_mismatch");
}

TEST(ScatterND, WritesSlices) {
  const Tensor x = ramp({3, 2});
  expect_values(run_checked("scatter_nd", {}, {x, i64({2, 1}, {2, 0}), f64({2, 2}, {7, 8, 9, 10})}), {3, 2},
                {9, 10, 2, 3, 7, 8});
  expect_values(run_checked("scatter_nd", {{"reduction", "add"}}, {x, i64({2, 2}, {0, 1, 0, 1}), f64({2}, {1, 1})}),
                {3, 2}, {0, 3, 2, 3, 4, 5});
  EXPECT_EQ(error_of([&] { run_op("scatter_nd", {}, {x, i64({1, 1}, {3}), f64({1, 2}, {0, 0})}); }), "bad_dimension");
  EXPECT_EQ(inference_error("scatter_nd", {}, {"f32[3,2]", "i64[2,1]", "f32[2]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("scatter_nd", {}, {"f32[3,2]", "i64[2,1]", "f32[2,3]"}), "shape_mismatch");
}

TEST(OneHot, PutsValuesOnANewAxis) {
  const Tensor at = i64({2}, {1, -1}), depth = i64({}, {3}), values = f64({2}, {0, 5});
  expect_values(run_checked("one_hot", {}, {at, depth, values}), {2, 3}, {0, 5, 0, 0, 0, 5});
  expect_values(run_checked("one_hot", {{"axis", int64_t{0}}}, {at, depth, values}), {3, 2}, {0, 0, 5, 0, 0, 5});
  expect_values(run_checked("one_hot", {}, {i64({1}, {7}), depth, values}), {1, 3}, {0, 0, 0});
  EXPECT_EQ(inference_error("one_hot", {}, {"i64[2]", "i64[]", "f32[2]"}), "unknown_dimension");
  EXPECT_EQ(inference_error("one_hot", {}, {"i64[2]", "i64[]", "f32[3]"}, {{1, {Dim(3)}}}), "shape_mismatch");
}

TEST(NonZero, ListsCoordinates) {
  expect_values(run_checked("non_zero", {}, {f64({2, 2}, {1, 0, 2, 3})}), {2, 3}, {0, 1, 1, 0, 0, 1});
  EXPECT_EQ(inferred("non_zero", {}, {"f32[2,2]"}), "i64[*]");
}

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const Tensor x = f32({1, 6}, {0, 1, 3, 5, 1000, -1000});
  const Tensor y = run_checked("quantize_linear", {}, {x, f32({}, {2}), Tensor::of<int>(DType::u8, {}, {128})});
  EXPECT_EQ(y.dtype(), DType::u8);
  expect_values(y, {1, 6}, {128, 128, 130, 130, 255, 0});
  expect_values(run_checked("quantize_linear", {}, {x, f32({}, {2}), Tensor::of<int>(DType::i8, {}, {1})}), {1, 6},
                {1, 1, 3, 3, 127, -128});
  EXPECT_EQ(run_checked("quantize_linear", {}, {x, f32({}, {2})}).dtype(), DType::u8);
}

TEST(QuantizeLinear, WorksPerAxis) {
  const Tensor x = f32({1, 2, 2}, {2, 4, 2, 4});
  const Tensor scale = f32({2}, {1, 2}), zero = Tensor::of<int>(DType::i8, {2}, {0, 10});
  const Tensor q = run_checked("quantize_linear", {}, {x, scale, zero});
  expect_values(q, {1, 2, 2}, {2, 4, 11, 12});
  expect_values(run_checked("dequantize_linear", {}, {q, scale, zero}), {1, 2, 2}, {2, 4, 2, 4});
  EXPECT_EQ(inference_error("quantize_linear", {}, {"f32[1,3,2]", "f32[2]", "i8[2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("quantize_linear", {}, {"f32[1,2,2]", "f32[2]", "i8[]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("quantize_linear", {{"block_size", int64_t{2}}}, {"f32[1,2,2]", "f32[2]", "i8[2]"}),
            "rank_mismatch");
  EXPECT_EQ(inference_error("dequantize_linear", {}, {"f32[1,2,2]", "f32[]"}), "dtype_mismatch");
  EXPECT_EQ(inference_error("dequantize_linear", {}, {"i8[4]", "f32[]", "u8[]"}), "dtype_mismatch");
}

TEST(GridSample, CubicTapsAreMovedInAtABorderOneByOne) {  // PyTorch's grid_sample, of one row with elements 0, 1, 2, 3
  const Tensor x = reals(DType::f64, {0, 1, 2, 3}).reshaped({1, 1, 4});
  const Tensor at = reals(DType::f64, {-1, -4.0 / 3, -7.0 / 3, 4.0 / 3}).reshaped({1, 4, 1});  // 0, -0.5, -2, 3.5
  const Tensor y =
      run_op("grid_sample", {{"mode", "cubic"}, {"padding_mode", "border"}, {"align_corners", true}}, {x, at});
  EXPECT_NEAR(y.real(0), 0, 1e-12);
  EXPECT_NEAR(y.real(1), -0.09375, 1e-12);  // elements 0, 0, 0, 1 with the weights of one half
  EXPECT_NEAR(y.real(2), 0, 1e-12);
  EXPECT_NEAR(y.real(3), 3.09375, 1e-12);
}

}  // namespace
}  // namespace opfuse
