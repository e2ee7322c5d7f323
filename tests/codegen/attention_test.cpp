// Attention in one kernel against the region interpreter: lengths, head sizes, masks, layouts of the operands, several
// blocks of keys, open dimensions.
#include <cmath>
#include <limits>

#include "codegen/attention_regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/attention/attention_codes.hpp"
#include "kernel/attention_view.hpp"
#include "target/missing_features.hpp"

namespace opfuse::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Case attention(const std::string& name, const Sizes& sizes, std::vector<SymbolValues> bindings = {{}}) {
  Case c;
  c.name = name;
  c.region = attention_region(sizes);
  c.bindings = std::move(bindings);
  return c;
}

/// Row r sees keys up to r + shift.
Tensor causal(int rows, int keys, int shift) {
  Tensor mask(DType::boolean, {rows, keys});
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < keys; ++k) mask.set_integer(r * keys + k, k <= r + shift);
  return mask;
}

/// All rows see the keys [first, last).
Tensor padding(int keys, int first, int last) {
  Tensor mask(DType::f32, {1, keys});
  for (int k = 0; k < keys; ++k) mask.set_real(k, k >= first && k < last ? 0 : -3.4028234e38);
  return mask;
}

Case with_mask(Case c, Tensor mask) {
  c.operands.resize(5);
  c.operands[4] = std::move(mask);
  return c;
}

const std::vector<SymbolValues> kLengths = {{{"b", 1}, {"m", 1}, {"n", 1}},    {{"b", 2}, {"m", 7}, {"n", 7}},
                                            {{"b", 3}, {"m", 49}, {"n", 49}},  {{"b", 1}, {"m", 30}, {"n", 197}},
                                            {{"b", 1}, {"m", 5}, {"n", 1900}}, {{"b", 2}, {"m", 3}, {"n", 0}},
                                            {{"b", 0}, {"m", 5}, {"n", 5}},    {{"b", 1}, {"m", 300}, {"n", 3}}};

Sizes other_weights(const std::string& weights, Sizes s = sized(5, 7, 4)) {
  s.weights = weights;
  return s;
}

