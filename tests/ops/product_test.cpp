// gemm, matmul and einsum.
#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

TEST(Gemm, ScalesTransposesAndAdds) {
  const Tensor a = f64({2, 3}, {1, 2, 3, 4, 5, 6}), b = f64({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_values(run_checked("gemm", {}, {a, b}), {2, 2}, {4, 5, 10, 11});
  expect_values(run_checked("gemm", {{"alpha", 2.0}, {"beta", 10.0}}, {a, b, f64({2}, {1, 2})}), {2, 2},
                {18, 30, 30, 42});
  const Tensor at = f64({3, 2}, {1, 4, 2, 5, 3, 6}), bt = f64({2, 3}, {1, 0, 1, 0, 1, 1});
  expect_values(run_checked("gemm", {{"transA", true}, {"transB", true}}, {at, bt}), {2, 2}, {4, 5, 10, 11});
}

TEST(Gemm, BroadcastsTheAddedMatrix) {
  const Tensor a = f64({2, 1}, {0, 0}), b = f64({1, 2}, {0, 0});
  expect_values(run_checked("gemm", {}, {a, b, f64({}, {7})}), {2, 2}, {7, 7, 7, 7});
  expect_values(run_checked("gemm", {}, {a, b, f64({1}, {7})}), {2, 2}, {7, 7, 7, 7});
  expect_values(run_checked("gemm", {}, {a, b, f64({2, 1}, {1, 2})}), {2, 2}, {1, 1, 2, 2});
  expect_values(run_checked("gemm", {}, {a, b, f64({1, 2}, {1, 2})}), {2, 2}, {1, 2, 1, 2});
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  EXPECT_EQ(inferred("gemm", {{"transB", true}}, {"f32[n,16]", "f32[10,16]", "f32[10]"}), "f32[n,10]");
  EXPECT_EQ(inference_error("gemm", {}, {"f32[2,3]", "f32[4,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("gemm", {}, {"f32[2,3,1]", "f32[3,2]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("gemm", {}, {"f32[2,3]", "f32[3,2]", "f32[3]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("gemm", {}, {"f32[2,3]", "f16[3,2]"}), "dtype_mismatch");
}

TEST(MatMul, FollowsNumpyRules) {
  const Tensor m = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(run_checked("matmul", {}, {m, f64({3}, {1, 1, 1})}), {2}, {6, 15});
  expect_values(run_checked("matmul", {}, {f64({2}, {1, 10}), m}), {3}, {41, 52, 63});
  expect_values(run_checked("matmul", {}, {f64({2}, {1, 10}), f64({2}, {1, 2})}), {}, {21});
}

TEST(MatMul, BroadcastsBatches) {
  const Tensor a = random_tensor({2, 1, 3, 4}, 1), b = random_tensor({5, 4, 2}, 2);
  const Tensor y = run_checked("matmul", {}, {a, b});
  ASSERT_EQ(y.sizes(), (Ints{2, 5, 3, 2}));
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t m = 0; m < 5; ++m)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 4; ++k) sum += a.real((n * 3 + i) * 4 + k) * b.real((m * 4 + k) * 2 + j);
          ASSERT_NEAR(y.real(((n * 5 + m) * 3 + i) * 2 + j), sum, 1e-14);
        }
}

TEST(MatMul, MultipliesIntegersExactly) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(run_checked("matmul", {}, {i64({1, 2}, {big, 1}), i64({2, 1}, {1, 1})}).integer(0), big + 1);
}

TEST(MatMul, InfersSymbolicShapesAndRefuses) {
  EXPECT_EQ(inferred("matmul", {}, {"f32[n,s,64]", "f32[64,32]"}), "f32[n,s,32]");
  EXPECT_EQ(inferred("matmul", {}, {"f32[n,12,s,64]", "f32[n,12,64,s]"}), "f32[n,12,s,s]");
  EXPECT_EQ(inference_error("matmul", {}, {"f32[2,3]", "f32[4,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("matmul", {}, {"f32[]", "f32[4,2]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("matmul", {}, {"f32[2,2,3]", "f32[3,3,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("matmul", {}, {"bool[2,3]", "bool[3,2]"}), "unsupported_dtype");
}

Tensor codes(DType dtype, const Ints& sizes, const Ints& values) {
  Tensor t(dtype, sizes);
  for (size_t i = 0; i < values.size(); ++i) t.set_integer(static_cast<int64_t>(i), values[i]);
  return t;
}

TEST(MatMulInteger, SubtractsZeroPoints) {
  const Tensor a = codes(DType::u8, {2, 2}, {10, 11, 200, 0}), b = codes(DType::i8, {2, 2}, {1, -2, 3, 100});
  const auto product = [&](const Tensor& za, const Tensor& zb) {
    for (Precision precision : {Precision::typed, Precision::exact})
      EXPECT_EQ(run_op("matmul_integer", {}, {a, b, za, zb}, precision).dtype(), DType::i32);
    return run_checked("matmul_integer", {}, {a, b, za, zb}).to_i64();
  };
  const Tensor none;
  EXPECT_EQ(product(none, none), (Ints{43, 1080, 200, -400}));
  EXPECT_EQ(product(codes(DType::u8, {}, {10}), none), (Ints{3, 100, 160, -1380}));
  EXPECT_EQ(product(codes(DType::u8, {2}, {10, 0}), none), (Ints{3, 100, 200, -400}));  // by row
  EXPECT_EQ(product(codes(DType::u8, {2, 1}, {10, 0}), none), (Ints{3, 100, 200, -400}));
  EXPECT_EQ(product(none, codes(DType::i8, {2}, {1, 100})), (Ints{22, -1020, 0, -20400}));  // by column
}

TEST(MatMulInteger, KeepsTheLowBitsOfASum) {
  Tensor a(DType::u8, {1, 70000}), b(DType::u8, {70000, 1});
  for (int64_t i = 0; i < 70000; ++i) a.set_integer(i, 255), b.set_integer(i, 255);
  EXPECT_EQ(run_op("matmul_integer", {}, {a, b}).integer(0), 70000LL * 255 * 255 - (int64_t{1} << 32));
}

TEST(MatMulInteger, RefusesWhatDoesNotFit) {
  EXPECT_EQ(inferred("matmul_integer", {}, {"u8[n,s,64]", "i8[64,32]", "u8[]", "i8[32]"}), "i32[n,s,32]");
  EXPECT_EQ(inference_error("matmul_integer", {}, {"i32[2,3]", "i8[3,2]"}), "unsupported_dtype");
  EXPECT_EQ(inference_error("matmul_integer", {}, {"u8[2,3]", "i8[4,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("matmul_integer", {}, {"u8[2,3]", "i8[3,2]", "i8[]"}), "dtype_mismatch");
  EXPECT_EQ(inference_error("matmul_integer", {}, {"u8[2,3]", "i8[3,2]", "u8[3]"}), "shape_mismatch");
}

TEST(Einsum, SumsTransposesAndTakesDiagonals) {
  const Tensor a = f64({2, 3}, {1, 2, 3, 4, 5, 6}), s = f64({2, 2}, {1, 2, 3, 4});
  expect_values(run_checked("einsum", {{"equation", "ij->ji"}}, {a}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect_values(run_checked("einsum", {{"equation", "ij->i"}}, {a}), {2}, {6, 15});
  expect_values(run_checked("einsum", {{"equation", "...ii->...i"}}, {s}), {2}, {1, 4});
  expect_values(run_checked("einsum", {{"equation", "i,i"}}, {f64({2}, {1, 2}), f64({2}, {3, 4})}), {}, {11});
  expect_values(run_checked("einsum", {{"equation", "ij,jk"}}, {s, s}), {2, 2}, {7, 10, 15, 22});
}

TEST(Einsum, EqualsMatMulOnBatches) {
  const Tensor a = random_tensor({2, 3, 4}, 1), b = random_tensor({2, 4, 5}, 2);
  expect_close(run_checked("einsum", {{"equation", "bij, bjk -> bik"}}, {a, b}), run_op("matmul", {}, {a, b}));
  expect_close(run_checked("einsum", {{"equation", "...ij,...jk->...ik"}}, {a, b}), run_op("matmul", {}, {a, b}));
}

TEST(Einsum, RefusesBadEquations) {
  EXPECT_EQ(inference_error("einsum", {{"equation", "ij,jk->ik"}}, {"f32[2,3]"}), "arity_mismatch");
  EXPECT_EQ(inference_error("einsum", {{"equation", "ijk->ik"}}, {"f32[2,3]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("einsum", {{"equation", "i1->i"}}, {"f32[2,3]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("einsum", {{"equation", "ij->k"}}, {"f32[2,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("einsum", {{"equation", "ij,jk->ik"}}, {"f32[2,3]", "f32[4,2]"}), "shape_mismatch");
}

}  // namespace
}  // namespace opfuse
