// Products of quantised operands become sums of their codes: the DequantizeLinear nodes in front of a convolution or
// matrix product join its group, which then reads bytes.
//
//     x codes -- DequantizeLinear --.
//     w codes -- DequantizeLinear -- [Conv, ..., QuantizeLinear] -- y codes
//
// becomes   x codes -- [DequantizeLinear x 2, Conv, ..., QuantizeLinear] -- y codes
//
// Results of groups that such a product reads are stored as codes, and a maximum between two equal steps pools codes.
// A DequantizeLinear that others read too stays for them. Where the target has no kernel for the sum, the group stays
// as it is: operands are dequantised and the product is computed in f32.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// What the products of a group are computed in.
struct PrecisionVerdict {
  std::string name;               ///< of the group
  std::optional<Decline> floats;  ///< why not in codes; none: they are
};

/// Why a group that reads codes is no faster kernel than one that reads dequantised operands; none: it is.
using CodesAdvice = std::function<std::optional<Decline>(const Node& joined)>;

/// One verdict for each group with a product whose operands are both dequantised.
std::vector<PrecisionVerdict> sum_codes(Graph& fused, const CodesAdvice& advice);

/// "int8 in 53 of 54 quantised products; ..." for reports; empty where there are none.
std::vector<std::string> precision_lines(const std::vector<PrecisionVerdict>& verdicts);

}  // namespace opfuse
