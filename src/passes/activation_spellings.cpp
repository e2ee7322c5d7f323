// How exporters write the eight activations. Constants are compared with kScalarTolerance; a spelling whose constant
// is off is refused by value. Composites keep the nodes they were found in, so nothing is lost by naming them.
#include <fmt/format.h>

#include <cmath>

#include "match/activation.hpp"
#include "ops/clip.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

Pattern x() { return any("x"); }
Pattern times(double c) { return op("mul").with(scalar(c)); }
Pattern over(double c) { return op("div").with(scalar(c)); }
Pattern plus(double c) { return op("add").with(scalar(c)); }
Pattern plus_x() { return op("add").with(x()); }
Pattern times_x() { return op("mul").with(x()); }
Pattern at_least(double c) { return op("max").with(scalar(c)); }
Pattern at_most(double c) { return op("min").with(scalar(c)); }
Pattern half() { return one_of({times(0.5), over(2)}); }
Pattern sixth() { return one_of({over(6), times(1.0 / 6)}); }
Pattern positive() { return any_op({"greater", "greater_or_equal"}).with(scalar(0)); }
Pattern negative() { return any_op({"less", "less_or_equal"}).with(scalar(0)); }
Pattern relu_node() { return one_of({op("relu"), at_least(0), op("clip").where(clip_between(0, INFINITY))}); }
/// min(max(., low), high) in any spelling.
Pattern clipped(double low, double high) {
  std::vector<Pattern> forms{op("clip").where(clip_between(low, high)), at_least(low) >> at_most(high),
                             at_most(high) >> at_least(low)};
  if (low == 0) forms.push_back(op("relu") >> at_most(high));
  if (low == 0 && high == 6) forms.push_back(op("relu6"));
  return one_of(std::move(forms));
}

// The value that comes out has the type of x: no operand broadcast it.
MatchPredicate keeps_type() {
  return {"result has the type of x", [](const Match& m) -> std::optional<Decline> {
            const Value *in = m.value("x"), *out = m.anchor->output();
            if (in && !in->is_constant() && in->type == out->type) return std::nullopt;
            return Decline{"type_changes",
                           fmt::format("the result is {}, x is {}", out->type.text(), in ? in->type.text() : "absent"),
                           {}};
          }};
}

MatchPredicate scalar_alpha(double low, double high) {
  return {"alpha", [low, high](const Match& m) -> std::optional<Decline> {
            if (!m.has("alpha")) return std::nullopt;
            const auto alpha = scalar_constant(m.value("alpha"));
            if (alpha && *alpha > low && *alpha < high) return std::nullopt;
            return Decline{
                "constant_mismatch",
                fmt::format("expected one slope between {} and {}, found {}", low, high, describe(m.value("alpha"))),
                {}};
          }};
}

struct Table {
  std::vector<Spelling> rows;
  void add(std::string op, std::string form, Pattern pattern, std::function<AttrMap(const Match&)> exact = {}) {
    rows.push_back({std::move(op), std::move(form), std::move(pattern), {keeps_type()}, std::move(exact)});
  }
  void require(MatchPredicate p) { rows.back().where.push_back(std::move(p)); }
};

AttrMap no_attrs(const Match&) { return {}; }

std::optional<Decline> no_upper_limit(const Node& clip) {
  const double limit = clip.input(2) ? scalar_constant(clip.input(2)).value_or(0) : clip.as<Clip>().max;
  if (std::isinf(limit)) return std::nullopt;
  return Decline{"limit", fmt::format("the upper limit {:g} is finite", limit), {}};
}

void add_relu(Table& t) {
  t.add("relu", "max(x, 0)", x() >> at_least(0), no_attrs);
  const Pattern clipped_below = x() >> op("clip").where(clip_between(0, INFINITY));
  t.add("relu", "clip(x, 0, inf)", clipped_below.where({"no limit", no_upper_limit}), no_attrs);
  t.add("relu", "clip(x, 0, largest float)", clipped_below);  // an infinite x becomes the largest float
  t.add("relu", "where(x > 0, x, 0)", x() >> positive() >> op("where").with(x(), scalar(0)));
  t.add("relu", "where(x < 0, 0, x)", x() >> negative() >> op("where").with(scalar(0), x()));
  t.add("relu", "x * cast(x > 0)", x() >> positive() >> op("cast") >> times_x());
}

void add_relu6(Table& t) {
  t.add("relu6", "min(max(x, 0), 6)", x() >> relu_node() >> at_most(6));
  t.add("relu6", "max(min(x, 6), 0)", x() >> at_most(6) >> relu_node());
  t.add("relu6", "clip(relu(x), 0, 6)", x() >> op("relu") >> op("clip").where(clip_between(0, 6)));
}

void add_leaky_relu(Table& t) {
  auto slope = [] { return x() >> op("mul").with(constant("alpha")); };
  const auto any_slope = scalar_alpha(-INFINITY, INFINITY);
  t.add("leaky_relu", "where(x > 0, x, a * x)", x() >> positive() >> op("where").with(x(), slope()));
  t.require(any_slope);
  t.add("leaky_relu", "where(x < 0, a * x, x)", x() >> negative() >> op("where").with(slope(), x()));
  t.require(any_slope);
  t.add("leaky_relu", "max(x, a * x)", slope() >> op("max").with(x()));
  t.require(scalar_alpha(0, 1));
  t.add("leaky_relu", "relu(x) - a * relu(-x)",
        x() >> relu_node() >> op("sub").with(x() >> op("neg") >> relu_node() >> op("mul").with(constant("alpha"))));
  t.require(any_slope);
  t.add("leaky_relu", "prelu(x, one slope)", x() >> op("prelu").with(constant("alpha")), [](const Match& m) {
    return AttrMap{{"alpha", *scalar_constant(m.value("alpha"))}};
  });
  t.require(any_slope);
}