/// To codes of u8 and back.
std::string rounded_weights(double step) {
  return fmt::format(
      "t0 = div(exp(sub(r1, s0)), s1); mul(cast<f32>(cast<u8>(min(max(round_even(div(t0, {0})), 0), 255))), {0})",
      step);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int depth : {1, 3, 16, 64, 80, 128})
    for (int length : {1, 17, 49})
      all.push_back(attention(fmt::format("depth{}_length{}", depth, length), sized(length, length, depth)));
  all.push_back(attention("vit", sized(197, 197, 64, 64, "3")));
  all.push_back(attention("one_query", sized(1, 333, 64)));
  all.push_back(attention("one_key", sized(50, 1, 16)));
  all.push_back(attention("cross", sized(13, 31, 20, 36)));
  all.push_back(attention("many_matrices", sized(9, 9, 8, 8, "40")));
  all.push_back(attention("heads_inside", with_heads_inside(sized(37, 37, 24, 24, "3"))));
  all.push_back(attention("heads_inside_odd", with_heads_inside(sized(6, 11, 5, 7, "3"))));
  all.push_back(attention("keys_transposed", with_keys_transposed(sized(20, 45, 17))));
  all.push_back(attention("prologues", with_prologues(sized(19, 23, 20, 12))));
  all.push_back(attention("bias", masked(sized(21, 33, 16), "f32[2,21,33]", "a0, a1, a2", "add(mul(s0, 0.5), r2)")));
  all.push_back(attention("bias_per_key", masked(sized(21, 33, 16), "f32[33]", "a2", "add(s0, r2)")));
  all.push_back(attention("bias_per_row", masked(sized(21, 33, 16), "f32[21,1]", "a1, 0", "add(s0, r2)")));
  all.push_back(
      attention("where", masked(sized(21, 33, 16), "bool[21,33]", "a1, a2", "select(r2:bool, s0, -3.4028234e38)")));
  all.push_back(
      attention("causal_by_coordinates", masked(sized(29, 29, 16), "", "", "select(le(i2, i1), s0, -3.4028234e38)")));
  all.push_back(attention("long_rows", sized(40, 2100, 64, 64, "1")));
  all.push_back(
      attention("long_rows_bias", masked(sized(11, 1500, 80), "f32[11,1500]", "a1, a2", "add(mul(s0, 0.125), r2)")));
  all.push_back(attention("open_lengths", open(32), kLengths));
  all.push_back(attention("open_lengths_masked", masked(open(16), "f32[m,n]", "a1, a2", "add(s0, r2)"), kLengths));
  const auto choose = [](Sizes s) {
    return masked(s, fmt::format("bool[{},{}]", s.rows, s.keys), "a1, a2", "select(r2:bool, s0, -3.4028234e38)");
  };
  const auto add = [](Sizes s) { return masked(s, fmt::format("f32[1,{}]", s.keys), "0, a2", "add(s0, r2)"); };
  for (const auto& [rows, keys] : {std::pair{50, 50}, {11, 900}}) {
    const std::string name = fmt::format("{}x{}", rows, keys);
    const Sizes plain = sized(rows, keys, 150, 16, "1");
    all.push_back(with_mask(attention("causal_" + name, choose(plain)), causal(rows, keys, keys - rows)));
    all.push_back(with_mask(attention("causal_without_first_" + name, choose(plain)), causal(rows, keys, -3)));
    all.push_back(with_mask(attention("padded_behind_" + name, add(plain)), padding(keys, 0, keys / 3)));
    all.push_back(with_mask(attention("padded_before_" + name, add(plain)), padding(keys, keys / 2, keys)));
    all.push_back(with_mask(attention("all_padded_" + name, add(plain)), padding(keys, 0, 0)));
  }
  const Sizes lowest = masked(sized(10, 37, 16), "f32[10,37]", "a1, a2", "add(s0, r2)");
  all.push_back(with_mask(attention("rows_without_keys_lowest", lowest), holes(10, 37, -3.4028234e38, 0)));
  all.push_back(with_mask(attention("rows_without_keys_undefined", lowest), holes(10, 37, -kInfinity, 0)));
  all.push_back(with_mask(attention("rows_without_keys_zeroed", guarded(lowest)), holes(10, 37, -kInfinity, 0)));
  all.push_back(
      with_mask(attention("rows_without_keys_zero", zero_without_keys(lowest)), holes(10, 37, -kInfinity, 0)));
  Tensor undefined = holes(10, 37, -kInfinity, 0);
  undefined.set_real(3 * 37 + 5, std::nan(""));
  all.push_back(with_mask(attention("nan_beside_rows_without_keys", zero_without_keys(lowest)), undefined));
  for (const auto& [rows, keys, depth] : {std::tuple{10, 37, 16}, {11, 1500, 80}, {1, 37, 16}}) {
    Tensor behind = padding(keys, 0, 3);  // of every row, the last key is NaN by its mask
    behind.set_real(keys - 1, std::nan(""));
    all.push_back(with_mask(
        attention(fmt::format("nan_behind_needed_keys_{}x{}", rows, keys),
                  masked(sized(rows, keys, depth), fmt::format("f32[1,{}]", keys), "0, a2", "add(mul(s0, 0.125), r2)")),
        behind));
    Tensor of_row = holes(rows, keys, -kInfinity, 0);
    for (int64_t i = 5; i < of_row.elements(); ++i) of_row.set_real(i, i % keys < 5 ? 0 : -kInfinity);
    of_row.set_real((rows - 1) * keys + keys - 2, std::nan(""));
    all.push_back(with_mask(attention(fmt::format("nan_behind_two_masks_{}x{}", rows, keys),
                                      masked(sized(rows, keys, depth), fmt::format("f32[1,{}]", keys), "0, a2",
                                             "add(select(lt(i2, 3:i64), s0, -inf), r2)")),
                            behind));
    all.push_back(with_mask(
        attention(fmt::format("nan_in_one_row_{}x{}", rows, keys),
                  masked(sized(rows, keys, depth), fmt::format("f32[{},{}]", rows, keys), "a1, a2", "add(s0, r2)")),
        of_row));
  }
  const Sizes long_rows = masked(sized(11, 1500, 80), "f32[11,1500]", "a1, a2", "add(mul(s0, 0.125), r2)");
  all.push_back(with_mask(attention("long_rows_without_keys_zero", zero_without_keys(long_rows)),
                          holes(11, 1500, -kInfinity, 0)));
  all.push_back(attention("open_lengths_zero", zero_without_keys(open(16)), kLengths));
  for (const auto& [rows, keys] : {std::pair{20, 33}, {5, 7}, {40, 197}}) {
    const std::string name = fmt::format("{}x{}", rows, keys);
    const Sizes plain = sized(rows, keys, 16);
    all.push_back(attention("weights_doubled_" + name, other_weights("mul(div(exp(sub(r1, s0)), s1), 2)", plain)));
    all.push_back(attention("weights_squared_" + name,
                            other_weights("t0 = div(exp(sub(r1, s0)), s1); sub(mul(t0, t0), 0.25)", plain)));
    Case coarse = attention("weights_rounded_" + name, other_weights(rounded_weights(1.0 / 8), plain));
    coarse.tolerance = 0.2;  // a weight on a tie
    all.push_back(coarse);
  }
  const Sizes few = masked(sized(10, 37, 16), "f32[10,37]", "a1, a2", "add(s0, r2)");
  all.push_back(with_mask(attention("changed_weights_of_rows_without_keys",
                                    other_weights("t0 = div(exp(sub(r1, s0)), s1); select(is_nan(t0), 1, t0)", few)),
                          holes(10, 37, -kInfinity, 0)));
  all.push_back(
      with_mask(attention("changed_zeros_of_rows_without_keys",
                          other_weights("add(select(eq(s0, -inf), 0, div(exp(sub(r1, s0)), s1)), 0.125)", few)),
                holes(10, 37, -kInfinity, 0)));
  Case wide = attention("wide_scores", sized(12, 70, 16));
  wide.low = -12, wide.high = 12;
  all.push_back(wide);
  return all;
}

