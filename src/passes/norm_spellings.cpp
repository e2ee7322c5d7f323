// How exporters write LayerNorm before opset 17.
//   mean = ReduceMean(x);  d = x - mean;  y = d / sqrt(ReduceMean(d^2) + eps) [* scale [+ bias]]
#include <fmt/format.h>

#include "passes/recompose.hpp"

namespace opfuse {

namespace {

MatchPredicate same_trailing_axes() {
  return {"both means over the same trailing axes", [](const Match& m) -> std::optional<Decline> {
            const Node *mean = m.node("mean"), *variance = m.node("variance");
            if (mean->attr_map() == variance->attr_map() && m.value("x")->type == m.node("d")->output()->type)
              return std::nullopt;
            return Decline{"axes_differ", "the mean and the variance are taken over different axes", {}};
          }};
}

MatchPredicate small_epsilon() {
  return {"epsilon", [](const Match& m) -> std::optional<Decline> {
            const auto eps = scalar_constant(m.value("eps"));
            if (eps && *eps > 0 && *eps < 0.1) return std::nullopt;
            return Decline{"constant_mismatch", "expected a small epsilon, found " + describe(m.value("eps")), {}};
          }};
}

}  // namespace

const std::vector<Spelling>& norm_spellings() {
  static const std::vector<Spelling> kAll = [] {
    const Pattern d = any("x") >> op("sub", "d").with(any("x") >> op("reduce_mean", "mean"));
    const Pattern square = one_of({d >> op("pow").with(scalar(2)), d >> op("mul").with(d)});
    const Pattern deviation = square >> op("reduce_mean", "variance") >> op("add").with(constant("eps")) >> op("sqrt");
    const Pattern normal = d >> op("div").with(deviation);
    const Pattern scaled = normal >> op("mul").with(constant("scale"));
    const std::vector<MatchPredicate> where{same_trailing_axes(), small_epsilon()};
    return std::vector<Spelling>{{"layer_norm",
                                  "(x - mean) / sqrt(var + eps) * scale + bias",
                                  scaled >> op("add").with(constant("bias")),
                                  where,
                                  {}},
                                 {"layer_norm", "(x - mean) / sqrt(var + eps) * scale", scaled, where, {}},
                                 {"layer_norm", "(x - mean) / sqrt(var + eps)", normal, where, {}}};
  }();
  return kAll;
}

}  // namespace opfuse
