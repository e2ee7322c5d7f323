// Numbers multiplied: of an array's sizes, how many elements it has.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>

namespace opfuse {

/// 1 of none.
constexpr int64_t product_of(std::span<const int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace opfuse