OPFUSE_CASES(Attention, cases());

/// A dequantised code of read `r`.
std::string number_of_code(const std::string& type, int read, int zero, double scale) {
  return fmt::format("mul(cast<f32>(sub(cast<i32>(r{}:{}), {}:i32)), {})", read, type, zero, scale);
}

struct Coded {
  std::string name;
  Sizes sizes;
  std::string query = "u8", key = "u8", value = "u8", weight = "u8";
  int zeros[4] = {117, 131, 90, 0};  ///< of queries, keys, values, weights
};

Case coded(const Coded& c) {
  Sizes s = c.sizes;
  s.types[0] = c.query, s.types[1] = c.key, s.types[2] = c.value;
  s.query = number_of_code(c.query, 0, c.zeros[0], 0.03125);
  s.key = number_of_code(c.key, 1, c.zeros[1], 0.0625);
  s.value = number_of_code(c.value, 1, c.zeros[2], 0.125);
  const auto [low, high] = c.weight == "u8" ? std::pair(0, 255) : std::pair(-128, 127);
  s.weights = fmt::format(
      "t0 = div(exp(sub(r1, s0)), s1); mul(cast<f32>(sub(cast<i32>(cast<{0}>(min(max(add(round_even(div(t0, "
      "0.0078125)), "
      "{1}), {2}), {3}))), {1}:i32)), 0.0078125)",
      c.weight, c.zeros[3], low, high);
  s.score = "mul(s0, 0.0625)";
  Case made;
  made.name = c.name;
  made.region = attention_region(s);
  made.tolerance = 0.01;  // a weight on a tie is off by 1/128
  return made;
}

