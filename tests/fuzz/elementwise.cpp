// Elementwise operators: functions of one operand with the range they take, arithmetic, comparisons, logic, casts.
#include <algorithm>
#include <cmath>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {

Value* broadcast_partner(Drawer& d, const Known& known, double low, double high) {
  if (d.chance(0.5)) {
    const Known* other = d.pick([&](const Known& k) {
      if (k.dtype() != known.dtype() || k.low < low || k.high > high || k.rank() > known.rank()) return false;
      for (size_t i = 0; i < k.rank(); ++i) {
        const size_t axis = known.rank() - k.rank() + i;
        const Dim& mine = known.value->type.shape[axis];
        const Dim& its = k.value->type.shape[i];
        if (!(its == mine) && !(its.is_constant() && its.value() == 1) && !(mine.is_constant() && mine.value() == 1))
          return false;
      }
      return true;
    });
    if (other) return other->value;
  }
  std::vector<int64_t> sizes;
  const size_t rank = known.rank() == 0 ? 0 : static_cast<size_t>(d.between(0, static_cast<int64_t>(known.rank())));
  for (size_t axis = known.rank() - rank; axis < known.rank(); ++axis) {
    const int64_t fixed = fixed_extent(known, axis);
    sizes.push_back(fixed > 0 && d.chance(0.6) ? fixed : fixed == 1 && d.chance(0.3) ? d.between(2, 4) : 1);
  }
  return d.constant(sizes, known.dtype(), std::max(low, -3.0), std::min(high, 3.0));
}

int64_t fixed_extent(const Known& known, size_t axis) {
  const Dim& dim = known.value->type.shape[axis];
  return dim.is_constant() ? dim.value() : 0;
}

