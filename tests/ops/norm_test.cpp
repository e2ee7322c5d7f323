// Normalisations and softmax against hand-computed values and their definitions.
#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

TEST(BatchNorm, ScalesAndShiftsEachChannel) {
  const Tensor x = f64({1, 2, 1, 2}, {1, 3, 10, 20});
  expect_values(run_checked("batch_norm", {{"epsilon", 0.0}},
                            {x, f64({2}, {2, 1}), f64({2}, {1, 0}), f64({2}, {2, 10}), f64({2}, {4, 25})}),
                {1, 2, 1, 2}, {0, 2, 0, 2});
}

TEST(BatchNorm, RefusesTrainingAndWrongChannels) {
  const std::vector<std::string> types = {"f32[n,8,h,w]", "f32[8]", "f32[8]", "f32[8]", "f32[8]"};
  EXPECT_EQ(inferred("batch_norm", {}, types), "f32[n,8,h,w]");
  EXPECT_EQ(inference_error("batch_norm", {{"training_mode", true}}, types), "unsupported_attribute");
  EXPECT_EQ(inference_error("batch_norm", {}, {"f32[n,8,h,w]", "f32[8]", "f32[8]", "f32[8]", "f32[7]"}),
            "shape_mismatch");
  EXPECT_EQ(inference_error("batch_norm", {}, {"f32[n,8,h,w]", "f32[8]", "f32[8]", "f32[8,1]", "f32[8]"}),
            "rank_mismatch");
}

TEST(InstanceNorm, NormalisesEachPlane) {
  const Tensor y = run_checked("instance_norm", {{"epsilon", 0.0}},
                               {f64({1, 2, 2}, {1, 3, 10, 30}), f64({2}, {1, 2}), f64({2}, {0, 5})});
  expect_values(y, {1, 2, 2}, {-1, 1, 3, 7});
  EXPECT_EQ(inference_error("instance_norm", {}, {"f32[1,2,4]", "f32[3]", "f32[2]"}), "shape_mismatch");
}

TEST(GroupNorm, NormalisesChannelsTogether) {
  const Tensor x = f64({1, 4, 1}, {1, 3, 10, 30}), one = f64({4}, {1, 1, 1, 1}), zero = f64({4}, {0, 0, 0, 0});
  expect_values(run_checked("group_norm", {{"epsilon", 0.0}, {"num_groups", int64_t{2}}}, {x, one, zero}), {1, 4, 1},
                {-1, 1, -1, 1});
  EXPECT_EQ(inference_error("group_norm", {{"num_groups", int64_t{3}}}, {"f32[1,4,1]", "f32[4]", "f32[4]"}),
            "channel_mismatch");
}

TEST(LayerNorm, NormalisesTrailingAxes) {
  const Tensor x = f64({2, 2}, {1, 3, 10, 30});
  expect_values(run_checked("layer_norm", {{"epsilon", 0.0}}, {x, f64({2}, {1, 2}), f64({2}, {0, 5})}), {2, 2},
                {-1, 7, -1, 7});
  const auto all = run_all("layer_norm", {{"epsilon", 0.0}, {"axis", int64_t{0}}},
                           {f64({2, 2}, {1, 1, 3, 3}), f64({2, 2}, {1, 1, 1, 2}), absent()});
  expect_values(all[0], {2, 2}, {-1, -1, 1, 2});
  expect_values(all[1], {1, 1}, {2});
  EXPECT_EQ(inferred("layer_norm", {}, {"f32[n,s,768]", "f32[768]", "f32[768]"}), "f32[n,s,768]");
  EXPECT_EQ(inference_error("layer_norm", {}, {"f32[n,s,768]", "f32[767]"}), "shape_mismatch");
}

TEST(Lrn, DividesByTheNeighboursEnergy) {
  const Tensor x = f64({1, 4, 1}, {1, 2, 3, 4});
  const Tensor y = run_checked("lrn", {{"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}, {"size", int64_t{3}}}, {x});
  expect_values(y, {1, 4, 1}, {1.0 / 6, 2.0 / 15, 3.0 / 30, 4.0 / 26});
  // An even size reaches one further upwards.
  expect_values(run_checked("lrn", {{"alpha", 2.0}, {"beta", 1.0}, {"bias", 0.0}, {"size", int64_t{2}}}, {x}),
                {1, 4, 1}, {1.0 / 5, 2.0 / 13, 3.0 / 25, 4.0 / 16});
  EXPECT_EQ(inference_error("lrn", {{"size", int64_t{0}}}, {"f32[1,4,1]"}), "bad_attribute");
}

TEST(Softmax, SumsToOneAlongItsAxis) {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  for (int64_t axis : {0, 1, 2, -1}) {
    const Tensor y = run_checked("softmax", {{"axis", axis}}, {x});
    const Tensor sums = run_op("reduce_sum", {{"axes", Ints{axis}}}, {y});
    for (double s : values_of(sums)) EXPECT_NEAR(s, 1, 1e-14);
    const Tensor logs = run_checked("log_softmax", {{"axis", axis}}, {x});
    for (int64_t i = 0; i < y.elements(); ++i) EXPECT_NEAR(std::log(y.real(i)), logs.real(i), 1e-12);
  }
}

TEST(Softmax, SurvivesLargeNumbers) {
  expect_values(run_checked("softmax", {}, {f64({2}, {1000, 1000})}), {2}, {0.5, 0.5});
  expect_values(run_checked("log_softmax", {}, {f64({2}, {-1000, -1000})}), {2}, {-std::log(2), -std::log(2)});
}

TEST(Softmax, FlattensBeforeOpset13) {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  const Tensor flat = run_checked("softmax", {{"axis", int64_t{1}}, {"flatten", true}}, {x});
  expect_close(flat, run_op("softmax", {}, {x.reshaped({2, 12})}).reshaped({2, 3, 4}));
  EXPECT_EQ(inference_error("softmax", {{"axis", int64_t{3}}}, {"f32[2,3,4]"}), "bad_attribute");
}

TEST(Hardmax, MarksTheFirstMaximum) {
  expect_values(run_checked("hardmax", {}, {f64({2, 3}, {1, 3, 3, 2, 1, 0})}), {2, 3}, {0, 1, 0, 1, 0, 0});
  expect_values(run_checked("hardmax", {{"axis", int64_t{0}}}, {f64({2, 2}, {1, 3, 3, 2})}), {2, 2}, {0, 1, 1, 0});
}

}  // namespace
}  // namespace opfuse
