// Convolution and its transpose against their definitions, window geometry, costs and errors.
#include "ops/conv.hpp"

#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

/// The definition with two spatial axes; pads are {top, left, bottom, right}.
Tensor plain_conv2d(const Tensor& x, const Tensor& w, const Tensor& b, Ints strides, Ints pads, Ints dilations,
                    int64_t group) {
  const int64_t n = x.dim(0), h = x.dim(2), wd = x.dim(3), o = w.dim(0), ci = w.dim(1), kh = w.dim(2), kw = w.dim(3);
  const int64_t oh = (h + pads[0] + pads[2] - dilations[0] * (kh - 1) - 1) / strides[0] + 1;
  const int64_t ow = (wd + pads[1] + pads[3] - dilations[1] * (kw - 1) - 1) / strides[1] + 1;
  Tensor y(DType::f64, {n, o, oh, ow});
  int64_t at = 0;
  for (int64_t in = 0; in < n; ++in)
    for (int64_t io = 0; io < o; ++io)
      for (int64_t p = 0; p < oh; ++p)
        for (int64_t q = 0; q < ow; ++q, ++at) {
          double sum = b.empty() ? 0 : b.real(io);
          for (int64_t ic = 0; ic < ci; ++ic)
            for (int64_t r = 0; r < kh; ++r)
              for (int64_t s = 0; s < kw; ++s) {
                const int64_t i = p * strides[0] - pads[0] + r * dilations[0],
                              j = q * strides[1] - pads[1] + s * dilations[1];
                if (i < 0 || i >= h || j < 0 || j >= wd) continue;
                const int64_t c = io / (o / group) * ci + ic;
                sum += x.real(((in * x.dim(1) + c) * h + i) * wd + j) * w.real(((io * ci + ic) * kh + r) * kw + s);
              }
          y.set_real(at, sum);
        }
  return y;
}

struct ConvCase {
  Ints x, w, strides{1, 1}, pads{0, 0, 0, 0}, dilations{1, 1};
  int64_t group = 1;
  bool bias = false;
};

void PrintTo(const ConvCase& c, std::ostream* out) {
  *out << text_of(c.x) << " * " << text_of(c.w) << " group " << c.group;
}

class ConvCases : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvCases, EqualTheDefinition) {
  const ConvCase& c = GetParam();
  const Tensor x = random_tensor(c.x, 1), w = random_tensor(c.w, 2);
  const Tensor b = c.bias ? random_tensor({c.w[0]}, 3) : absent();
  const AttrMap attrs = {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
  expect_close(run_checked("conv", attrs, {x, w, b}), plain_conv2d(x, w, b, c.strides, c.pads, c.dilations, c.group));
}

INSTANTIATE_TEST_SUITE_P(, ConvCases,
                         testing::Values(ConvCase{{1, 3, 7, 9}, {4, 3, 3, 3}},
                                         ConvCase{{2, 3, 7, 9}, {5, 3, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, true},
                                         ConvCase{{1, 4, 11, 13}, {6, 4, 3, 3}, {2, 2}, {1, 1, 1, 1}},
                                         ConvCase{{1, 2, 9, 9}, {3, 2, 3, 2}, {1, 2}, {0, 1, 2, 0}, {2, 3}},
                                         ConvCase{{3, 8, 6, 5}, {8, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8, true},
                                         ConvCase{{2, 6, 5, 6}, {9, 2, 2, 3}, {1, 1}, {0, 2, 1, 1}, {1, 1}, 3, true},
                                         ConvCase{{1, 3, 33, 30}, {16, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}},
                                         ConvCase{{1, 40, 14, 14}, {33, 40, 3, 3}, {1, 1}, {1, 1, 1, 1}},
                                         ConvCase{{1, 2, 1, 1}, {2, 2, 3, 3}, {1, 1}, {2, 2, 2, 2}}));

TEST(Conv, EqualsTheDefinitionOnDrawnGeometries) {
  std::mt19937 engine(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<unsigned>(high - low + 1));
  };
  for (unsigned i = 0; i < 60; ++i) {
    const int64_t group = draw(1, 3), in = draw(1, 3), out = draw(1, 12);
    ConvCase c{.x = {draw(1, 2), group * in, draw(1, 20), draw(1, 20)}, .w = {group * out, in, draw(1, 4), draw(1, 4)}};
    c.strides = {draw(1, 3), draw(1, 3)};
    c.dilations = {draw(1, 2), draw(1, 2)};
    for (int64_t& p : c.pads) p = draw(0, 3);
    c.group = group;
    bool fits = true;
    for (size_t d : {size_t{0}, size_t{1}})
      fits &= c.x[d + 2] + c.pads[d] + c.pads[d + 2] > (c.w[d + 2] - 1) * c.dilations[d];
    if (!fits) continue;
    SCOPED_TRACE(testing::PrintToString(c));
    const Tensor x = random_tensor(c.x, i), w = random_tensor(c.w, i + 100), b = random_tensor({c.w[0]}, i + 200);
    const AttrMap attrs = {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
    expect_close(run_checked("conv", attrs, {x, w, b}), plain_conv2d(x, w, b, c.strides, c.pads, c.dilations, c.group));
  }
}

TEST(Conv, WorksOverOneAndThreeSpatialAxes) {
  expect_values(
      run_checked("conv", {{"pads", Ints{1, 1}}}, {f64({1, 1, 4}, {1, 2, 3, 4}), f64({1, 1, 3}, {1, 10, 100})}),
      {1, 1, 4}, {210, 321, 432, 43});
  expect_values(run_checked("conv", {}, {ramp({1, 1, 2, 2, 3}), f64({1, 1, 2, 2, 2}, std::vector<double>(8, 1.0))}),
                {1, 1, 1, 1, 2}, {0 + 1 + 3 + 4 + 6 + 7 + 9 + 10, 1 + 2 + 4 + 5 + 7 + 8 + 10 + 11});
}

TEST(Conv, RoundsOnceInTypedPrecision) {
  const Tensor x = Tensor::of<double>(DType::f16, {1, 2, 1}, {2048, 1}),
               w = Tensor::of<double>(DType::f16, {1, 2, 1}, {1, 1});
  const Tensor y = run_op("conv", {}, {x, w});
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_EQ(y.real(0), 2048);  // 2049 rounds to even
}

TEST(Conv, PadsAutomatically) {
  const Tensor x = ramp({1, 1, 5}, 1), w = f64({1, 1, 2}, {1, 10});
  expect_values(run_checked("conv", {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2}}}, {x, w}), {1, 1, 3},
                {21, 43, 5});
  expect_values(run_checked("conv", {{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2}}}, {x, w}), {1, 1, 3},
                {10, 32, 54});
  expect_values(run_checked("conv", {{"auto_pad", "VALID"}, {"strides", Ints{2}}}, {x, w}), {1, 1, 2}, {21, 43});
  EXPECT_EQ(inferred("conv", {{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 2}}}, {"f32[1,3,h,9]", "f32[4,3,3,3]"}),
            "f32[1,4," + ceil_div(Dim::symbol("h"), 2).text() + ",5]");
}

