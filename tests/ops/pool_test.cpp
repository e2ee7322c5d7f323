// Pooling against hand-computed values and its definition.
#include "ops/pool.hpp"

#include <random>

#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  const Tensor x = ramp({1, 1, 4, 4}, 1);
  expect_values(run_checked("max_pool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, {x}), {1, 1, 2, 2},
                {6, 8, 14, 16});
  expect_values(
      run_checked("max_pool", {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}}, {x}),
      {1, 1, 2, 2}, {11, 12, 15, 16});
  expect_values(run_checked("max_pool", {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 2}}}, {x}), {1, 1, 2, 2},
                {11, 12, 15, 16});
  expect_values(run_checked("max_pool", {{"kernel_shape", Ints{2}}, {"auto_pad", "SAME_LOWER"}}, {ramp({1, 1, 3}, 1)}),
                {1, 1, 3}, {1, 2, 3});
}

TEST(MaxPool, IgnoresPadding) {
  const Tensor x = f64({1, 1, 2}, {-5, -7});
  expect_values(run_checked("max_pool", {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}, {x}), {1, 1, 3},
                {-5, -5, -7});
  EXPECT_EQ(inference_error("max_pool", {{"kernel_shape", Ints{1}}, {"pads", Ints{1, 0}}}, {"f32[1,1,2]"}),
            "bad_attribute");  // the first window would see nothing else
}

TEST(MaxPool, DropsACeilWindowThatWouldStartInThePadding) {
  // (5 + 2 - 2) / 3 rounds up to a third window at 6 - 1 = 5: outside.
  expect_values(
      run_checked("max_pool",
                  {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", true}},
                  {ramp({1, 1, 5}, 1)}),
      {1, 1, 2}, {1, 4});
}

TEST(MaxPool, GivesFlatIndicesInEitherStorageOrder) {
  const Tensor x = f64({1, 2, 2, 3}, {1, 9, 2, 3, 4, 5, 8, 1, 1, 1, 1, 1});
  const AttrMap rows = {{"kernel_shape", Ints{2, 3}}},
                columns = {{"kernel_shape", Ints{2, 3}}, {"storage_order", int64_t{1}}};
  expect_values(run_all("max_pool", rows, {x})[1], {1, 2, 1, 1}, {1, 6});
  expect_values(run_all("max_pool", columns, {x})[1], {1, 2, 1, 1}, {2, 6});
  EXPECT_EQ(infer_op("max_pool", rows, {x}, 2)[1].text(), "i64[1,2,1,1]");
}

TEST(MaxPool, KeepsIntegerTypesAndNotANumber) {
  const Tensor bytes = Tensor::of<int>(DType::u8, {1, 1, 3}, {3, 250, 7});
  EXPECT_EQ(run_op("max_pool", {{"kernel_shape", Ints{3}}}, {bytes}).dtype(), DType::u8);
  expect_values(run_op("max_pool", {{"kernel_shape", Ints{2}}}, {f64({1, 1, 3}, {1, NAN, 2})}), {1, 1, 2}, {NAN, NAN});
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  const Tensor x = f64({1, 1, 2}, {2, 4});
  expect_values(run_checked("average_pool", {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}, {x}), {1, 1, 3},
                {2, 3, 4});
  expect_values(
      run_checked("average_pool", {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}, {"count_include_pad", true}}, {x}),
      {1, 1, 3}, {1, 3, 2});
}

TEST(AveragePool, DividesByWhatACeilWindowCovers) {
  const Tensor x = ramp({1, 1, 4}, 1);
  const AttrMap attrs = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", true}};
  expect_values(run_checked("average_pool", attrs, {x}), {1, 1, 2}, {2, 3.5});
  AttrMap padded = attrs;
  padded.push_back({"count_include_pad", true});
  padded.push_back({"pads", Ints{1, 0}});
  // Windows at -1 and 1, and at 3: one element inside, nothing of it padded at the end.
  expect_values(run_checked("average_pool", padded, {x}), {1, 1, 2}, {1, 3});
}

