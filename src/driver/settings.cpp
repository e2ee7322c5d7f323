#include "driver/settings.hpp"

#include <fmt/format.h>

#include "fusion/node_kind.hpp"
#include "fusion/precision.hpp"
#include "link/generators.hpp"

namespace opfuse {
namespace {

/// A product that is asked for in 16 bits, and a reduction of what it makes: rows of a product are f32 (product_rows).
std::optional<Decline> narrow_product_with_rows(const Node& group, const std::vector<std::string>& rules) {
  const Node* product = nullptr;
  bool reduces = false, several = false;
  const std::function<void(const Node&)> visit = [&](const Node& node) {
    if (node.body) {
      for (const Node* inner : node.body->nodes()) visit(*inner);
      return;
    }
    reduces |= kind_of(node) == OpKind::reduction;
    if (!is_product(node)) return;
    several |= product != nullptr;
    product = &node;
  };
  visit(group);
  if (!product || several || !reduces) return std::nullopt;
  const std::string word = asked_precision(rules, product->name());
  if (word == kFullPrecision) return std::nullopt;
  return Decline{"narrow_product",
                 fmt::format("\"{}\" is asked for in {}, whose kernels do not reduce rows", product->name(), word),
                 {product->name()}};
}

}  // namespace

std::optional<Decline> refusal_of(const Region& region, const std::string& node, const TargetInfo& target) {
  const Generator& generator = generator_for(target);
  const auto why = generator.cannot_generate(region, target);
  if (!why) return std::nullopt;
  TargetInfo unbounded = target;
  unbounded.launch.workspace.reset();
  const bool bounded = target.launch.workspace && !generator.cannot_generate(region, unbounded);
  return Decline{bounded ? "workspace" : kNotGenerated, *why, {node}};
}

Pricing pricing_within(const PlanRequest& request, Pricing price) {
  if (request.precision.empty()) return price;
  return [price = std::move(price), rules = request.precision](const Node& node) -> std::variant<GroupPrice, Decline> {
    auto whole = price(node);
    if (std::holds_alternative<Decline>(whole)) return whole;
    if (auto decline = narrow_product_with_rows(node, rules)) return *decline;
    return whole;
  };
}

}  // namespace opfuse
