// Attention whose four factors are codes: both products are sums of bytes.
#pragma once

#include <optional>

#include "kernel/attention_view.hpp"
#include "kernel/coded_factor.hpp"
#include "target/target.hpp"

namespace opfuse {

inline constexpr int64_t kBytesOfWord = 4;  ///< that one lane of vpdpbusd adds up

struct AttentionCodes {
  CodedFactor query, key, value;
  CodedFactor weight;  ///< of the weight as result 0
};
/// Nothing where a factor is a float, or the target has no products of bytes.
std::optional<AttentionCodes> attention_codes(const Region& region, const AttentionView& view,
                                              const TargetInfo& target);

/// A region that is such an attention.
bool multiplies_codes(const Region& region, const TargetInfo& target);

}  // namespace opfuse
