#include "codegen/winograd_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tensor/winograd.hpp"

namespace opfuse {
namespace {

using Numbers = std::vector<float>;
constexpr int64_t kSampledOutputs = 16;

enum class Kind { normal, far_from_zero, alternating, one_loud_channel };
constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::normal, "normally distributed data"},
                                                   {Kind::far_from_zero, "data of mean 1000 and deviation 1"},
                                                   {Kind::alternating, "data of alternating signs"},
                                                   {Kind::one_loud_channel, "data with one channel x100"}};

Numbers draw(Kind kind, int64_t channels, int64_t height, int64_t width) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Numbers x;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < height * width; ++i) {
      float value = normal(random);
      if (kind == Kind::far_from_zero) value += 1000;
      if (kind == Kind::alternating) value = std::fabs(value) * ((i / width + i % width) % 2 ? -1.0F : 1.0F);
      if (kind == Kind::one_loud_channel && c == channels / 2) value *= 100;
      x.push_back(value);
    }
  return x;
}

/// left * x * right^T in fp32, x being left[0].size() x right[0].size().
Numbers sandwich(const winograd::Matrix& left, const float* x, const winograd::Matrix& right) {
  const size_t height = left[0].size(), width = right[0].size();
  Numbers half(height * right.size()), out(left.size() * right.size());
  for (size_t i = 0; i < height; ++i)
    for (size_t j = 0; j < right.size(); ++j) {
      float sum = 0;
      for (size_t k = 0; k < width; ++k) sum += static_cast<float>(right[j][k]) * x[i * width + k];
      half[i * right.size() + j] = sum;
    }
  for (size_t i = 0; i < left.size(); ++i)
    for (size_t j = 0; j < right.size(); ++j) {
      float sum = 0;
      for (size_t k = 0; k < height; ++k) sum += static_cast<float>(left[i][k]) * half[k * right.size() + j];
      out[i * right.size() + j] = sum;
    }
  return out;
}

struct Probe {
  const float* filters;
  int64_t outputs, channels;
  WinogradTile tile;
  winograd::Matrix data_h, data_w, result_h, result_w, filter_h, filter_w;
  double error = 0, largest = 0, of_sum = 0;

  size_t width() const { return static_cast<size_t>(winograd::points(tile.w)); }

  void run(const Numbers& x) {
    const size_t area = data_h.size() * data_w.size();
    Numbers v;
    for (int64_t c = 0; c < channels; ++c) {
      const Numbers one = sandwich(data_h, x.data() + static_cast<size_t>(c) * area, data_w);
      v.insert(v.end(), one.begin(), one.end());
    }
    const int64_t step = std::max<int64_t>(1, outputs / kSampledOutputs);
    for (int64_t o = 0; o < outputs; o += step) compare(x, v, filters + o * channels * 9, area);
  }

  void compare(const Numbers& x, const Numbers& v, const float* g, size_t area) {
    Numbers products(area, 0), u(area);
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      winograd::transform_filter(filter_h, filter_w, g + c * 9, u.data());
      for (size_t i = 0; i < area; ++i) products[i] += u[i] * v[c * area + i];
    }
    const Numbers got = sandwich(result_h, products.data(), result_w);
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t y0 = i / static_cast<size_t>(tile.w), x0 = i % static_cast<size_t>(tile.w);
      double sum = 0, magnitudes = 0;
      for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
        for (size_t t = 0; t < 9; ++t) {
          const double term = static_cast<double>(g[c * 9 + t]) *
                              static_cast<double>(x[c * area + (y0 + t / 3) * width() + x0 + t % 3]);
          sum += term;
          magnitudes += std::fabs(term);
        }
      const double off = std::fabs(static_cast<double>(got[i]) - sum);
      error = std::max(error, off);
      largest = std::max(largest, std::fabs(sum));
      if (!std::isfinite(off) || !std::isfinite(magnitudes))  // weights that overflow: no bound holds
        of_sum = std::numeric_limits<double>::infinity();
      else if (magnitudes > 0)
        of_sum = std::max(of_sum, off / magnitudes);
    }
  }
};

}  // namespace

WinogradError probe_winograd_error(const Tensor& filters, const WinogradTile& tile) {
  WinogradError found;
  for (const auto& [kind, name] : kKinds) {
    Probe probe{static_cast<const float*>(filters.data()),
                filters.sizes()[0],
                filters.sizes()[1],
                tile,
                winograd::data_matrix(tile.h),
                winograd::data_matrix(tile.w),
                winograd::result_matrix(tile.h),
                winograd::result_matrix(tile.w),
                winograd::filter_matrix(tile.h),
                winograd::filter_matrix(tile.w)};
    probe.run(draw(kind, probe.channels, winograd::points(tile.h), winograd::points(tile.w)));
    if (kind == Kind::normal && probe.largest > 0) found.of_max = probe.error / probe.largest;
    if (probe.of_sum >= found.of_sum) found.of_sum = probe.of_sum, found.worst = name;
  }
  return found;
}

}  // namespace opfuse