TEST(Conv, KeepsSymbolicBatchAndExtents) {
  EXPECT_EQ(inferred("conv", {{"pads", Ints{1, 1, 1, 1}}}, {"f32[n,3,8,8]", "f32[4,3,3,3]", "f32[4]"}), "f32[n,4,8,8]");
  EXPECT_EQ(inferred("conv", {{"pads", Ints{1, 1, 1, 1}}}, {"f32[n,3,h,w]", "f32[4,3,3,3]"}), "f32[n,4,h,w]");
  EXPECT_EQ(inferred("conv", {}, {"f32[*]", "f32[4,3,3,3]"}), "f32[*]");
}

TEST(Conv, RefusesWhatCannotBe) {
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3,8,8]", "f32[4,4,3,3]"}), "channel_mismatch");
  EXPECT_EQ(inference_error("conv", {{"group", int64_t{0}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("conv", {{"group", int64_t{3}}}, {"f32[1,6,8,8]", "f32[4,2,3,3]"}), "channel_mismatch");
  EXPECT_EQ(inference_error("conv", {{"pads", Ints{-1, 0, 0, 0}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("conv", {{"pads", Ints{1, 1}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("conv", {{"strides", Ints{0, 1}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("conv", {{"kernel_shape", Ints{5, 5}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3]", "f32[4,3]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3,8,8]", "f32[4,3,3]"}), "rank_mismatch");
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3,2,2]", "f32[4,3,3,3]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3,8,8]", "f64[4,3,3,3]"}), "dtype_mismatch");
  EXPECT_EQ(inference_error("conv", {}, {"i32[1,3,8,8]", "i32[4,3,3,3]"}), "unsupported_dtype");
  EXPECT_EQ(inference_error("conv", {}, {"f32[1,3,8,8]", "f32[4,3,3,3]", "f32[5]"}), "shape_mismatch");
  EXPECT_EQ(
      inference_error("conv", {{"auto_pad", "VALID"}, {"pads", Ints{1, 1, 1, 1}}}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}),
      "bad_attribute");
}

Dim flops(std::string_view op, const AttrMap& attrs, const std::vector<std::string>& in, const std::string& out) {
  const OpInfo* info = op_named(op);
  std::vector<TensorType> types;
  for (const std::string& t : in) types.push_back(parse_type(t));
  return info->cost(info->attrs_from_map(attrs).get(), types, std::vector<TensorType>{parse_type(out)}).flops;
}

TEST(Conv, CountsOnlyTapsInsideTheImage) {
  // 3x3, padding 1, on 4x4: per axis 3 * 4 - 2 taps.
  EXPECT_EQ(flops("conv", {{"pads", Ints{1, 1, 1, 1}}}, {"f32[1,2,4,4]", "f32[3,2,3,3]"}, "f32[1,3,4,4]"),
            Dim(2 * 2 * 3 * 10 * 10));
  EXPECT_EQ(flops("conv", {}, {"f32[1,2,4,4]", "f32[3,2,3,3]", "f32[3]"}, "f32[1,3,2,2]"), Dim(2 * 2 * 3 * 6 * 6 + 12));
}

TEST(Conv, CountsUsefulTapsExactlyForSymbolicExtents) {
  for (int64_t pad : {0, 1, 3})
    for (int64_t stride : {1, 2, 3})
      for (int64_t dilation : {1, 2})
        for (bool ceil : {false, true}) {
          const WindowAttrs attrs{.dilations = {dilation}, .pads = {pad, pad}, .strides = {stride}};
          const Shape x{1, 1, Dim::symbol("h")};
          const WindowAxis axis = resolve_pads(attrs, {3}, x, ceil ? LastWindow::beginning : LastWindow::inside).at(0);
          const Dim symbolic = useful_taps(axis);
          for (int64_t h : {5, 6, 7, 12, 13}) {
            const SymbolValues at{{"h", h}};
            int64_t want = 0;
            for (int64_t o = 0; o < axis.out.evaluate(at); ++o)
              for (int64_t t = 0; t < 3; ++t) {
                const int64_t p = o * stride - pad + t * dilation;
                want += p >= 0 && p < h;
              }
            EXPECT_EQ(symbolic.evaluate(at), want)
                << "pad " << pad << " stride " << stride << " dilation " << dilation << " h " << h;
          }
        }
}

TEST(ConvTranspose, IsTheAdjointOfConvolution) {
  // <conv(x, w), y> == <x, conv_transpose(y, w)> for every x and y: the definition of the transpose.
  for (int64_t group : {1, 2})
    for (int64_t stride : {1, 2}) {
      const AttrMap attrs = {
          {"strides", Ints{stride, 1}}, {"pads", Ints{1, 0, 1, 2}}, {"dilations", Ints{1, 2}}, {"group", group}};
      const Tensor x = random_tensor({2, 4, 7, 6}, 1), w = random_tensor({6, 4 / group, 3, 2}, 2);
      const Tensor forward = run_checked("conv", attrs, {x, w});
      const Tensor y = random_tensor(forward.sizes(), 3);
      const Tensor back = run_checked("conv_transpose", attrs, {y, w});
      ASSERT_EQ(back.sizes(), x.sizes());
      double left = 0, right = 0;
      for (int64_t i = 0; i < y.elements(); ++i) left += forward.real(i) * y.real(i);
      for (int64_t i = 0; i < x.elements(); ++i) right += x.real(i) * back.real(i);
      EXPECT_NEAR(left, right, 1e-9);
    }
}

TEST(ConvTranspose, ResolvesOutputShapeAndPadding) {
  const std::vector<std::string> types = {"f32[n,1,3,3]", "f32[1,2,3,3]"};
  EXPECT_EQ(inferred("conv_transpose", {}, types), "f32[n,2,5,5]");
  EXPECT_EQ(inferred("conv_transpose", {{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 1}}}, types),
            "f32[n,2,10,8]");
  EXPECT_EQ(inferred("conv_transpose", {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}}, types),
            "f32[n,2,10,8]");
  EXPECT_EQ(inferred("conv_transpose", {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}}, types), "f32[n,2,6,6]");
  EXPECT_EQ(inference_error("conv_transpose", {}, {"f32[1,3,3,3]", "f32[1,2,3,3]"}), "channel_mismatch");
  EXPECT_EQ(inference_error("conv_transpose", {{"pads", Ints{9, 9, 9, 9}}}, types), "shape_mismatch");
}

TEST(ConvTranspose, CountsTapsThatLandInTheOutput) {
  EXPECT_EQ(flops("conv_transpose", {}, {"f32[1,1,3,3]", "f32[1,2,3,3]"}, "f32[1,2,5,5]"), Dim(2 * 2 * 9 * 9));
  EXPECT_EQ(flops("conv_transpose", {{"pads", Ints{1, 1, 1, 1}}}, {"f32[1,1,3,3]", "f32[1,2,3,3]"}, "f32[1,2,3,3]"),
            Dim(2 * 2 * 7 * 7));
}

}  // namespace
}  // namespace opfuse
