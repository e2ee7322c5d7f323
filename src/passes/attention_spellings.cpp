// How exporters write attention: two products with a softmax between them.
//
//     q [* s] --.
//                matmul -- [* s] -- [+ mask | where(mask, ., low) | cast | reshape]* -- softmax -- matmul -- y
//     k [* s] --'                                                                             v --'
//
// The scale may stand on q, on k, on both or behind the product; masks may be added, chosen, several. Weights may be
// cast or reshaped, and NaN of rows that are masked everywhere replaced by 0. Keys may arrive transposed in any way:
// the pattern asks for the product, not for how its operands were arranged. Scores may be capped: tanh(x / c) * c.
#include <fmt/format.h>

#include <cmath>

#include "match/attention.hpp"
#include "ops/softmax.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

std::optional<Decline> one_number(const Node& node) {
  const auto of = [&](size_t i) { return scalar_constant(node.input(i)); };
  const std::optional<double> scale = of(1) ? of(1) : node.is("mul") ? of(0) : std::nullopt;
  if (scale && *scale > 0 && std::isfinite(*scale)) return std::nullopt;
  if (!scale)
    return Decline{"not_constant", "the scale at " + node.name() + " is not a constant number", {node.name()}};
  return Decline{"constant_mismatch",
                 fmt::format("expected a positive scale at {}, found {:g}", node.name(), *scale),
                 {node.name()}};
}

std::optional<Decline> last_axis(const Node& node) {
  if (!node.is("softmax")) return std::nullopt;  // a softmax spelled out was checked when it was recomposed
  const SoftmaxAttrs& attrs = node.as<Softmax>();
  const Shape& shape = node.output()->type.shape;
  const bool last = attrs.axis == -1 || (shape.ranked && attrs.axis == static_cast<int64_t>(shape.rank()) - 1);
  if (last) return std::nullopt;
  return Decline{"axis", fmt::format("{} runs along axis {}, not the last one", describe(node), attrs.axis), {}};
}

Pattern scale() { return any_op({"mul", "div"}).with(constant()).where({"scale", one_number}); }

Pattern scaled(const std::string& name) { return one_of({tensor(name) >> scale(), tensor(name)}); }

/// What may stand between the product and the softmax.
Pattern adjustment() {
  const Pattern cap = op("div").with(constant("cap")) >> op("tanh") >> op("mul").with(constant("cap"));
  return one_of({scale(), op("add").with(any()), op("cast"), op("reshape").with(constant()), cap});
}

/// where(mask, scores, low) and where(mask, low, scores): the scores are the second or third operand.
Pattern masked(const Pattern& scores) {
  return one_of({any() >> op("where").with(scores, constant()), any() >> op("where").with(constant(), scores)});
}

/// where(isnan(w), 0, w)
Pattern nan_guard() { return op("is_nan") >> op("where").with(scalar(0), any("guarded")); }

MatchPredicate guards_the_weights() {
  return {"the guarded value is the softmax", [](const Match& m) -> std::optional<Decline> {
            if (!m.has("guarded") || m.value("guarded") == m.value("weights")) return std::nullopt;
            return Decline{"binding_mismatch", "where chooses between 0 and another value than the softmax", {}};
          }};
}

/// where(max of the row == -inf, 0, w): ONNX's own, which lets NaN of the scores through
MatchPredicate guards_the_row() {
  return {"the guarded value is the softmax of the row", [](const Match& m) -> std::optional<Decline> {
            if (m.node("top")->input(0) == m.value("scored")) return std::nullopt;
            return Decline{"binding_mismatch", "the rows without a key are those of other scores", {}};
          }};
}

Pattern softmax() { return op("softmax", "weights").where({"last axis", last_axis}); }

Spelling attention(std::string form, const Pattern& scores) {
  return {kAttention,
          std::move(form),
          scores >> softmax() >> maybe(nan_guard()) >> maybe(op("cast")) >> maybe(op("reshape").with(constant())) >>
              op("matmul", "context").with(tensor("v")),
          {guards_the_weights()},
          {}};
}

/// Rows whose keys are all masked give 0.
Spelling guarded_attention(std::string form, const Pattern& scores) {
  const Pattern weights = any("scored") >> maybe(op("cast")) >> softmax() >> maybe(op("cast"));
  return {kAttention,
          std::move(form),
          scores >> op("reduce_max", "top").with(maybe(constant())) >> op("equal").with(scalar(-INFINITY)) >>
              op("where").with(scalar(0), weights) >> op("matmul", "context").with(tensor("v")),
          {guards_the_row(), over_last_axis({"top"})},
          {}};
}

}  // namespace

const std::vector<Spelling>& attention_spellings() {
  static const std::vector<Spelling> kAll = [] {
    const Pattern scores = scaled("q") >> op("matmul", "scores").with(scaled("k"));
    const Pattern adjusted = scores >> repeat(adjustment(), 0, 6);
    const Pattern chosen = masked(adjusted) >> repeat(adjustment(), 0, 4);
    return std::vector<Spelling>{attention("softmax(q k * s + mask) v", adjusted),
                                 attention("softmax(where(mask, q k * s, low)) v", chosen),
                                 guarded_attention("softmax(q k * s + mask) v, 0 without keys", adjusted)};
  }();
  return kAll;
}

}  // namespace opfuse