TEST(Pools, CutTheWindowThatIsLargerThanItsInput) {  // values of ONNX Runtime 1.32
  const AttrMap up = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", true}};
  expect_values(run_checked("max_pool", up, {ramp({1, 1, 1}, 1)}), {1, 1, 0}, {});
  expect_values(run_checked("max_pool", up, {ramp({1, 1, 2}, 1)}), {1, 1, 1}, {2});
  expect_values(run_checked("average_pool", up, {ramp({1, 1, 2}, 1)}), {1, 1, 1}, {1.5});
  expect_values(run_checked("lp_pool", up, {f64({1, 1, 2}, {3, 4})}), {1, 1, 1}, {5});
  EXPECT_EQ(inference_error("max_pool", up, {"f32[1,1,0]"}), "shape_mismatch");
  const AttrMap wide = {{"kernel_shape", Ints{5}}, {"strides", Ints{2}}, {"ceil_mode", true}};
  EXPECT_EQ(inference_error("max_pool", wide, {"f32[1,1,1]"}), "shape_mismatch");
  expect_values(run_checked("max_pool", wide, {ramp({1, 1, 2}, 1)}), {1, 1, 0}, {});
  expect_values(run_checked("max_pool", wide, {ramp({1, 1, 4}, 1)}), {1, 1, 1}, {4});
  const AttrMap down = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}};
  expect_values(run_checked("max_pool", down, {ramp({1, 1, 1}, 1)}), {1, 1, 0}, {});
  expect_values(run_checked("max_pool", down, {ramp({1, 1, 2}, 1)}), {1, 1, 1}, {2});
  expect_values(run_checked("average_pool", down, {ramp({1, 1, 2}, 1)}), {1, 1, 1}, {1.5});
  expect_values(run_checked("lp_pool", down, {f64({1, 1, 2}, {3, 4})}), {1, 1, 1}, {5});
  EXPECT_EQ(inference_error("max_pool", down, {"f32[1,1,0]"}), "shape_mismatch");
  const AttrMap steps = {{"kernel_shape", Ints{3}}};
  expect_values(run_checked("average_pool", steps, {ramp({1, 1, 2}, 1)}), {1, 1, 0}, {});
  EXPECT_EQ(inference_error("average_pool", steps, {"f32[1,1,1]"}), "shape_mismatch");
  const AttrMap over = {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}, {"pads", Ints{1, 0}}, {"ceil_mode", true}};
  EXPECT_EQ(inference_error("max_pool", over, {"f32[1,1,1]"}), "shape_mismatch");  // taps at -1 and 1
}

TEST(Pools, EqualTheirDefinitionOnDrawnGeometries) {
  std::mt19937 engine(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<unsigned>(high - low + 1));
  };
  for (unsigned i = 0; i < 80; ++i) {
    const int64_t size = draw(6, 15), kernel = draw(1, 3), stride = draw(1, 3), dilation = draw(1, 2);
    const int64_t begin = draw(0, kernel - 1), end = draw(0, kernel - 1);
    const bool ceil = draw(0, 1), include = draw(0, 1);
    SCOPED_TRACE(fmt::format("size {} kernel {} stride {} dilation {} pads {},{} ceil {} include {}", size, kernel,
                             stride, dilation, begin, end, ceil, include));
    const int64_t room = size + begin + end - (kernel - 1) * dilation - 1;
    int64_t out = room / stride + 1;
    if (ceil && room % stride != 0 && out * stride < size + begin) ++out;
    const Tensor x = random_tensor({1, 1, size}, i);
    std::vector<double> largest, mean;
    for (int64_t o = 0; o < out; ++o) {
      double best = kNone, sum = 0;
      int64_t inside = 0, padded = 0;
      for (int64_t t = 0; t < kernel; ++t) {
        const int64_t p = o * stride - begin + t * dilation;
        padded += p < size + end;
        if (p < 0 || p >= size) continue;
        best = std::max(best, x.real(p));
        sum += x.real(p);
        ++inside;
      }
      largest.push_back(best);
      mean.push_back(sum / static_cast<double>(include ? padded : inside));
    }
    AttrMap attrs = {{"kernel_shape", Ints{kernel}},
                     {"strides", Ints{stride}},
                     {"dilations", Ints{dilation}},
                     {"pads", Ints{begin, end}},
                     {"ceil_mode", ceil}};
    expect_values(run_checked("max_pool", attrs, {x}), {1, 1, out}, largest);
    attrs.push_back({"count_include_pad", include});
    expect_values(run_checked("average_pool", attrs, {x}), {1, 1, out}, mean);
  }
}

