// Reductions, arg_max, top_k and running sums.
#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

const Tensor& sample() {
  static const Tensor x = f64({2, 3}, {1, -2, 3, 4, 5, -6});
  return x;
}

TEST(Reduce, FollowsEachLawAlongAnAxis) {
  const AttrMap rows = {{"axes", Ints{1}}, {"keepdims", false}};
  const std::vector<std::pair<const char*, std::vector<double>>> laws = {
      {"reduce_sum", {2, 3}},
      {"reduce_mean", {2.0 / 3, 1}},
      {"reduce_max", {3, 5}},
      {"reduce_min", {-2, -6}},
      {"reduce_prod", {-6, -120}},
      {"reduce_l1", {6, 15}},
      {"reduce_l2", {std::sqrt(14), std::sqrt(77)}},
      {"reduce_log_sum", {std::log(2), std::log(3)}},
      {"reduce_sum_square", {14, 77}},
      {"reduce_log_sum_exp",
       {std::log(std::exp(1) + std::exp(-2) + std::exp(3)), std::log(std::exp(4) + std::exp(5) + std::exp(-6))}}};
  for (const auto& [op, want] : laws) {
    SCOPED_TRACE(op);
    expect_values(run_checked(op, rows, {sample()}), {2}, want);
  }
}

TEST(Reduce, TakesAxesFromAttributeOperandOrNowhere) {
  expect_values(run_checked("reduce_sum", {{"axes", Ints{-2}}}, {sample()}), {1, 3}, {5, 3, -3});
  expect_values(run_checked("reduce_sum", {}, {sample(), i64({1}, {0})}), {1, 3}, {5, 3, -3});
  expect_values(run_checked("reduce_sum", {}, {sample()}), {1, 1}, {5});
  expect_values(run_checked("reduce_sum", {{"keepdims", false}}, {sample(), i64({0}, {})}), {}, {5});
  expect_values(run_checked("reduce_sum", {{"noop_with_empty_axes", true}}, {sample(), i64({0}, {})}), {2, 3},
                values_of(sample()));
  EXPECT_EQ(inferred("reduce_mean", {{"axes", Ints{2, 3}}}, {"f32[n,c,h,w]"}), "f32[n,c,1,1]");
  EXPECT_EQ(inference_error("reduce_mean", {{"axes", Ints{4}}}, {"f32[n,c,h,w]"}), "bad_attribute");
  EXPECT_EQ(inference_error("reduce_mean", {{"axes", Ints{1, -3}}}, {"f32[n,c,h,w]"}), "bad_attribute");
}

TEST(Reduce, ReducesMiddleAndOuterAxesTogether) {
  const Tensor x = random_tensor({3, 4, 5, 2}, 1);
  const Tensor y = run_checked("reduce_sum", {{"axes", Ints{0, 2}}}, {x});
  ASSERT_EQ(y.sizes(), (Ints{1, 4, 1, 2}));
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t d = 0; d < 2; ++d) {
      double sum = 0;
      for (int64_t a = 0; a < 3; ++a)
        for (int64_t c = 0; c < 5; ++c) sum += x.real(((a * 4 + b) * 5 + c) * 2 + d);
      EXPECT_NEAR(y.real(b * 2 + d), sum, 1e-13);
    }
}

TEST(Reduce, IsExactOnIntegersAndNeutralOnNothing) {
  const int64_t big = int64_t{1} << 60;
  EXPECT_EQ(run_checked("reduce_sum", {}, {i64({2}, {big, 1})}).integer(0), big + 1);
  EXPECT_EQ(run_checked("reduce_mean", {}, {i64({2}, {3, 4})}).integer(0), 3);
  expect_values(run_checked("reduce_sum", {{"axes", Ints{0}}}, {f64({0, 2}, {})}), {1, 2}, {0, 0});
  expect_values(run_checked("reduce_max", {{"axes", Ints{0}}}, {f64({0, 2}, {})}), {1, 2}, {-INFINITY, -INFINITY});
  expect_values(run_checked("reduce_log_sum_exp", {}, {f64({2}, {1000, 1000})}), {1}, {1000 + std::log(2)});
  expect_values(run_checked("reduce_max", {}, {f64({2}, {1, NAN})}), {1}, {NAN});
}