namespace {

constexpr double kAny = 1e9;

struct Function {
  const char* op;
  double low = -kAny, high = kAny, least = 0;
  bool exact = false;  ///< keeps small dyadic numbers exact
  bool leaps = false;
  AttrMap attrs = {};
};

const std::vector<Function>& functions() {
  static const std::vector<Function> list = {
      {"relu", -kAny, kAny, 0, true},
      {"relu", -kAny, kAny, 0, true},
      {.op = "leaky_relu", .exact = true, .attrs = {{"alpha", 0.25}}},
      {.op = "leaky_relu"},
      {.op = "elu", .attrs = {{"alpha", 0.7}}},
      {.op = "selu"},
      {.op = "celu", .attrs = {{"alpha", 1.5}}},
      {.op = "thresholded_relu", .exact = true, .leaps = true, .attrs = {{"alpha", 0.5}}},
      {.op = "gelu", .attrs = {{"form", std::string("exact")}}},
      {.op = "gelu", .attrs = {{"form", std::string("tanh")}}},
      {.op = "hard_swish"},
      {.op = "hard_sigmoid"},
      {.op = "mish"},
      {.op = "sigmoid"},
      {.op = "tanh"},
      {.op = "softplus"},
      {.op = "softsign"},
      {.op = "shrink", .exact = true, .leaps = true, .attrs = {{"bias", 0.5}, {"lambd", 0.5}}},
      {.op = "erf"},
      {.op = "exp", .low = -20, .high = 5},
      {.op = "log", .low = 0.05},
      {.op = "sqrt", .low = 0.01},
      {.op = "abs", .exact = true},
      {.op = "neg", .exact = true},
      {.op = "sign", .exact = true, .leaps = true},
      {.op = "floor", .exact = true, .leaps = true},
      {.op = "ceil", .exact = true, .leaps = true},
      {.op = "round", .exact = true, .leaps = true},
      {.op = "reciprocal", .least = 0.05},
      {.op = "sin", .low = -50, .high = 50},
      {.op = "cos", .low = -50, .high = 50},
      {.op = "tan", .low = -1.2, .high = 1.2},
      {.op = "asin", .low = -0.95, .high = 0.95},
      {.op = "acos", .low = -0.95, .high = 0.95},
      {.op = "atan"},
      {.op = "sinh", .low = -5, .high = 5},
      {.op = "cosh", .low = -5, .high = 5},
      {.op = "asinh"},
      {.op = "acosh", .low = 1.05},
      {.op = "atanh", .low = -0.95, .high = 0.95},
      {.op = "identity", .exact = true},
      {.op = "dropout", .exact = true},
  };
  return list;
}

bool function(Drawer& d) {
  const Function& f = d.one_of(functions());
  if (d.options().exact && !f.exact) return false;
  const Known* x =
      d.pick([&](const Known& k) { return k.real() && k.low >= f.low && k.high <= f.high && k.least >= f.least; });
  return x && d.add(f.op, f.attrs, {x->value}, 1, f.leaps);
}

/// SiLU has no operator before opset 24; exporters write its two nodes.
bool silu(Drawer& d) {
  const Known* x = d.pick_real();
  if (!x || d.options().exact) return false;
  Value* gate = d.add1("sigmoid", {}, {x->value});
  return gate && d.add("mul", {}, {x->value, gate});
}

bool clip(Drawer& d) {
  const Known* x = d.pick_real();
  if (!x) return false;
  const double low = d.options().exact ? -2 : d.inside(-2, 0), high = d.options().exact ? 3 : d.inside(0, 3);
  const bool has_low = d.chance(0.8), has_high = !has_low || d.chance(0.8);
  return d.add(
      "clip", {},
      {x->value, has_low ? d.scalar(x->dtype(), low) : nullptr, has_high ? d.scalar(x->dtype(), high) : nullptr});
}

bool prelu(Drawer& d) {
  const Known* x = d.pick_real(1);
  if (!x) return false;
  const int64_t channels = x->rank() > 1 ? fixed_extent(*x, 1) : 0;
  std::vector<int64_t> sizes(x->rank() > 1 ? x->rank() - 1 : 1, 1);
  if (channels > 0 && d.chance(0.7)) sizes[0] = x->rank() > 1 ? channels : 1;
  return d.add("prelu", {}, {x->value, d.constant(sizes, x->dtype())});
}

bool arithmetic(Drawer& d) {
  const char* op = d.one_of<const char*>({"add", "add", "add", "sub", "mul", "mul", "min", "max", "div"});
  const Known* x = d.pick([](const Known& k) { return k.dtype() != DType::boolean; });
  if (!x || (!x->real() && d.chance(0.5))) return false;
  const bool divides = std::string(op) == "div";
  if (divides && (d.options().exact || !x->real())) return false;
  Value* y = broadcast_partner(d, *x, divides ? 0.3 : -kAny, kAny);
  const bool turned = !divides && d.chance(0.3);
  return d.add(op, {}, turned ? std::vector<Value*>{y, x->value} : std::vector<Value*>{x->value, y});
}

bool several(Drawer& d) {
  const Known* x = d.pick_real();
  if (!x) return false;
  std::vector<Value*> operands{x->value};
  for (int64_t i = d.between(0, 2); i >= 0; --i) operands.push_back(broadcast_partner(d, *x, -kAny, kAny));
  return d.add(d.one_of<const char*>({"sum", "max", "min", "mean"}), {}, operands);
}

bool power(Drawer& d) {
  if (d.options().exact) {
    const Known* x = d.pick([](const Known& k) { return k.real() && k.magnitude() <= 8; });
    return x && d.add("pow", {}, {x->value, d.scalar(x->dtype(), 2)});
  }
  const double exponent = d.one_of<double>({2, 0.5, 3, -1, 1.5, -0.5, 1, 0});
  const bool whole = exponent == std::floor(exponent) && exponent >= 0;
  const Known* x = d.pick([&](const Known& k) { return k.real() && k.magnitude() < 10 && (whole || k.low > 0.1); });
  return x && d.add("pow", {}, {x->value, d.scalar(x->dtype(), exponent)});
}

bool modulo(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.dtype() != DType::boolean; });
  if (!x) return false;
  if (x->real()) return d.add("mod", {{"fmod", true}}, {x->value, d.scalar(x->dtype(), 3)}, 1, true);
  return d.add("mod", {{"fmod", d.chance(0.5)}},
               {x->value, d.scalar(x->dtype(), static_cast<double>(d.between(1, 5)))});
}