const std::vector<Coded> kCoded = {
    {"bert", sized(32, 32, 64)},
    {"odd", sized(33, 31, 20, 12)},
    {"one_of_each", sized(1, 1, 4, 1)},
    {"few_columns", sized(5, 70, 8, 3)},
    {"wide_heads", sized(9, 50, 128, 100)},
    {"depth_of_words", sized(9, 21, 36, 40)},
    {"heads_inside", with_heads_inside(sized(37, 37, 24, 24, "3"))},
    {"keys_transposed", with_keys_transposed(sized(20, 45, 12))},
    {"long_rows", sized(7, 700, 16, 16, "1")},
    {"signed", sized(19, 23, 16), "i8", "i8", "i8", "i8", {-3, 5, -128, -128}},
    {"signed_keys", sized(19, 23, 16), "u8", "i8", "i8", "u8", {128, 0, 0, 0}},
    {"ends", sized(19, 23, 16), "u8", "u8", "u8", "u8", {0, 255, 0, 5}},
    {"weights_with_zero", sized(20, 37, 16), "u8", "u8", "u8", "u8", {255, 0, 255, 77}},
};

/// 255 * 255 times so many may leave i32.
TEST(AttentionOfCodes, MultipliesFloatsWhereSumsMayLeaveI32) {
  const TargetInfo target = parse_target("cpu:avx512-vnni");
  const auto multiplies = [&](const Sizes& sizes) {
    return multiplies_codes(parse_region(coded({"", sizes}).region), target);
  };
  EXPECT_TRUE(multiplies(sized(1, 33024, 4, 1, "1")));
  EXPECT_FALSE(multiplies(sized(1, 33028, 4, 1, "1")));
  EXPECT_TRUE(multiplies(sized(1, 2, 33024, 4, "1")));
  EXPECT_FALSE(multiplies(sized(1, 2, 33028, 4, "1")));
  EXPECT_FALSE(multiplies(sized(1, 2, 6, 4, "1"))) << "words of four";
}

TargetInfo with_bytes() { return parse_target("cpu:avx512-vnni"); }

class CodedAttention : public testing::TestWithParam<Coded> {};

TEST_P(CodedAttention, IsTheSameByProductsOfBytes) {
  const TargetInfo target = with_bytes();
  if (!missing_features(target.features).empty()) GTEST_SKIP() << "no vpdpbusd";
  check_case(coded(GetParam()), target);
}

