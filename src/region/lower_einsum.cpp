// Einsum: the result's labels are the domain, the summed ones the reduce axes; every operand is read at its
// labels. Two operands with summed labels are a contraction.
#include <algorithm>

#include "expr/domain.hpp"
#include "ops/einsum.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

void lower_einsum(Lowering& lowering, const Node& node) {
  std::vector<Shape> shapes;
  for (const Value* input : node.inputs) shapes.push_back(input->type.shape);
  const EinsumAxes axes = einsum_axes(node.as<Einsum>(), shapes);
  std::vector<int> loop = axes.result;
  loop.insert(loop.end(), axes.summed.begin(), axes.summed.end());
  std::vector<Dim> domain, reduce;
  for (int label : axes.result) domain.push_back(axes.extents.at(label));
  for (int label : axes.summed) reduce.push_back(axes.extents.at(label));
  const Anchor anchor = reduce.empty() ? Anchor::map : shapes.size() == 2 ? Anchor::contraction : Anchor::row;
  lowering.open(anchor, domain, reduce);
  Expr product;
  for (size_t i = 0; i < shapes.size(); ++i) {
    IndexMap map;
    for (size_t d = 0; d < shapes[i].rank(); ++d) {
      const int label = axes.operands[i][d];
      const auto at = std::find(loop.begin(), loop.end(), label) - loop.begin();
      map.dims.push_back(
          broadcast_index(shapes[i][d], axes.extents.at(label), static_cast<int>(at), lowering.stretches()));
    }
    const Expr x = lowering.pull(node.input(i), map);
    product = product ? product * x : x;
  }
  lowering.define(node.output(), reduce.empty() ? product : lowering.reduce(ReduceKind::sum, product));
}

constexpr LowerRule kRules[] = {{.op = "einsum", .anchor = lower_einsum}};

}  // namespace

std::span<const LowerRule> einsum_rules() { return kRules; }

}  // namespace opfuse