TEST(LpPool, TakesTheNorm) {
  expect_values(run_checked("lp_pool", {{"kernel_shape", Ints{2}}}, {f64({1, 1, 3}, {3, -4, 0})}), {1, 1, 2}, {5, 4});
  expect_values(run_checked("lp_pool", {{"kernel_shape", Ints{2}}, {"p", int64_t{1}}}, {f64({1, 1, 3}, {3, -4, 0})}),
                {1, 1, 2}, {7, 4});
}

TEST(GlobalPools, ReduceEverySpatialAxis) {
  const Tensor x = f64({1, 2, 2, 1}, {3, -4, 1, 5});
  expect_values(run_checked("global_average_pool", {}, {x}), {1, 2, 1, 1}, {-0.5, 3});
  expect_values(run_checked("global_max_pool", {}, {x}), {1, 2, 1, 1}, {3, 5});
  expect_values(run_checked("global_lp_pool", {}, {x}), {1, 2, 1, 1}, {5, std::sqrt(26)});
  EXPECT_EQ(inferred("global_average_pool", {}, {"f32[n,2048,h,w]"}), "f32[n,2048,1,1]");
  EXPECT_EQ(inference_error("global_average_pool", {}, {"f32[4,3]"}), "rank_mismatch");
}

TEST(Pools, InferSymbolicShapesAndRefuse) {
  const AttrMap stem = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(inferred("max_pool", stem, {"f32[n,64,112,112]"}), "f32[n,64,56,56]");
  EXPECT_EQ(inference_error("max_pool", {}, {"f32[1,1,4,4]"}), "bad_attribute");
  EXPECT_EQ(inference_error("max_pool", {{"kernel_shape", Ints{2}}}, {"f32[1,1,4,4]"}), "bad_attribute");
  EXPECT_EQ(inference_error("max_pool", {{"kernel_shape", Ints{0, 2}}}, {"f32[1,1,4,4]"}), "bad_attribute");
  EXPECT_EQ(inference_error("average_pool", {{"kernel_shape", Ints{6, 6}}}, {"f32[1,1,4,4]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("average_pool", {{"kernel_shape", Ints{2, 2}}}, {"i32[1,1,4,4]"}), "unsupported_dtype");
  for (const char* op : {"max_pool", "average_pool", "lp_pool"}) {  // a window that sees padding alone
    EXPECT_EQ(inference_error(op, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 0, 0, 0}}}, {"f32[1,1,n,4]"}),
              "bad_attribute");
    EXPECT_EQ(inference_error(op, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, 0, 0, 2}}}, {"f32[1,1,4,4]"}),
              "bad_attribute");
  }
  EXPECT_EQ(
      inferred("max_pool", {{"kernel_shape", Ints{2}}, {"pads", Ints{2, 2}}, {"dilations", Ints{2}}}, {"f32[1,1,9]"}),
      "f32[1,1,11]");
  EXPECT_EQ(
      inference_error("max_pool", {{"kernel_shape", Ints{2, 2}}, {"storage_order", int64_t{2}}}, {"f32[1,1,4,4]"}),
      "bad_attribute");
  EXPECT_EQ(inference_error("max_pool", {{"kernel_shape", Ints{int64_t{1} << 40, 1}}}, {"f32[1,1,4,4]"}),
            "bad_attribute");
  EXPECT_EQ(
      inference_error("max_pool", {{"kernel_shape", Ints{3, 3}}, {"dilations", Ints{INT64_MAX, 1}}}, {"f32[1,1,4,4]"}),
      "bad_dimension");
}

}  // namespace
}  // namespace opfuse