void add_elu(Table& t) {
  auto below_zero = [](Pattern start) {
    return std::move(start) >> op("exp") >> one_of({op("sub").with(scalar(1)), plus(-1)}) >>
           maybe(op("mul").with(constant("alpha")));
  };
  auto start = [] { return one_of({x() >> at_most(0), x()}); };
  const auto any_alpha = scalar_alpha(-INFINITY, INFINITY);
  auto add = [&](std::string form, Pattern p) {
    t.add("elu", std::move(form), std::move(p));
    t.require(any_alpha);
  };
  add("where(x > 0, x, a * (exp(x) - 1))", x() >> positive() >> op("where").with(x(), below_zero(start())));
  add("where(x < 0, a * (exp(x) - 1), x)", x() >> negative() >> op("where").with(below_zero(start()), x()));
  add("relu(x) + a * (exp(min(x, 0)) - 1)", x() >> relu_node() >> op("add").with(below_zero(x() >> at_most(0))));
  add("relu(x) + min(0, a * (exp(x) - 1))", x() >> relu_node() >> op("add").with(below_zero(x()) >> at_most(0)));
}

// 0.5 * x * phi in its orders.
void add_gelu_tails(Table& t, const std::string& phi_text, const Pattern& phi) {
  t.add("gelu", fmt::format("(x * {}) / 2", phi_text), phi >> times_x() >> half());
  t.add("gelu", fmt::format("(x / 2) * {}", phi_text), phi >> op("mul").with(x() >> half()));
  t.add("gelu", fmt::format("x * ({} / 2)", phi_text), phi >> half() >> times_x());
}

void add_gelu(Table& t) {
  constexpr double kSqrt2 = 1.41421356237309505, kRoot2OverPi = 0.79788456080286536, kCubic = 0.044715;
  const Pattern inner = one_of({x() >> over(kSqrt2), x() >> times(1 / kSqrt2)});
  add_gelu_tails(t, "(1 + erf(x / sqrt 2))", inner >> op("erf") >> plus(1));
  const Pattern cube = one_of({x() >> op("pow").with(scalar(3)), x() >> times_x() >> times_x()});
  const Pattern square = one_of({x() >> op("pow").with(scalar(2)), x() >> times_x()});
  const Pattern scaled_x = x() >> times(kRoot2OverPi);
  const Pattern argument = one_of({
      cube >> times(kCubic) >> plus_x() >> times(kRoot2OverPi),
      square >> times(kCubic) >> plus(1) >> op("mul").with(scaled_x),
      square >> times(kCubic) >> plus(1) >> times_x() >> times(kRoot2OverPi),
      x() >> times(kCubic) >> times_x() >> times_x() >> plus_x() >> times(kRoot2OverPi),
      square >> times(kCubic * kRoot2OverPi) >> plus(kRoot2OverPi) >> times_x(),
  });
  add_gelu_tails(t, "(1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))", argument >> op("tanh") >> plus(1));
}

void add_silu(Table& t) {
  const Pattern denominator = x() >> op("neg") >> op("exp") >> plus(1);
  t.add("silu", "x * sigmoid(x)", x() >> op("sigmoid") >> times_x());
  t.add("silu", "x / (1 + exp(-x))", x() >> op("div").with(denominator));
  t.add("silu", "x * reciprocal(1 + exp(-x))", denominator >> op("reciprocal") >> times_x());
  t.add("silu", "x * (1 / (1 + exp(-x)))", scalar(1) >> op("div").with(denominator) >> times_x());
}

void add_others(Table& t) {  // named, but none of the eight
  const Pattern softplus = one_of({x() >> op("softplus"), x() >> op("exp") >> plus(1) >> op("log")});
  t.add("mish", "x * tanh(softplus(x))", softplus >> op("tanh") >> times_x());
  t.add("quick_gelu", "x * sigmoid(1.702 x)", x() >> times(1.702) >> op("sigmoid") >> times_x());
}

void add_hard(Table& t) {
  const Pattern shifted = x() >> plus(3) >> clipped(0, 6);
  const Pattern unit = one_of({x() >> sixth() >> plus(0.5) >> clipped(0, 1), shifted >> sixth()});
  t.add("hard_swish", "x * clip(x + 3, 0, 6) / 6", shifted >> times_x() >> sixth());
  t.add("hard_swish", "(x / 6) * clip(x + 3, 0, 6)", shifted >> op("mul").with(x() >> sixth()));
  t.add("hard_swish", "x * hard_sigmoid(x)", x() >> op("hard_sigmoid").where(sixth_and_half()) >> times_x());
  t.add("hard_swish", "x * (clip(x + 3, 0, 6) / 6)", unit >> times_x());
  t.add("hard_sigmoid", "clip(x + 3, 0, 6) / 6", unit);
}

}  // namespace

const std::vector<Spelling>& activation_spellings() {
  static const std::vector<Spelling> kAll = [] {
    Table t;
    add_gelu(t), add_hard(t), add_silu(t), add_others(t), add_elu(t), add_leaky_relu(t), add_relu6(t), add_relu(t);
    return std::move(t.rows);
  }();
  return kAll;
}

}  // namespace opfuse
