// Records of shaping: choosing and naming.
#include "shape/verdict.hpp"

#include <algorithm>
#include <iterator>

namespace opfuse {

std::vector<ShapeVerdict> of_pass(const std::vector<ShapeVerdict>& verdicts, std::string_view pass) {
  std::vector<ShapeVerdict> chosen;
  std::copy_if(verdicts.begin(), verdicts.end(), std::back_inserter(chosen),
               [&](const ShapeVerdict& verdict) { return verdict.pass == pass; });
  return chosen;
}

std::string name_of_group(const Node& node) {
  if (node.label.empty()) return node.name();
  return node.op == composite_op() ? node.label + "__" + node.name() : node.label;
}

}  // namespace opfuse
