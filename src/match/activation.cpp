// Which nodes are activations of the catalogue. Parameters that change the function are checked here and refused by
// value; alpha of leaky_relu and elu is free.
#include "match/activation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace opfuse {

static double real_attr(const Node& node, std::string_view name, double otherwise) {
  const AttrMap attrs = node.attr_map();
  const AttrValue* value = find(attrs, name);
  if (!value) return otherwise;
  if (const double* real = std::get_if<double>(value)) return *real;
  if (const int64_t* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  return otherwise;
}

std::optional<ClipLimits> clip_limits(const Node& clip) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ClipLimits limits{real_attr(clip, "min", -kInfinity), real_attr(clip, "max", kInfinity)};
  for (size_t i : {1, 2}) {
    if (!clip.input(i)) continue;
    const auto value = scalar_constant(clip.input(i));
    if (!value) return std::nullopt;
    (i == 1 ? limits.low : limits.high) = *value;
  }
  // Exporters write the largest float for "no limit".
  if (limits.low <= -static_cast<double>(std::numeric_limits<float>::max())) limits.low = -kInfinity;
  if (limits.high >= static_cast<double>(std::numeric_limits<float>::max())) limits.high = kInfinity;
  return limits;
}

NodePredicate clip_between(double low, double high) {
  return {fmt::format("{}..{}", low, high), [low, high](const Node& node) -> std::optional<Decline> {
            if (!node.is("clip")) return std::nullopt;
            const auto got = clip_limits(node);
            if (!got)
              return Decline{"not_constant", "the limits of " + describe(node) + " are not constant", {node.name()}};
            if (got->low == low && got->high == high) return std::nullopt;
            return Decline{"constant_mismatch",
                           fmt::format("expected limits {} and {} at {}, found {} and {}", low, high, node.name(),
                                       got->low, got->high),
                           {node.name()}};
          }};
}

static bool near(double got, double want) { return std::fabs(got - want) <= kScalarTolerance * want; }

NodePredicate sixth_and_half() {
  return {"1/6, 1/2", [](const Node& node) -> std::optional<Decline> {
            if (!node.is("hard_sigmoid")) return std::nullopt;
            const double alpha = real_attr(node, "alpha", 0.2), beta = real_attr(node, "beta", 0.5);
            if (near(alpha, 1.0 / 6) && near(beta, 0.5)) return std::nullopt;
            return Decline{
                "constant_mismatch",
                fmt::format("expected alpha 0.166667 and beta 0.5 (+-{:g} relative) at {}, found {:g} and {:g}",
                            kScalarTolerance, node.name(), alpha, beta),
                {node.name()}};
          }};
}

static std::optional<Decline> plain_silu(const Node& node) {
  if (!node.is("silu")) return std::nullopt;
  const double alpha = real_attr(node, "alpha", 1);
  if (alpha == 1) return std::nullopt;
  return Decline{
      "constant_mismatch", fmt::format("expected alpha 1 at {}, found {:g}", node.name(), alpha), {node.name()}};
}

Pattern activation(std::string binding) {
  return any_op({"relu", "relu6", "clip", "leaky_relu", "elu", "gelu", "silu", "hard_swish", "hard_sigmoid"},
                std::move(binding))
      .where({"", clip_between(0, 6).test})
      .where({"", sixth_and_half().test})
      .where({"", plain_silu});
}

std::string_view activation_name(const Node& node) {
  static const Pattern kPattern = activation();
  const Element& e = *kPattern.chain().front();
  for (const std::string& name : e.ops) {
    if (name != operator_name(node)) continue;
    for (const NodePredicate& p : e.predicates)
      if (p.test(node)) return {};
    return name == "clip" ? std::string_view("relu6") : std::string_view(name);
  }
  return {};
}

}  // namespace opfuse
