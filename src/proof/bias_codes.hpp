// A bias of codes has the scale f32(s_x s_w) in the graph; kernels add its codes to sums of the scale s_x s_w
// (region/integer_product.hpp).
#pragma once

#include <map>
#include <string>

#include "ir/graph.hpp"

namespace opfuse {

/// By name of a group's result: the largest magnitude among the constant i32 codes that the group dequantises.
std::map<std::string, double> bias_codes(const Graph& graph);

}  // namespace opfuse
