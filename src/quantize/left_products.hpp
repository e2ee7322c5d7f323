// Products that no module with points holds: nothing asks for their codes, so the list of what stays in float says why.
#pragma once

#include <vector>

#include "fusion/names.hpp"
#include "fusion/plan.hpp"
#include "quantize/placement.hpp"

namespace opfuse::quantization {

/// A convolution, matrix product or recurrent cell, whether it may have codes or not.
bool is_product(const Node& node);

/// In the graph's order. Products whose data the model brings as codes are not among them.
std::vector<LeftModule> left_products(const Graph& graph, const FusionPlan& plan, const NodeNames& names);

}  // namespace opfuse::quantization