TEST(Reduce, MultipliesDimensionsOfAShape) {
  const OpInfo* prod = op_named("reduce_prod");
  const auto attrs = prod->attrs_from_map({{"keepdims", false}});
  const std::vector<TensorType> types = {parse_type("i64[2]")};
  const Inference in(types, {}, 1, [](size_t) { return std::vector<Dim>{Dim::symbol("n"), 4}; });
  EXPECT_EQ(prod->dims(attrs.get(), in), (std::vector<Dim>{Dim::symbol("n") * Dim(4)}));
}

TEST(ArgReduce, FindsFirstOrLastExtreme) {
  const Tensor x = f64({2, 3}, {1, 3, 3, 0, -1, -1});
  expect_values(run_checked("arg_max", {{"axis", int64_t{1}}}, {x}), {2, 1}, {1, 0});
  expect_values(run_checked("arg_max", {{"axis", int64_t{1}}, {"select_last_index", true}, {"keepdims", false}}, {x}),
                {2}, {2, 0});
  expect_values(run_checked("arg_min", {{"axis", int64_t{-1}}, {"keepdims", false}}, {x}), {2}, {0, 1});
  expect_values(run_checked("arg_max", {{"axis", int64_t{0}}, {"keepdims", false}}, {x}), {3}, {0, 0, 0});
  EXPECT_EQ(inference_error("arg_max", {}, {"f32[0,3]"}), "bad_dimension");
  EXPECT_EQ(inference_error("arg_max", {{"axis", int64_t{2}}}, {"f32[2,3]"}), "bad_attribute");
}

TEST(TopK, SortsAndKeepsPositions) {
  const Tensor x = f64({2, 4}, {1, 4, 4, 2, 0, 3, 1, 2});
  const auto top = run_all("top_k", {}, {x, i64({1}, {3})});
  expect_values(top[0], {2, 3}, {4, 4, 2, 3, 2, 1});
  expect_values(top[1], {2, 3}, {1, 2, 3, 1, 3, 2});
  const auto low = run_all("top_k", {{"largest", false}, {"axis", int64_t{0}}, {"k", int64_t{1}}}, {x});
  expect_values(low[0], {1, 4}, {0, 3, 1, 2});
  expect_values(low[1], {1, 4}, {1, 1, 1, 0});
  EXPECT_EQ(infer_op("top_k", {}, {x, i64({1}, {3})}, 2)[1].text(), "i64[2,3]");
  EXPECT_EQ(error_of([&] { infer_op("top_k", {}, {x, i64({1}, {5})}, 2); }), "bad_attribute");
  EXPECT_EQ(inference_error("top_k", {}, {"f32[2,4]", "i64[1]"}), "unknown_dimension");
}

TEST(CumSum, RunsForwardsBackwardsAndExclusively) {
  const Tensor x = f64({3}, {1, 2, 3}), axis = i64({}, {0});
  expect_values(run_checked("cum_sum", {}, {x, axis}), {3}, {1, 3, 6});
  expect_values(run_checked("cum_sum", {{"reverse", true}}, {x, axis}), {3}, {6, 5, 3});
  expect_values(run_checked("cum_sum", {{"exclusive", true}}, {x, axis}), {3}, {0, 1, 3});
  expect_values(run_checked("cum_sum", {{"exclusive", true}, {"reverse", true}}, {x, axis}), {3}, {5, 3, 0});
  expect_values(run_checked("cum_sum", {}, {f64({2, 2}, {1, 2, 3, 4}), i64({}, {-2})}), {2, 2}, {1, 2, 4, 6});
  EXPECT_EQ(error_of([&] { infer_op("cum_sum", {}, {x, i64({}, {1})}); }), "bad_attribute");
}

}  // namespace
}  // namespace opfuse
