#include "tensor/winograd.hpp"

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse::winograd {
namespace {

std::vector<double> finite_points(const std::vector<double>& pairs) {
  std::vector<double> all = {0};
  for (double p : pairs) all.insert(all.end(), {p, -p});
  return all;
}

std::vector<double> finite_points(int64_t tile) { return finite_points(point_pairs(tile)); }

/// Coefficients, from the constant, of the product of (x - p) over all points but number `without`.
std::vector<double> polynomial(const std::vector<double>& roots, size_t without) {
  std::vector<double> c = {1};
  for (size_t i = 0; i < roots.size(); ++i) {
    if (i == without) continue;
    c.insert(c.begin(), 0);
    for (size_t k = 0; k + 1 < c.size(); ++k) c[k] -= roots[i] * c[k + 1];
  }
  return c;
}

}  // namespace

std::vector<double> point_pairs(int64_t tile) {
  OPFUSE_CHECK(tile == 2 || tile == 4, "F({},3)", tile);
  return tile == 2 ? std::vector<double>{1.0} : std::vector<double>{0.75, 1.5};
}

Matrix filter_matrix(int64_t tile) { return filter_matrix(point_pairs(tile)); }

Matrix filter_matrix(const std::vector<double>& pairs) {
  const std::vector<double> p = finite_points(pairs);
  Matrix m;
  for (size_t i = 0; i < p.size(); ++i) {
    double scale = 1;
    for (size_t j = 0; j < p.size(); ++j) scale *= i == j ? 1 : p[i] - p[j];
    m.push_back({1 / scale, p[i] / scale, p[i] * p[i] / scale});
  }
  m.push_back({0, 0, 1});
  return m;
}

Matrix data_matrix(int64_t tile) {
  const std::vector<double> p = finite_points(tile);
  Matrix m;
  for (size_t i = 0; i <= p.size(); ++i) {
    std::vector<double> row = polynomial(p, i);
    row.resize(p.size() + 1, 0);
    m.push_back(row);
  }
  return m;
}

Matrix result_matrix(int64_t tile) {
  const std::vector<double> p = finite_points(tile);
  Matrix m;
  for (int64_t k = 0; k < tile; ++k) {
    std::vector<double> row;
    for (double x : p) {
      double power = 1;
      for (int64_t e = 0; e < k; ++e) power *= x;
      row.push_back(power);
    }
    row.push_back(k == tile - 1 ? 1 : 0);
    m.push_back(row);
  }
  return m;
}

void transform_filter(const Matrix& height, const Matrix& width, const float* g, float* u) {
  for (const auto& row : height)
    for (const auto& column : width) {
      double sum = 0;
      for (size_t a = 0; a < 3; ++a)
        for (size_t b = 0; b < 3; ++b) sum += row[a] * column[b] * static_cast<double>(g[a * 3 + b]);
      *u++ = static_cast<float>(sum);
    }
}

Tensor transform_filters(const Tensor& filters, int64_t tile_h, int64_t tile_w) {
  const std::vector<int64_t>& sizes = filters.sizes();
  OPFUSE_CHECK(filters.dtype() == DType::f32 && sizes.size() == 4 && sizes[2] == 3 && sizes[3] == 3,
               "F({}x{},3x3) of {}", tile_h, tile_w, filters.type().text());
  const Matrix gh = filter_matrix(tile_h), gw = filter_matrix(tile_w);
  Tensor out(DType::f32, {sizes[0], sizes[1], points(tile_h), points(tile_w)});
  const auto* from = static_cast<const float*>(filters.data());
  auto* to = static_cast<float*>(out.mutable_data());
  const size_t area = gh.size() * gw.size();
  parallel_for(sizes[0], [&](int64_t o) {
    for (int64_t c = 0; c < sizes[1]; ++c) {
      const auto filter = static_cast<size_t>(o * sizes[1] + c);
      transform_filter(gh, gw, from + filter * 9, to + filter * area);
    }
  });
  return out;
}

}  // namespace opfuse::winograd