TEST_P(CodedAttention, MultipliesBytes) {
  CodegenOptions options;
  options.emit_assembly = true;
  const TargetInfo target = with_bytes();
  const std::string text = generate({spec_of(coded(GetParam()), target)}, target, options).kernels[0].assembly;
  EXPECT_NE(text.find("vpdpbusd"), std::string::npos) << text;
  EXPECT_EQ(text.find("vfmadd231ps\t("), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(Regions, CodedAttention, testing::ValuesIn(kCoded),
                         [](const auto& info) { return info.param.name; });
OPFUSE_CASES(AttentionOfCodes, [] {
  std::vector<Case> all;
  for (const Coded& c : kCoded) all.push_back(coded(c));
  return all;
}());

/// What is not attention has no kernel of three stages, and the reason says which part is different.
struct Refused {
  const char* name;
  Sizes sizes;
  const char* reason;
};

void PrintTo(const Refused& r, std::ostream* out) { *out << r.name; }

Sizes mixed_query() {
  Sizes s = sized(5, 7, 4);
  s.query = "mul(r0, r1)";
  return s;
}

const Refused kRefused[] = {
    {"weights_not_divided", other_weights("exp(sub(r1, s0))"), "the weights are not exponentials over their sum"},
    {"log_softmax", other_weights("sub(sub(r1, s0), log(s1))"), "the weights are not exponentials over their sum"},
    {"weights_times_scores", other_weights("mul(div(exp(sub(r1, s0)), s1), r1)"),
     "the weights meet other operands behind the softmax"},
    {"changed_weights_of_long_rows", other_weights("mul(div(exp(sub(r1, s0)), s1), 2)", sized(64, 9000, 64)),
     "the weights are changed behind the softmax, and all keys of a row do not fit in one block"},
    {"changed_weights_of_open_rows", other_weights("mul(div(exp(sub(r1, s0)), s1), 2)", open(16)),
     "the weights are changed behind the softmax, and all keys of a row do not fit in one block"},
    {"empty_becomes_one", other_weights("select(eq(s0, -inf), 1, div(exp(sub(r1, s0)), s1))"),
     "rows without keys become no zeros"},
    {"zero_where_the_sum_is_one", other_weights("select(eq(s1, 1), 0, div(exp(sub(r1, s0)), s1))"),
     "the weights are changed behind the softmax"},
    {"zero_above_a_limit", other_weights("select(eq(s0, 8), 0, div(exp(sub(r1, s0)), s1))"),
     "the weights are changed behind the softmax"},
    {"factor_of_row_and_key", mixed_query(), "a factor of the scores depends on both row and key"},
};

class NoAttention : public testing::TestWithParam<Refused> {};

TEST_P(NoAttention, IsRefusedWithAReason) {
  const Region region = parse_region(attention_region(GetParam().sizes));
  for (const TargetInfo& target : runnable_targets()) {
    const auto why = cannot_generate(region, target);
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(*why, std::string("attention: ") + GetParam().reason);
  }
}
INSTANTIATE_TEST_SUITE_P(Regions, NoAttention, testing::ValuesIn(kRefused),
                         [](const auto& info) { return std::string(info.param.name); });

/// Masks are seen where they are the last thing that happens to a score.
TEST(AttentionView, KnowsWhichScoresMasksLeave) {
  const auto needed = [](const std::string& type, const std::string& score) {
    const Region region = parse_region(attention_region(masked(sized(5, 7, 4), type, "a1, a2", score)));
    const auto view = std::get<AttentionView>(view_attention(region));
    return view.needed ? view.needed.text() : std::string();
  };
  EXPECT_EQ(needed("bool[5,7]", "select(r2:bool, s0, -3.4e38)"), "r2:bool");
  EXPECT_EQ(needed("bool[5,7]", "select(r2:bool, -inf, s0)"), "logical_not(r2:bool)");
  EXPECT_EQ(needed("f32[5,7]", "add(mul(s0, 0.125), r2)"), "logical_not(le(r2, -1e+30))");
  EXPECT_EQ(needed("f32[5,7]", "add(add(s0, r2), mul(r2, 2))"), "logical_not(le(add(r2, mul(r2, 2)), -1e+30))");
  EXPECT_EQ(needed("f32[5,7]", "add(select(le(i2, i1), s0, -inf), r2)"),
            "logical_not(le(add(select(le(i2, i1), 0, -inf), r2), -1e+30))");
  EXPECT_EQ(needed("f32[5,7]", "select(le(i2, i1), add(s0, r2), -inf)"),
            "logical_and(le(i2, i1), logical_not(le(r2, -1e+30)))");
  EXPECT_EQ(needed("f32[5,7]", "mul(s0, 0.125)"), "");
  EXPECT_EQ(needed("bool[5,7]", "select(r2:bool, s0, -10000)"), "") << "a row may have no larger score";
  EXPECT_EQ(needed("bool[5,7]", "mul(select(r2:bool, s0, -3.4e38), 0.125)"), "");
  EXPECT_EQ(needed("f32[5,7]", "mul(add(s0, r2), 0.125)"), "");
}

TEST(AttentionSchedule, LongAndOpenRowsComeInBlocks) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto schedule = [&](const Sizes& sizes) { return spec_of(attention("", sizes), target).schedule; };
  EXPECT_EQ(schedule(sized(197, 197, 64)).get("group", 0), 0);
  EXPECT_EQ(schedule(sized(197, 197, 64)).get("keys", 0), 197);
  EXPECT_GT(schedule(sized(64, 4096, 64)).get("group", 0), 0);
  EXPECT_LT(schedule(sized(64, 4096, 64)).get("keys", 0), 4096);
  EXPECT_GT(schedule(open(64)).get("group", 0), 0);
}

}  // namespace
}  // namespace opfuse::test
