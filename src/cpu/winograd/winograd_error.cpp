#include "cpu/winograd/winograd_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/parallel.hpp"
#include "tensor/winograd.hpp"

namespace opfuse {
namespace {

using Numbers = std::vector<float>;
constexpr int64_t kSampledOutputs = 16;
constexpr size_t kTaps = 9;

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

/// Drawn data of one tile, all channels: as it is, and transformed.
struct Drawn {
  const char* kind;
  Numbers plain, transformed;
};

struct Found {
  double error = 0, largest = 0, of_sum = 0;

  void merge(const Found& other) {
    error = std::max(error, other.error);
    largest = std::max(largest, other.largest);
    of_sum = std::max(of_sum, other.of_sum);
  }
};

struct Probe {
  explicit Probe(const WinogradTile& t) : tile(t) {}
  WinogradTile tile;
  winograd::Matrix data_h = winograd::data_matrix(tile.h), data_w = winograd::data_matrix(tile.w);
  winograd::Matrix result_h = winograd::result_matrix(tile.h), result_w = winograd::result_matrix(tile.w);
  winograd::Matrix filter_h = winograd::filter_matrix(tile.h), filter_w = winograd::filter_matrix(tile.w);

  size_t height() const { return data_h.size(); }
  size_t width() const { return data_w.size(); }
  size_t area() const { return height() * width(); }

  Drawn draw_data(Kind kind, const char* name, int64_t channels) const {
    Drawn d{name, draw(kind, channels, static_cast<int64_t>(height()), static_cast<int64_t>(width())), {}};
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const Numbers one = sandwich(data_h, d.plain.data() + c * area(), data_w);
      d.transformed.insert(d.transformed.end(), one.begin(), one.end());
    }
    return d;
  }

  /// The filters of one output, [channels][area].
  Numbers transform_filters(const float* g, size_t channels) const {
    Numbers u(channels * area());
    for (size_t c = 0; c < channels; ++c)
      winograd::transform_filter(filter_h, filter_w, g + c * kTaps, u.data() + c * area());
    return u;
  }

  Found compare(const Drawn& d, const float* g, const Numbers& u, size_t channels) const {
    Numbers products(area(), 0);
    for (size_t c = 0; c < channels; ++c)
      for (size_t i = 0; i < area(); ++i) products[i] += u[c * area() + i] * d.transformed[c * area() + i];
    const Numbers got = sandwich(result_h, products.data(), result_w);
    Found found;
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t y0 = i / static_cast<size_t>(tile.w), x0 = i % static_cast<size_t>(tile.w);
      double sum = 0, magnitudes = 0;
      for (size_t c = 0; c < channels; ++c)
        for (size_t t = 0; t < kTaps; ++t) {
          const double term = static_cast<double>(g[c * kTaps + t]) *
                              static_cast<double>(d.plain[c * area() + (y0 + t / 3) * width() + x0 + t % 3]);
          sum += term;
          magnitudes += std::fabs(term);
        }
      const double off = std::fabs(static_cast<double>(got[i]) - sum);
      found.error = std::max(found.error, off);
      found.largest = std::max(found.largest, std::fabs(sum));
      if (!std::isfinite(off) || !std::isfinite(magnitudes))  // weights that overflow: no bound holds
        found.of_sum = std::numeric_limits<double>::infinity();
      else if (magnitudes > 0)
        found.of_sum = std::max(found.of_sum, off / magnitudes);
    }
    return found;
  }
};

}  // namespace

WinogradError probe_winograd_error(const Tensor& filters, const WinogradTile& tile) {
  const Probe probe(tile);
  const int64_t outputs = filters.sizes()[0], channels = filters.sizes()[1];
  std::vector<Drawn> drawn(std::size(kKinds));
  parallel_for(static_cast<int64_t>(drawn.size()), [&](int64_t k) {
    const auto& [kind, name] = kKinds[k];
    drawn[static_cast<size_t>(k)] = probe.draw_data(kind, name, channels);
  });
  const int64_t step = std::max<int64_t>(1, outputs / kSampledOutputs);
  std::vector<std::vector<Found>> by_output(static_cast<size_t>((outputs + step - 1) / step));
  parallel_for(static_cast<int64_t>(by_output.size()), [&](int64_t o) {
    const float* g = static_cast<const float*>(filters.data()) + o * step * channels * static_cast<int64_t>(kTaps);
    const Numbers u = probe.transform_filters(g, static_cast<size_t>(channels));
    for (const Drawn& d : drawn)
      by_output[static_cast<size_t>(o)].push_back(probe.compare(d, g, u, static_cast<size_t>(channels)));
  });
  WinogradError result;
  for (size_t k = 0; k < drawn.size(); ++k) {
    Found found;
    for (const std::vector<Found>& output : by_output) found.merge(output[k]);
    if (kKinds[k].first == Kind::normal && found.largest > 0) result.of_max = found.error / found.largest;
    if (found.of_sum >= result.of_sum) result.of_sum = found.of_sum, result.worst = drawn[k].kind;
  }
  return result;
}

}  // namespace opfuse
