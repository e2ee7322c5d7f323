// Recompositions that are not activations: the composite has the right name, its body is what the exporter wrote, and
// the values stay on ordinary and extreme inputs. Constants that are off are refused by value.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

struct Case {
  const char* name;
  const char* label;  ///< the one composite; "" when it must not be recomposed
  const char* nodes;
  const char* input = "f32[2,3,8]";
  size_t left = 1;  ///< nodes
};

const Case kCases[] = {
    {"layer_norm_pow", "layer_norm",
     "%m = reduce_mean(%x) {axes=[-1]} %d = sub(%x, %m) %q = pow(%d, %two) %v = reduce_mean(%q) {axes=[-1]} %e = "
     "add(%v, %eps) %r = sqrt(%e) %n = div(%d, %r) %s = mul(%n, %scale) %y = add(%s, %bias)"},
    {"layer_norm_mul", "layer_norm",
     "%m = reduce_mean(%x) {axes=[2]} %d = sub(%x, %m) %q = mul(%d, %d) %v = reduce_mean(%q) {axes=[2]} %e = add(%eps, "
     "%v) %r = sqrt(%e) %i = reciprocal(%r) %n = mul(%d, %i) %s = mul(%scale, %n) %y = add(%bias, %s)"},
    {"layer_norm_rsqrt", "layer_norm",
     "%m = reduce_mean(%x) {axes=[2]} %d = sub(%x, %m) %q = pow(%d, %two) %v = reduce_mean(%q) {axes=[2]} %e = add(%v, "
     "%eps) %r = pow(%e, %minus_half) %n = mul(%d, %r) %y = mul(%n, %scale)"},
    {"layer_norm_cast", "layer_norm",
     "%u = cast(%x) {to=f32} %m = reduce_mean(%u) {axes=[2]} %d = sub(%u, %m) %q = pow(%d, %two) %v = reduce_mean(%q) "
     "{axes=[2]} %e = add(%v, %eps) %r = sqrt(%e) %n = div(%d, %r) %y = cast(%n) {to=f16}",
     "f16[2,3,8]"},
    {"layer_norm_two_axes", "rms_norm",
     "%m = reduce_mean(%x) {axes=[1]} %d = sub(%x, %m) %q = pow(%d, %two) %v = reduce_mean(%q) {axes=[2]} %e = add(%v, "
     "%eps) %r = sqrt(%e) %y = div(%d, %r)",
     "f32[2,3,8]", 3},
    {"layer_norm_cube", "",
     "%m = reduce_mean(%x) {axes=[2]} %d = sub(%x, %m) %q = pow(%d, %three) %v = reduce_mean(%q) {axes=[2]} %e = "
     "add(%v, %eps) %r = sqrt(%e) %y = div(%d, %r)"},
    {"layer_norm_keras", "layer_norm",
     "%m = global_average_pool(%x) %d = sub(%x, %m) %q = mul(%d, %d) %v = global_average_pool(%q) %e = add(%v, %eps) "
     "%r "
     "= sqrt(%e) %i = reciprocal(%r) %g = mul(%i, %scale) %n = neg(%m) %h = mul(%n, %g) %s = add(%h, %bias) %z = "
     "mul(%x, %g) %y = add(%z, %s)"},
    {"layer_norm_tensorflow", "layer_norm",
     "%m = reduce_mean(%x) {axes=[2]} %d = sub(%x, %m) %q = mul(%d, %d) %v = reduce_mean(%q) {axes=[2]} %e = add(%v, "
     "%eps) %r = sqrt(%e) %i = reciprocal(%r) %g = mul(%scale, %i) %h = mul(%m, %g) %s = sub(%bias, %h) %z = mul(%x, "
     "%g) %y = add(%z, %s)"},
    {"layer_norm_two_gains", "",
     "%m = reduce_mean(%x) {axes=[2]} %d = sub(%x, %m) %q = mul(%d, %d) %v = reduce_mean(%q) {axes=[2]} %e = add(%v, "
     "%eps) %r = sqrt(%e) %i = reciprocal(%r) %g = mul(%scale, %i) %k = mul(%bias, %i) %h = mul(%m, %k) %s = "
     "sub(%bias, "
     "%h) %z = mul(%x, %g) %y = add(%z, %s)"},
    {"layer_norm_of_images", "",
     "%m = global_average_pool(%x) %d = sub(%x, %m) %q = mul(%d, %d) %v = global_average_pool(%q) %e = add(%v, %eps) "
     "%r "
     "= sqrt(%e) %y = div(%d, %r)",
     "f32[2,3,4,8]"},
    {"rms_norm_div", "rms_norm",
     "%q = pow(%x, %two) %v = reduce_mean(%q) {axes=[-1]} %e = add(%v, %eps) %r = sqrt(%e) %n = div(%x, %r) %y = "
     "mul(%n, %scale)"},
    {"rms_norm_llama", "rms_norm",
     "%q = pow(%x, %two) %v = reduce_mean(%q) {axes=[-1]} %e = add(%v, %eps) %r = sqrt(%e) %i = div(%one, %r) %n = "
     "mul(%x, %i) %y = mul(%scale, %n)"},
    {"rms_norm_rows", "",
     "%q = pow(%x, %two) %v = reduce_mean(%q) {axes=[1]} %e = add(%v, %eps) %r = sqrt(%e) %y = div(%x, %r)"},
    {"rms_norm_large_epsilon", "",
     "%q = pow(%x, %two) %v = reduce_mean(%q) {axes=[-1]} %e = add(%v, %two) %r = sqrt(%e) %y = div(%x, %r)"},
    {"l2_norm_pytorch", "l2_norm",
     "%n = reduce_l2(%x) {axes=[-1]} %c = clip(%n, %eps) %k = const dense<2,3,8> : i64[3] %e = expand(%c, %k) %y = "
     "div(%x, %e)"},
    {"l2_norm_max", "l2_norm",
     "%q = mul(%x, %x) %s = reduce_sum(%q) {axes=[-1]} %r = sqrt(%s) %c = max(%r, %eps) %y = div(%x, %c)"},
    {"l2_norm_columns", "", "%n = reduce_l2(%x) {axes=[1]} %c = max(%n, %eps) %y = div(%x, %c)"},
    {"softmax_safe", "softmax",
     "%m = reduce_max(%x) {axes=[-1]} %d = sub(%x, %m) %e = exp(%d) %s = reduce_sum(%e) {axes=[-1]} %y = div(%e, %s)"},
    {"softmax_plain", "softmax", "%e = exp(%x) %s = reduce_sum(%e) {axes=[2]} %i = reciprocal(%s) %y = mul(%e, %i)"},
    {"softmax_two_axes", "softmax",
     "%m = reduce_max(%x) {axes=[1]} %d = sub(%x, %m) %e = exp(%d) %s = reduce_sum(%e) {axes=[2]} %y = div(%e, %s)",
     "f32[2,3,8]", 3},
    {"mish_op", "mish", "%p = softplus(%x) %t = tanh(%p) %y = mul(%x, %t)"},
    {"mish_log", "mish", "%e = exp(%x) %a = add(%e, %one) %p = log(%a) %t = tanh(%p) %y = mul(%t, %x)"},
    {"mish_two", "", "%e = exp(%x) %a = add(%e, %two) %p = log(%a) %t = tanh(%p) %y = mul(%t, %x)"},
    {"quick_gelu", "quick_gelu", "%k = const splat<1.702> : f32[] %m = mul(%x, %k) %s = sigmoid(%m) %y = mul(%x, %s)"},
    {"rotary_embedding", "rotary_embedding",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %o = const dense<0> : i64[1] %h = const dense<4> : "
     "i64[1] %z = const dense<9223372036854775807> : i64[1] %i = const dense<-1> : i64[1] %a = slice(%x, %o, %h, %i) "
     "%b "
     "= slice(%x, %h, %z, %i) %n = neg(%b) %r = concat(%n, %a) {axis = -1} %c = mul(%x, %k) %s = mul(%r, %l) %y = "
     "add(%c, %s)"},
    {"rotary_embedding_split", "rotary_embedding",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %a, %b = split(%x) {axis = -1, num_outputs = 2} %n = "
     "neg(%b) %r = "
     "concat(%n, %a) {axis = 2} %c = mul(%x, %k) %s = mul(%r, %l) %y = add(%c, %s)"},
    {"rotary_embedding_of_two_halves", "rotary_embedding",
     "%k = const rand<1> : f32[3,4] %l = const rand<2> : f32[3,4] %a, %b = split(%x) {axis = -1, num_outputs = 2} %c = "
     "mul(%k, %a) %d = "
     "mul(%l, %b) %e = mul(%l, %a) %f = mul(%k, %b) %u = sub(%c, %d) %v = add(%e, %f) %y = concat(%u, %v) {axis = -1}"},
    {"rotary_embedding_of_two_slices", "rotary_embedding",
     "%k = const rand<1> : f32[3,4] %l = const rand<2> : f32[3,4] %o = const dense<0> : i64[1] %h = const dense<4> : "
     "i64[1] %z = const dense<8> : i64[1] %i = const dense<2> : i64[1] %a = slice(%x, %o, %h, %i) %b = slice(%x, %h, "
     "%z, %i) %c = mul(%a, %k) %d = mul(%b, %l) %e = mul(%b, %k) %f = mul(%a, %l) %u = sub(%c, %d) %v = add(%e, %f) "
     "%y = concat(%u, %v) {axis = 2}"},
    {"not_rotary_unequal_parts", "",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %a, %b = split(%x) {axis = -1, split = [3,5]} %n = "
     "neg(%b) %r = concat(%n, %a) {axis = 2} %c = mul(%x, %k) %s = mul(%r, %l) %y = add(%c, %s)"},
    {"not_rotary_the_halves_stay_where_they_are", "",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %a, %b = split(%x) {axis = -1, num_outputs = 2} %n = "
     "neg(%a) %r = "
     "concat(%n, %b) {axis = 2} %c = mul(%x, %k) %s = mul(%r, %l) %y = add(%c, %s)"},
    {"not_rotary_a_half_is_read_elsewhere", "",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %a, %b = split(%x) {axis = -1, num_outputs = 2} %n = "
     "neg(%b) %r = "
     "concat(%n, %a) {axis = 2} %c = mul(%x, %k) %s = mul(%r, %l) %t = add(%c, %s) %d = concat(%b, %b) {axis = 2} %y = "
     "sub(%t, %d)"},
    {"not_rotary_an_angle_is_another", "",
     "%k = const rand<1> : f32[3,4] %l = const rand<2> : f32[3,4] %m = const rand<3> : f32[3,4] %a, %b = split(%x) "
     "{axis = -1, num_outputs = 2} %c = mul(%k, %a) %d = mul(%l, %b) %e = mul(%m, %a) %f = mul(%k, %b) %u = sub(%c, "
     "%d) %v = add(%e, "
     "%f) %y = concat(%u, %v) {axis = -1}"},
    {"not_rotary_the_other_half_is_negative", "",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %o = const dense<0> : i64[1] %h = const dense<4> : "
     "i64[1] %z = const dense<8> : i64[1] %i = const dense<2> : i64[1] %a = slice(%x, %o, %h, %i) %b = slice(%x, %h, "
     "%z, %i) %n = neg(%a) %r = concat(%b, %n) {axis = -1} %c = mul(%x, %k) %s = mul(%r, %l) %y = add(%c, %s)"},
    {"not_rotary_a_third", "",
     "%k = const rand<1> : f32[3,8] %l = const rand<2> : f32[3,8] %o = const dense<0> : i64[1] %h = const dense<3> : "
     "i64[1] %z = const dense<8> : i64[1] %i = const dense<2> : i64[1] %a = slice(%x, %o, %h, %i) %b = slice(%x, %h, "
     "%z, %i) %n = neg(%b) %r = concat(%n, %a) {axis = -1} %c = mul(%x, %k) %s = mul(%r, %l) %y = add(%c, %s)"},
    {"channel_shuffle", "channel_shuffle",
     "%a = const dense<1,2,3,4,5> : i64[5] %b = const dense<1,6,4,5> : i64[4] %r = reshape(%x, %a) %t = transpose(%r) "
     "{perm=[0,2,1,3,4]} %y = reshape(%t, %b)",
     "f32[1,6,4,5]"},
    {"channels_not_shuffled", "",
     "%a = const dense<1,2,3,4,5> : i64[5] %b = const dense<1,6,4,5> : i64[4] %r = reshape(%x, %a) %t = transpose(%r) "
     "{perm=[0,1,2,4,3]} %y = reshape(%t, %b)",
     "f32[1,6,4,5]"},
    {"window_partition", "window_partition",
     "%a = const dense<1,2,4,3,4,5> : i64[6] %b = const dense<6,16,5> : i64[3] %r = reshape(%x, %a) %t = transpose(%r) "
     "{perm=[0,1,3,2,4,5]} %y = reshape(%t, %b)",
     "f32[1,8,12,5]"},
    {"window_reverse", "window_reverse",
     "%a = const dense<1,2,3,4,4,5> : i64[6] %b = const dense<1,8,12,5> : i64[4] %r = reshape(%x, %a) %t = "
     "transpose(%r) {perm=[0,1,3,2,4,5]} %y = reshape(%t, %b)",
     "f32[6,16,5]"},
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string text_of(const Case& c) {
  return std::string("graph (%x: ") + c.input +
         ") {\n%one = const splat<1> : f32[]\n%two = const splat<2> : f32[]\n%three = const splat<3> : f32[]\n"
         "%minus_half = const splat<-0.5> : f32[]\n%eps = const splat<0.00001> : f32[]\n"
         "%scale = const rand<1> : f32[8]\n%bias = const rand<2> : f32[8]\n" +
         c.nodes + "\nreturn %y }";
}

class Recomposition : public testing::TestWithParam<Case> {};

TEST_P(Recomposition, NamesWhatItIsAndKeepsItsValues) {
  const Graph original = parse_graph(text_of(GetParam()), ops());
  const Graph graph = prepared_text(text_of(GetParam()));
  verify(graph);
  std::vector<std::string> labels;
  for (const Node* n : graph.nodes())
    if (n->body) labels.push_back(n->label);
  if (*GetParam().label) {
    EXPECT_EQ(labels, std::vector<std::string>{GetParam().label}) << print(graph);
    EXPECT_EQ(graph.nodes().size(), GetParam().left) << print(graph);
  } else {
    EXPECT_TRUE(labels.empty()) << print(graph);
  }
  for (const double corner : {0.5, 1e30, -1e30, 1e-38, 0.0, double(INFINITY), -double(INFINITY), std::nan("")}) {
    std::vector<Tensor> inputs = random_inputs(original);
    inputs[0].set_real(inputs[0].elements() / 2, corner);
    const Tensor want = interpret(original, inputs)[0], got = interpret(graph, inputs)[0];
    EXPECT_TRUE(got.same_bits(want)) << corner;
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, Recomposition, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Recomposition, RefusesAConstantByItsValue) {
  RewriteReport report;
  prepared_text(
      "graph (%x: f32[2,8]) { %k = const splat<1.4> : f32[] %one = const splat<1> : f32[] %half = const splat<0.5> : "
      "f32[]"
      " %d = div(%x, %k) %e = erf(%d) %a = add(%e, %one) %m = mul(%x, %a) %y = mul(%m, %half) return %y }",
      &report);
  std::string message;
  for (const RewriteNote& n : report.notes)
    if (n.reason.code == "constant_mismatch") message += n.reason.message + "\n";
  EXPECT_NE(message.find("expected constant 1.41421"), std::string::npos) << message;
  EXPECT_NE(message.find("found constant 1.4"), std::string::npos) << message;
}

}  // namespace
}  // namespace opfuse
