// Attention whose four factors are codes: both products are sums of bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/attention_view.hpp"
#include "kernel/coded_factor.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Products of codes minus their zero points, 255 * 255 at most, that an i32 has room for.
inline constexpr int64_t kMostCodeProducts = INT32_MAX / (255 * 255);

struct AttentionCodes {
  CodedFactor query, key, value;
  CodedFactor weight;  ///< of the weight as result 0
};
/// Nothing where a factor is a float, a sum may leave i32, or the target has no products of bytes.
std::optional<AttentionCodes> attention_codes(const Region& region, const AttentionView& view,
                                              const TargetInfo& target);

/// A region that is such an attention.
bool multiplies_codes(const Region& region, const TargetInfo& target);

}  // namespace opfuse
