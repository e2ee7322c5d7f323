// What a Pad puts around the maps of images.
#pragma once

#include <variant>

#include "match/matcher.hpp"

namespace opfuse {

/// Begins, then ends, of the spatial axes of [N, C, spatial...]; the reason when another axis is padded or something is
/// computed. Behind a transposition of the padded value, `permutation` says which of its axes each of them is.
std::variant<std::vector<int64_t>, Decline> spatial_border(const Node& pad, std::vector<size_t> permutation = {});

/// The value of the border where it is a constant.
std::optional<double> border_value(const Node& pad);

}  // namespace opfuse
