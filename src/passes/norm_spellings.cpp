// How exporters write normalisations of rows. x may be cast to a wider type first and the result cast back.
//   layer_norm   d = x - mean(x);  y = d / sqrt(mean(d^2) + eps) [* scale [+ bias]]
//                g = scale / sqrt(mean(d^2) + eps);  y = x * g + (bias - mean(x) * g)
//   rms_norm     y = x / sqrt(mean(x^2) + eps) [* scale]
//   l2_norm      y = x / max(|x|, eps)
//   softmax      e = exp(x - max(x));  y = e / sum(e)
#include <fmt/format.h>

#include "ops/reduce.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

MatchPredicate same_trailing_axes() {
  return {"both means over the same trailing axes", [](const Match& m) -> std::optional<Decline> {
            const Node *mean = m.node("mean"), *variance = m.node("variance");
            const Value* x = m.has("up") ? m.value("up") : m.value("x");
            if (mean->op == variance->op && mean->attr_map() == variance->attr_map() &&
                x->type == m.node("d")->output()->type)
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

std::optional<std::vector<int64_t>> axes_of(const Node& reduction) {
  std::vector<int64_t> operand;
  if (const Value* axes = reduction.input(1)) {
    if (!axes->is_constant()) return std::nullopt;
    operand = axes->constant->to_i64();
  }
  return reduced_axes(reduction.as<ReduceMean>(), reduction.input(1) ? &operand : nullptr,
                      reduction.input(0)->type.shape.rank());
}

}  // namespace

MatchPredicate over_last_axis(std::vector<std::string> names) {
  return {"over the last axis", [names = std::move(names)](const Match& m) -> std::optional<Decline> {
            for (const std::string& name : names) {
              const Node* node = m.node(name);
              if (!node) continue;
              const Shape& x = node->input(0)->type.shape;
              const auto axes = x.ranked ? axes_of(*node) : std::nullopt;
              const std::vector<int64_t> last{static_cast<int64_t>(x.rank()) - 1};
              if (axes && *axes == last && node->output()->type.shape.rank() == x.rank()) continue;
              return Decline{"axes",
                             fmt::format("{} does not reduce the last axis of {}", describe(*node), x.text()),
                             {node->name()}};
            }
            return std::nullopt;
          }};
}

namespace {

Pattern square_of(const Pattern& x) {
  return one_of({x >> op("pow").with(scalar(2)), x >> op("mul").with(x), x >> op("cast") >> op("pow").with(scalar(2))});
}

Pattern root() { return one_of({op("sqrt"), op("pow").with(scalar(0.5))}); }

/// x / root, x * (1 / root), x * square^-0.5
std::vector<Pattern> divided(const Pattern& x, const Pattern& squares) {
  return {x >> op("div").with(squares >> root()), squares >> root() >> op("reciprocal") >> op("mul").with(x),
          scalar(1) >> op("div").with(squares >> root()) >> op("mul").with(x),
          squares >> op("pow").with(scalar(-0.5)) >> op("mul").with(x)};
}

/// A global pool of [n, l, c] averages rows.
std::optional<Decline> of_rows(const Node& pool) {
  const Shape& x = pool.input(0)->type.shape;
  if (x.ranked && x.rank() == 3) return std::nullopt;
  return Decline{"rank", fmt::format("{} pools {}, not rows", describe(pool), x.text()), {pool.name()}};
}

Pattern mean_of(const Pattern& x, const std::string& name) {
  return one_of({x >> op("reduce_mean", name), x >> op("global_average_pool", name).where({"rows", of_rows})});
}

/// x g + (bias - mean g), g = scale / sqrt(var + eps): TensorFlow's batch_normalization, which Keras writes norms with.
/// g is read twice, so everything it comes from has a name.
Pattern affine_norm(const Pattern& x, const Pattern& d) {
  const Pattern square = one_of({d >> op("mul", "square").with(d), d >> op("pow", "square").with(scalar(2))});
  const Pattern root_of = mean_of(square, "variance") >> op("add", "guarded").with(constant("eps")) >>
                          one_of({op("sqrt", "root"), op("pow", "root").with(scalar(0.5))});
  const Pattern inverse =
      one_of({root_of >> op("reciprocal", "inverse"), scalar(1) >> op("div", "inverse").with(root_of)});
  const Pattern gain = inverse >> op("mul", "gain").with(constant("scale"));
  const Pattern mean = mean_of(x, "mean");
  const Pattern shift = one_of({gain >> op("mul").with(mean >> op("neg")) >> op("add").with(constant("bias")),
                                constant("bias") >> op("sub").with(gain >> op("mul").with(mean))});
  return gain >> op("mul").with(x) >> op("add").with(shift);
}

void add_layer_norms(std::vector<Spelling>& rows) {
  const Pattern x = one_of({any("x") >> op("cast", "up"), any("x")});
  const Pattern d = x >> op("sub", "d").with(mean_of(x, "mean"));
  const Pattern variance = mean_of(square_of(d), "variance") >> op("add").with(constant("eps"));
  const Pattern normal = one_of(divided(d, variance)) >> maybe(op("cast"));
  const Pattern scaled = normal >> op("mul").with(constant("scale"));
  const std::vector<MatchPredicate> where{same_trailing_axes(), small_epsilon()};
  rows.push_back({"layer_norm",
                  "(x - mean) / sqrt(var + eps) * scale + bias",
                  scaled >> op("add").with(constant("bias")) >> maybe(op("cast")),
                  where,
                  {}});
  rows.push_back({"layer_norm", "x g + (bias - mean g), g = scale / sqrt(var + eps)", affine_norm(x, d), where, {}});
  rows.push_back({"layer_norm", "(x - mean) / sqrt(var + eps) * scale", scaled, where, {}});
  rows.push_back({"layer_norm", "(x - mean) / sqrt(var + eps)", normal, where, {}});
}

void add_rms_norms(std::vector<Spelling>& rows) {
  const Pattern x = one_of({any("x") >> op("cast", "up"), any("x")});
  const Pattern squares = square_of(x) >> op("reduce_mean", "mean") >> op("add").with(constant("eps"));
  const Pattern normal = one_of(divided(x, squares)) >> maybe(op("cast"));
  const std::vector<MatchPredicate> where{over_last_axis({"mean"}), small_epsilon()};
  rows.push_back(
      {"rms_norm", "x / sqrt(mean(x^2) + eps) * scale", normal >> op("mul").with(constant("scale")), where, {}});
  rows.push_back({"rms_norm", "x / sqrt(mean(x^2) + eps)", normal, where, {}});
}

void add_l2_norms(std::vector<Spelling>& rows) {
  const Pattern x = any("x");
  const Pattern norm = one_of({x >> op("reduce_l2", "norm"), square_of(x) >> op("reduce_sum", "norm") >> root()});
  const Pattern guarded = norm >> one_of({op("max").with(constant("eps")), op("add").with(constant("eps")),
                                          op("clip").with(constant("eps"), maybe(any()))});
  const Pattern divisor = guarded >> maybe(op("expand").with(any()));
  rows.push_back(
      {"l2_norm", "x / max(|x|, eps)", x >> op("div").with(divisor), {over_last_axis({"norm"}), small_epsilon()}, {}});
}

void add_softmaxes(std::vector<Spelling>& rows) {
  const Pattern x = any("x");
  const Pattern safe = x >> op("sub", "shifted").with(x >> op("reduce_max", "max")) >> op("exp", "e");
  for (const auto& [form, e] :
       {std::pair{"exp(x - max(x)) / sum", safe}, {"exp(x) / sum(exp(x))", x >> op("exp", "e")}}) {
    const Pattern sum = e >> op("reduce_sum", "sum");
    rows.push_back({"softmax",
                    form,
                    one_of({e >> op("div").with(sum), sum >> op("reciprocal") >> op("mul").with(e)}),
                    {over_last_axis({"max", "sum"})},
                    {}});
  }
}

}  // namespace

const std::vector<Spelling>& norm_spellings() {
  static const std::vector<Spelling> kAll = [] {
    std::vector<Spelling> rows;
    add_layer_norms(rows), add_rms_norms(rows), add_l2_norms(rows), add_softmaxes(rows);
    return rows;
  }();
  return kAll;
}

}  // namespace opfuse
