// With point pairs +-a and +-b, p the squares' product and s their sum, the rows of the data matrix are
//   0: x^4 - s x^2 + p     +-a: (x^2 +- a x)(x^2 - b^2)     infinity: x (x^4 - s x^2 + p)
#include "cpu/emit/winograd/winograd_transform.hpp"

#include "tensor/winograd.hpp"

namespace opfuse::cpu {
namespace {

/// c * x + y
Value* add_times(Kernel& k, double c, Value* x, Value* y) {
  if (c == 1) return k.b.CreateFAdd(y, x);
  if (c == -1) return k.b.CreateFSub(y, x);
  return k.fma(llvm::ConstantFP::get(x->getType(), c), x, y);
}

Value* times(Kernel& k, double c, Value* x) {
  return c == 1 ? x : k.b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), c));
}

}  // namespace

Line transform_data(Kernel& k, int64_t tile, const Line& d) {
  const std::vector<double> pairs = winograd::point_pairs(tile);
  Line out;
  if (pairs.size() == 1) {
    const double a = pairs[0];
    out = {add_times(k, -a * a, d[0], d[2]), add_times(k, a, d[1], d[2]), add_times(k, -a, d[1], d[2])};
    out.push_back(add_times(k, -a * a, d[1], d[3]));
    return out;
  }
  const double first = pairs[0] * pairs[0], second = pairs[1] * pairs[1];
  out.push_back(add_times(k, first * second, d[0], add_times(k, -(first + second), d[2], d[4])));
  for (size_t i = 0; i < 2; ++i) {
    const double other = i == 0 ? second : first;
    Value* even = add_times(k, -other, d[2], d[4]);
    Value* odd = add_times(k, -other, d[1], d[3]);
    out.push_back(add_times(k, pairs[i], odd, even));
    out.push_back(add_times(k, -pairs[i], odd, even));
  }
  out.push_back(add_times(k, first * second, d[1], add_times(k, -(first + second), d[3], d[5])));
  return out;
}

Line transform_result(Kernel& k, int64_t tile, const Line& m) {
  const std::vector<double> pairs = winograd::point_pairs(tile);
  Line sums, differences, out;
  for (size_t i = 0; i < pairs.size(); ++i) {
    sums.push_back(k.b.CreateFAdd(m[1 + 2 * i], m[2 + 2 * i]));
    differences.push_back(k.b.CreateFSub(m[1 + 2 * i], m[2 + 2 * i]));
  }
  for (int64_t power = 0; power < tile; ++power) {
    Value* y = power == 0 ? m.front() : power == tile - 1 ? m.back() : nullptr;
    for (size_t i = 0; i < pairs.size(); ++i) {
      double c = 1;
      for (int64_t e = 0; e < power; ++e) c *= pairs[i];
      Value* x = power % 2 ? differences[i] : sums[i];
      y = y ? add_times(k, c, x, y) : times(k, c, x);
    }
    out.push_back(y);
  }
  return out;
}

}  // namespace opfuse::cpu
