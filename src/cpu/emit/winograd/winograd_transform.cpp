// With point pairs +-a and +-b, p the squares' product and s their sum, the rows of the data matrix are
//   0: x^4 - s x^2 + p     +-a: (x^2 +- a x)(x^2 - b^2)     infinity: x (x^4 - s x^2 + p)
#include "cpu/emit/winograd/winograd_transform.hpp"

#include <bit>

#include "base/fail.hpp"
#include "tensor/winograd_codes.hpp"

namespace opfuse::cpu {
namespace {

bool is_whole(const Value* x) { return x->getType()->getScalarType()->isIntegerTy(); }

/// c * x of whole numbers; c is 1, 2, 4 or 8, or 5.
Value* whole_times(Kernel& k, int64_t c, Value* x) {
  if (c == 5) return k.b.CreateAdd(k.b.CreateShl(x, 2), x);
  const auto power = static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(c)));
  OPFUSE_CHECK(c == int64_t{1} << power, "a factor of {}", c);
  return power == 0 ? x : k.b.CreateShl(x, power);
}

Value* add(Kernel& k, Value* x, Value* y) { return is_whole(x) ? k.b.CreateAdd(x, y) : k.b.CreateFAdd(x, y); }
Value* subtract(Kernel& k, Value* x, Value* y) { return is_whole(x) ? k.b.CreateSub(x, y) : k.b.CreateFSub(x, y); }

/// c * x + y
Value* add_times(Kernel& k, double c, Value* x, Value* y) {
  if (is_whole(x)) {
    Value* product = whole_times(k, static_cast<int64_t>(c < 0 ? -c : c), x);
    return c < 0 ? k.b.CreateSub(y, product) : k.b.CreateAdd(y, product);
  }
  if (c == 1) return k.b.CreateFAdd(y, x);
  if (c == -1) return k.b.CreateFSub(y, x);
  return k.fma(llvm::ConstantFP::get(x->getType(), c), x, y);
}

Value* times(Kernel& k, double c, Value* x) {
  if (is_whole(x)) return whole_times(k, static_cast<int64_t>(c), x);
  return c == 1 ? x : k.b.CreateFMul(x, llvm::ConstantFP::get(x->getType(), c));
}

std::vector<double> pairs_of(int64_t tile, bool codes) {
  return codes ? winograd::codes_form(tile).pairs : winograd::point_pairs(tile);
}

}  // namespace

Line transform_data(Kernel& k, int64_t tile, bool codes, const Line& d) {
  const std::vector<double> pairs = pairs_of(tile, codes);
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

Line transform_result(Kernel& k, int64_t tile, bool codes, const Line& m) {
  const std::vector<double> pairs = pairs_of(tile, codes);
  Line sums, differences, out;
  Value* last = codes ? times(k, static_cast<double>(winograd::codes_form(tile).infinite_result), m.back()) : m.back();
  for (size_t i = 0; i < pairs.size(); ++i) {
    sums.push_back(add(k, m[1 + 2 * i], m[2 + 2 * i]));
    differences.push_back(subtract(k, m[1 + 2 * i], m[2 + 2 * i]));
  }
  for (int64_t power = 0; power < tile; ++power) {
    Value* y = power == 0 ? m.front() : power == tile - 1 ? last : nullptr;
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
