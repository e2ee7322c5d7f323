#include "quantize/multiply_adds.hpp"

#include <algorithm>
#include <set>

#include "ir/flops.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "quantize/left_products.hpp"

namespace opfuse::quantization {

double multiply_adds(const Node& node) { return flops_of(node) / 2; }

MultiplyAdds multiply_adds_in_codes(const Graph& reference, const Placement& placement) {
  std::set<int> placed;
  for (const PlacedProduct& product : placement.products) placed.insert(product.node);
  const auto is_codes = [&](const Node& reader, const Value* value) {
    const PlacedTensor* pair = value ? placement.find(value->id) : nullptr;
    if (pair && std::find(pair->readers.begin(), pair->readers.end(), reader.id) != pair->readers.end()) return true;
    return value && value->producer && is_a<DequantizeLinear>(*value->producer);
  };
  MultiplyAdds sum;
  for (const Node* node : reference.nodes()) {
    if (!is_product(*node)) continue;
    const double own = multiply_adds(*node);
    sum.all += own;
    const bool both = is_codes(*node, node->input(0)) && is_codes(*node, node->input(1));
    if (placed.contains(node->id) || both) sum.codes += own;
  }
  return sum;
}

}  // namespace opfuse::quantization