bool comparison(Drawer& d) {
  const char* op = d.one_of<const char*>({"equal", "less", "less_or_equal", "greater", "greater_or_equal"});
  const Known* x = d.pick([](const Known& k) { return k.dtype() != DType::boolean; });
  return x && d.add(op, {}, {x->value, broadcast_partner(d, *x, -kAny, kAny)}, 1, true);
}

bool logic(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.dtype() == DType::boolean; });
  if (!x) return false;
  if (d.chance(0.3)) return d.add("not", {}, {x->value});
  const Known* y = d.pick(
      [&](const Known& k) { return k.dtype() == DType::boolean && k.value->type.shape == x->value->type.shape; });
  return y && d.add(d.one_of<const char*>({"and", "or", "xor"}), {}, {x->value, y->value});
}

bool where(Drawer& d) {
  const Known* c = d.pick([](const Known& k) { return k.dtype() == DType::boolean; });
  if (!c) return false;
  const Known* x = d.pick([&](const Known& k) { return k.real() && k.value->type.shape == c->value->type.shape; });
  if (!x) x = d.pick_real(0, 1);
  return x && d.add("where", {}, {c->value, x->value, broadcast_partner(d, *x, -kAny, kAny)});
}

bool bits(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return !k.real() && k.dtype() != DType::boolean; });
  if (!x) return false;
  if (d.chance(0.2)) return d.add("bitwise_not", {}, {x->value});
  if (x->dtype() == DType::u8 && d.chance(0.3))
    return d.add("bit_shift", {{"direction", std::string(d.chance(0.5) ? "left" : "right")}},
                 {x->value, d.scalar(DType::u8, static_cast<double>(d.between(0, 7)))});
  return d.add(d.one_of<const char*>({"bitwise_and", "bitwise_or", "bitwise_xor"}), {},
               {x->value, d.scalar(x->dtype(), static_cast<double>(d.between(0, 15)))});
}

bool cast(Drawer& d) {
  const Known* x = d.pick([](const Known&) { return true; });
  if (!x) return false;
  if (!x->real()) return d.add("cast", {{"to", d.options().type}}, {x->value});
  if (d.chance(0.3) && x->magnitude() < 100) {
    const bool positive = x->low >= 0;
    return d.add("cast", {{"to", d.one_of<DType>({DType::i32, DType::i64, positive ? DType::u8 : DType::i8})}},
                 {x->value}, 1, true);
  }
  if (d.options().exact) return false;
  const DType to = x->dtype() == DType::f32 ? d.one_of<DType>({DType::f16, DType::bf16, DType::f32}) : DType::f32;
  const Node* narrow = d.add("cast", {{"to", to}}, {x->value});
  return narrow && (to == d.options().type || d.add("cast", {{"to", d.options().type}}, {narrow->output()}));
}

bool cast_like(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return !k.real(); });
  const Known* like = d.pick_real();
  return x && like && d.add("cast_like", {}, {x->value, like->value});
}

bool classify(Drawer& d) {
  const Known* x = d.pick_real();
  return x && d.add(d.chance(0.5) ? "is_nan" : "is_inf", {}, {x->value});
}

}  // namespace

const std::vector<Draw>& elementwise_draws() {
  static const std::vector<Draw> list = {
      {"function", 24, function},
      {"arithmetic", 20, arithmetic},
      {"silu", 2, silu},
      {"clip", 3, clip},
      {"prelu", 2, prelu},
      {"several", 3, several},
      {"power", 3, power},
      {"modulo", 1, modulo},
      {"comparison", 3, comparison},
      {"logic", 3, logic},
      {"where", 4, where},
      {"bits", 1, bits},
      {"cast", 3, cast},
      {"cast_like", 1, cast_like},
      {"classify", 1, classify},
  };
  return list;
}

}  // namespace opfuse::fuzz
