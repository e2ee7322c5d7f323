// Quantised models: each group on what the groups before it stored, one step off on ties only, outputs bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cpu/attention/attention_codes.hpp"
#include "cpu/contraction/codes.hpp"
#include "driver/proof_case.hpp"
#include "proof/compare.hpp"
#include "proof/requantised.hpp"
#include "target/missing_features.hpp"

namespace opfuse {
namespace {

constexpr const char* kNet = R"(graph (%x: f32[2,3,16,16]) {
  %s = const splat<0.02> : f32[] %z = const splat<3> : i8[] %t = const splat<0.03> : f32[]
  %w = const rand<1> : f32[16,3,3,3] %v = const rand<2> : f32[8,16,1,1]
  %xq = quantize_linear(%x, %s, %z) %xd = dequantize_linear(%xq, %s, %z)
  %c = conv(%xd, %w) {pads = [1,1,1,1]} %r = relu(%c) %rq = quantize_linear(%r, %t, %z) %rd = dequantize_linear(%rq, %t, %z)
  %d = conv(%rd, %v) %e = add(%d, %d) %eq = quantize_linear(%e, %t, %z) %y = dequantize_linear(%eq, %t, %z)
  return %y })";

TEST(QuantisedProof, ProvesAModelWhoseRoundingsMeetTies) {
  const ProofCase built(kNet);
  int64_t ties = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(built.fused, {.seed = seed});
    const Comparison c = compare_model(built.fused, built.fused, built.program, built.executable, inputs, inputs, {});
    EXPECT_TRUE(c.ok()) << seed;
    EXPECT_TRUE(c.outputs[0].same_as_groups);
    EXPECT_EQ(c.groups.size(), built.program.launches.size());
    for (const GroupComparison& g : c.groups) ties += g.ties;
  }
  EXPECT_LT(ties, 100);
}

/// A tie explains a step from the graph, but not one from the law.
TEST(QuantisedProof, RequantisedGroupsHaveTheBitsOfTheirLaw) {
  const ProofCase built(R"(graph (%x: f32[1,16,9,9]) {
    %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %t = const splat<0.03> : f32[]
    %c = const rand<1> : i8[24,16,3,3] %h = const splat<0.01> : f32[] %w = dequantize_linear(%c, %h)
    %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %v = conv(%d, %w) {pads = [1,1,1,1]} %r = relu(%v) %y = quantize_linear(%r, %t, %z) return %y })");
  const auto lawful = [](const std::vector<GroupComparison>& groups) {
    std::vector<int64_t> off;
    for (const GroupComparison& g : groups)
      if (g.off_law) off.push_back(*g.off_law);
    return off;
  };
  EXPECT_EQ(lawful(built.compare()), std::vector<int64_t>{0});
  for (size_t i = 0; i < built.program.launches.size(); ++i) {
    if (!is_requantised(built.program.launches[i].region)) continue;
    const Executable wrong = built.with_wrong(i, [](Launch& launch) {
      StageOutput& output = launch.region.stages.back().outputs.back();
      output.value = Expr::make(ExprOp::max, {output.value, Expr::integer(output.dtype, 4)});
    });
    const GroupComparison group = built.compare_with(wrong)[i];
    EXPECT_GT(group.off_law.value_or(0), 0);
    EXPECT_FALSE(group.ok);
  }
}

/// A dimension without taps that leaves the image: its rows are padding of another code than 0, and no tap reads them.
TEST(QuantisedProof, RowsOfPaddingAloneAreZero) {
  const ProofCase built(R"(graph (%x: f32[1,16,4,9]) {
    %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %t = const splat<0.03> : f32[]
    %c = const rand<1> : i8[24,16,1,3] %h = const splat<0.01> : f32[] %w = dequantize_linear(%c, %h)
    %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %v = conv(%d, %w) {pads = [0,1,2,1]} %r = relu(%v) %y = quantize_linear(%r, %t, %z) return %y })");
  for (const GroupComparison& group : built.compare()) EXPECT_TRUE(group.ok) << group.name;
}

/// No launch makes what it reads.
TEST(QuantisedProof, AMeanOfConstantCodesCompiles) {
  const ProofCase built(
      R"(graph () { %c = const dense<47,14> : i8[1,1,1,2] %s = const splat<0.5> : f32[1] %z = const splat<0> : i8[1]
    %d = dequantize_linear(%c, %s, %z) %y = global_average_pool(%d) return %y })");
  for (const GroupComparison& group : built.compare()) EXPECT_TRUE(group.ok) << group.name;
}

/// A few of 123,000 sums of codes are 0; with the scales, in doubles, a rest of 1e-18 stays.
TEST(QuantisedProof, SumsThatCancelAreZero) {
  const ProofCase built(R"(graph (%x: f32[1,32,64,64]) {
    %s = const splat<0.011> : f32[] %z = const splat<0> : i8[] %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %v = const rand<1> : f32[32,1,3,3] %h = const splat<0.0087> : f32[] %i = const splat<0> : i8[]
    %c = quantize_linear(%v, %h, %i) %w = dequantize_linear(%c, %h, %i)
    %y = conv(%d, %w) {group = 32} return %y })");
  for (const GroupComparison& group : built.compare()) EXPECT_TRUE(group.ok) << group.name << " " << group.real.got;
  std::vector<bool> planted;
  for (size_t i = 0; i < built.program.launches.size(); ++i) {
    const Executable wrong = built.with_wrong(i, [](Launch& launch) {
      StageOutput& output = launch.region.stages.back().outputs.back();
      if (is_float(output.dtype))
        output.value = Expr::make(ExprOp::add, {output.value, Expr::constant(output.dtype, 1e-12)});
    });
    planted.push_back(!built.compare_with(wrong)[i].ok);
  }
  EXPECT_TRUE(planted.back());  // what is added to a sum of 0 is not a rest
}

/// Queries of u8, keys of i8, scores and weights rounded: three products that store codes, and one launch.
constexpr const char* kAttention = R"(graph (%x: f32[2,33,64]) {
  %fq = const rand<1> : f32[64,64] %fk = const rand<2> : f32[64,64] %fv = const rand<3> : f32[64,64] %h = const splat<0.008> : f32[] %i = const splat<0> : i8[]
  %cq = quantize_linear(%fq, %h, %i) %ck = quantize_linear(%fk, %h, %i) %cv = quantize_linear(%fv, %h, %i)
  %wq = dequantize_linear(%cq, %h, %i) %wk = dequantize_linear(%ck, %h, %i) %wv = dequantize_linear(%cv, %h, %i)
  %s = const splat<0.05> : f32[] %z = const splat<117> : u8[] %s1 = const splat<0.06> : f32[] %z1 = const splat<-7> : i8[]
  %s2 = const splat<0.0039> : f32[] %z2 = const splat<0> : u8[] %s3 = const splat<0.3> : f32[] %z3 = const splat<128> : u8[]
  %heads = const dense<2,33,4,16> : i64[4] %xq = quantize_linear(%x, %s, %z) %xd = dequantize_linear(%xq, %s, %z)
  %qm = matmul(%xd, %wq) %km = matmul(%xd, %wk) %vm = matmul(%xd, %wv)
  %qr = reshape(%qm, %heads) %qt = transpose(%qr) {perm = [0,2,1,3]} %qq = quantize_linear(%qt, %s, %z) %q = dequantize_linear(%qq, %s, %z)
  %kr = reshape(%km, %heads) %kt = transpose(%kr) {perm = [0,2,3,1]} %kq = quantize_linear(%kt, %s1, %z1) %k = dequantize_linear(%kq, %s1, %z1)
  %vr = reshape(%vm, %heads) %vt = transpose(%vr) {perm = [0,2,1,3]} %vq = quantize_linear(%vt, %s, %z) %v = dequantize_linear(%vq, %s, %z)
  %a = matmul(%q, %k) %aq = quantize_linear(%a, %s3, %z3) %ad = dequantize_linear(%aq, %s3, %z3) %p = softmax(%ad) {axis=3}
  %pq = quantize_linear(%p, %s2, %z2) %pd = dequantize_linear(%pq, %s2, %z2) %c = matmul(%pd, %v) return %c })";

TEST(QuantisedProof, AttentionOfCodesIsOneLaunch) {
  for (const std::string& name : std::vector<std::string>{"cpu:avx512-vnni", "cpu:avx512", "cpu:avx2"}) {
    const TargetInfo target = parse_target(name);
    if (!missing_features(target.features).empty()) continue;
    const ProofCase built(kAttention, name);
    const auto& launches = built.program.launches;
    size_t attentions = 0, floats = 0;
    for (const Launch& launch : launches) {
      attentions += resembles_attention(launch.region);
      for (const Param& param : launch.region.params)
        floats += param.role == ParamRole::output && is_float(param.type.dtype);
    }
    EXPECT_EQ(attentions, 1u) << print(built.program);
    EXPECT_EQ(floats, 1u) << "the result: " << print(built.program);
    EXPECT_EQ(std::any_of(launches.begin(), launches.end(),
                          [&](const Launch& launch) { return multiplies_codes(launch.region, target); }),
              target.has("avx512vnni"));
    for (uint64_t seed = 1; seed <= 3; ++seed)
      for (const GroupComparison& group : built.compare(seed)) EXPECT_TRUE(group.ok) << name << " " << group.name;
  }
}

/// Nodes stand where they were written: what makes keys and values in front of what makes queries, and a pair that a
/// result and another pair read.
TEST(QuantisedProof, InWhateverOrderTheModelHasItsNodes) {
  const std::string texts[] = {R"(graph (%x: f32[1,5,8], %w: f32[8,8], %v: f32[1,2,5,4]) {
    %s = const splat<0.05> : f32[] %z = const splat<117> : u8[] %h = const dense<1,5,2,4> : i64[4]
    %m = matmul(%x, %w) %r = reshape(%m, %h)
    %k2 = transpose(%r) {perm=[0,2,3,1]} %kq = quantize_linear(%k2, %s, %z) %k = dequantize_linear(%kq, %s, %z)
    %q2 = transpose(%r) {perm=[0,2,1,3]} %qq = quantize_linear(%q2, %s, %z) %q = dequantize_linear(%qq, %s, %z)
    %a = matmul(%q, %k) %p = softmax(%a) %y = matmul(%p, %v) return %y })",
                               R"(graph (%x: f32[1,3,4]) {
    %s = const splat<0.01> : f32[] %z = const splat<0> : i8[]
    %cv = const rand<1> : i8[4,4] %ck = const rand<2> : i8[4,4] %cq = const rand<3> : i8[4,4]
    %wv = dequantize_linear(%cv, %s, %z) %v = matmul(%x, %wv)
    %wk = dequantize_linear(%ck, %s, %z) %km = matmul(%x, %wk) %k = transpose(%km) {perm=[0,2,1]}
    %wq = dequantize_linear(%cq, %s, %z) %q = matmul(%x, %wq)
    %a = matmul(%q, %k) %p = softmax(%a) %y = matmul(%p, %v) return %y })",
                               R"(graph (%a: f32[3,4], %b: f32[4,3]) {
    %s = const splat<0.02> : f32[] %z = const splat<127> : i8[] %q = quantize_linear(%a, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %q2 = quantize_linear(%d, %s, %z) %d2 = dequantize_linear(%q2, %s, %z) %y = matmul(%d2, %b) return %d, %y })"};
  for (const std::string& text : texts)
    for (const GroupComparison& group : ProofCase(text).compare()) EXPECT_TRUE(group.ok) << group.name << "\n" << text;
}

/// Addends that cancel to all but a softmax's weights of e^-30: the region's doubles have a rest of their own.
TEST(QuantisedProof, SumsBehindAnAttentionMayCancel) {
  const ProofCase built(
      R"(graph (%q: f32[2,1,17,33], %kc: i8[2,17,1,33], %vf: f32[2,1,17,33], %w: f32[2,1,17,17], %xv: f32[2,1,17,33], %u: f32[2,1,17,33]) {
    %s = const splat<0.046875> : f32[] %z = const splat<127> : i8[] %t = const splat<0.25> : f32[] %n = const splat<0> : i8[]
    %k1 = dequantize_linear(%kc, %s, %z) %k = transpose(%k1) {perm=[0,2,3,1]} %vq = quantize_linear(%vf, %s, %z) %v = dequantize_linear(%vq, %s, %z)
    %a = matmul(%q, %k) %aq = quantize_linear(%a, %t, %n) %ad = dequantize_linear(%aq, %t, %n) %p = softmax(%ad) %y = matmul(%p, %v)
    %y2 = matmul(%w, %xv) %r1 = add(%y, %y2) %r = add(%r1, %u) return %r })");
  CompareOptions options;
  for (options.seed = 1; options.seed <= 14; ++options.seed)
    for (const GroupComparison& group :
         compare_groups(built.fused, built.program, built.executable, random_inputs(built.fused), options))
      EXPECT_TRUE(group.ok) << group.name << " of seed " << options.seed;
}

/// 255 sum w is 518,160: the zero point leaves 20 of the bias, and codes near 0 add next to nothing, but the graph
/// rounds the scale of all of the bias.
TEST(QuantisedProof, ZeroPointsMayHideTheBias) {
  const ProofCase built(R"(graph (%x: f32[1,16,8,8]) {
    %s = const splat<0.061162> : f32[] %z = const splat<255> : u8[] %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %c = const splat<127> : i8[8,16,1,1] %h = const splat<0.0005> : f32[] %w = dequantize_linear(%c, %h)
    %k = const splat<518180> : i32[8] %g = const splat<0.000030580999> : f32[] %b = dequantize_linear(%k, %g)
    %v = conv(%d, %w, %b) %y = relu(%v) return %y })");
  std::vector<Tensor> inputs = random_inputs(built.fused);
  for (int64_t i = 0; i < inputs[0].elements(); ++i) inputs[0].set_real(i, (i % 64 == 0 ? -254 : -255) * 0.061162);
  const std::vector<GroupComparison> groups = compare_groups(built.fused, built.program, built.executable, inputs, {});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(sums_codes(built.program.launches[1].region));
  for (const GroupComparison& group : groups) EXPECT_TRUE(group.ok) << group.name;
}

TEST(QuantisedProof, AStepThatNoTieExplainsFails) {
  ProofCase built(kNet);
  for (size_t i = 0; i < built.program.launches.size(); ++i) {
    const Executable wrong = built.with_wrong(i, [](Launch& launch) {
      StageOutput& output = launch.region.stages.back().outputs.back();
      output.value = is_float(output.dtype)
                         ? Expr::make(ExprOp::add, {output.value, Expr::constant(output.dtype, 0.03)})
                         : Expr::make(ExprOp::bit_xor, {output.value, Expr::integer(output.dtype, 1)});
    });
    EXPECT_FALSE(built.compare_with(wrong)[i].ok) << built.program.launches[i].name;
  }
}

/// GELU as ONNX Runtime's quantiser leaves it: six roundings, and 1 + erf lies on a tie wherever erf's step is odd.
TEST(QuantisedProof, ProvesAChainOfSixRoundings) {
  const ProofCase built(R"(graph (%x: f32[16,32]) {
    %w = const rand<1> : f32[32,64] %a = const splat<0.03> : f32[] %b = const splat<0.0212> : f32[]
    %e = const splat<0.007874016> : f32[] %f = const splat<0.015748031> : f32[] %z = const splat<0> : i8[]
    %one = const splat<1> : f32[] %half = const splat<0.5> : f32[] %root = const splat<1.4142135> : f32[] %k = const rand<2> : f32[64]
    %m = matmul(%x, %w) %mq = quantize_linear(%m, %a, %z) %md = dequantize_linear(%mq, %a, %z)
    %s = add(%md, %k) %sq = quantize_linear(%s, %a, %z) %sd = dequantize_linear(%sq, %a, %z)
    %d = div(%sd, %root) %r = erf(%d) %rq = quantize_linear(%r, %e, %z) %rd = dequantize_linear(%rq, %e, %z)
    %p = add(%rd, %one) %pq = quantize_linear(%p, %f, %z) %pd = dequantize_linear(%pq, %f, %z)
    %u = mul(%sd, %pd) %uq = quantize_linear(%u, %a, %z) %ud = dequantize_linear(%uq, %a, %z)
    %v = mul(%ud, %half) %vq = quantize_linear(%v, %b, %z) %y = dequantize_linear(%vq, %b, %z)
    return %y })");
  ASSERT_EQ(built.program.launches.size(), 1u);
  const auto groups = built.compare();
  EXPECT_TRUE(groups[0].ok);
  EXPECT_GT(groups[0].ties, 0);
}

constexpr const char* kGeluBehindCodes = R"(graph (%in: f32[64,32]) {
    %si = const splat<0.03> : f32[] %zi = const splat<128> : u8[] %wc = const rand<1> : i8[32,48] %sw = const splat<0.02> : f32[]
    %w = dequantize_linear(%wc, %sw) %iq = quantize_linear(%in, %si, %zi) %id = dequantize_linear(%iq, %si, %zi)
    %s = const splat<0.13358943> : f32[] %z = const splat<102> : u8[] %e = const splat<STEP> : f32[] %ze = const splat<128> : u8[]
    %l = const splat<255> : u8[] %k = const splat<0.003921569> : f32[] %j = const splat<0.0019607844> : f32[] %p = const splat<0> : u8[]
    %one = dequantize_linear(%l, %k, %p) %half = dequantize_linear(%l, %j, %p) %root = const splat<1.4142135> : f32[]
    %sm = const splat<0.16162127> : f32[] %sh = const splat<0.08081064> : f32[] %two = const splat<2> : u8[]
    %x = matmul(%id, %w) %xq = quantize_linear(%x, %s, %z) %xd = dequantize_linear(%xq, %s, %z)
    %v = div(%xd, %root) %r = erf(%v) %rq = quantize_linear(%r, %e, %ze) %rd = dequantize_linear(%rq, %e, %ze)
    %a = add(%rd, %one) %aq = quantize_linear(%a, %e, %p) %ad = dequantize_linear(%aq, %e, %p)
    %m = mul(%xd, %ad) %mq = quantize_linear(%m, %sm, %two) %md = dequantize_linear(%mq, %sm, %two)
    %h = mul(%md, %half) %y = quantize_linear(%h, %sh, %two) return %y })";

std::string gelu_behind_codes(const std::string& step) {
  std::string text = kGeluBehindCodes;
  return text.replace(text.find("STEP"), 4, step);
}

/// The same behind a sum of codes: scales are folded, and 1 / step is 127.5 but for one rounding, or 63.5. A step of
/// the first tie, behind the factors, ends on the next one.
TEST(QuantisedProof, ProvesTiesWithinAGroupOfCodes) {
  for (const char* step : {"0.007843138", "0.00787402", "0.015748031", "0.0078125"}) {
    const ProofCase built(gelu_behind_codes(step));
    for (uint64_t seed = 1; seed <= 3; ++seed)
      for (const GroupComparison& g : built.compare(seed))
        EXPECT_TRUE(g.ok) << step << " " << g.name << " " << g.real.of_bound << " " << g.exact.of_bound;
  }
}

/// Most elements have no tie on their way, and must have their code.
TEST(QuantisedProof, TiesWithinAGroupExcuseNoOtherElement) {
  const ProofCase built(gelu_behind_codes("0.007843138"));
  const GroupComparison right = built.compare().back();
  EXPECT_GT(right.real.exact, right.real.elements * 9 / 10);
  EXPECT_LT(right.ties, right.real.elements / 100);
  const size_t last = built.program.launches.size() - 1;
  const auto caught = [&](const std::function<void(Stage&)>& change) {
    return !built.compare_with(built.with_wrong(last, [&](Launch& l) { change(l.region.stages.back()); })).back().ok;
  };
  EXPECT_TRUE(caught([](Stage& stage) {  // one code off in the last column
    StageOutput& y = stage.outputs.back();
    const Expr column = Expr::coord(static_cast<int>(stage.domain.size()) - 1);
    const Expr wrong = Expr::make(ExprOp::bit_xor, {y.value, Expr::integer(y.dtype, 1)});
    const Expr before = Expr::make(ExprOp::lt, {column, Expr::integer(DType::i64, stage.domain.back().value() - 1)});
    y.value = Expr::make(ExprOp::select, {before, y.value, wrong});
  }));
  EXPECT_TRUE(caught([](Stage& stage) {  // a sum lacks a term
    Expr& y = stage.outputs.back().value;
    const Expr sum = Expr::result(0, DType::i32);
    y = replaced(y, sum, sum + Expr::integer(DType::i32, 2000));
  }));
  EXPECT_TRUE(caught([](Stage& stage) {  // erf without the 1: its addend of 1 / step is gone
    Expr& y = stage.outputs.back().value;
    Expr sum;
    y.visit([&](const Expr& e) {
      const bool one = e.op() == ExprOp::add && e.args()[1].is_constant();
      if (one && std::fabs(e.args()[1].value() - 127.5) < 1e-3) sum = e;
    });
    ASSERT_TRUE(sum.node() != nullptr);
    y = replaced(y, sum, sum.args()[0]);
  }));
}

/// A rounding before a sum: the sum may take either side of each tie, by one step of the weight.
TEST(QuantisedProof, RoundingsInFrontOfSumsMayGoBothWays) {
  const ProofCase built(R"(graph (%x: f32[8,64]) {
    %w = const rand<1> : f32[64,32] %s = const splat<0.0173> : f32[] %k = const splat<1.1> : f32[]
    %u = mul(%x, %k) %q = quantize_linear(%u, %s) %d = dequantize_linear(%q, %s) %y = reduce_sum(%d) {axes=[-1]} return %y })");
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (const GroupComparison& g : built.compare(seed)) EXPECT_TRUE(g.ok) << seed << " " << g.name;
}

/// Codes of a bias have a scale of their own, f32(s_x s_w). Where bias and sum cancel, that rounding is most of the
/// error.
TEST(QuantisedProof, ABiasOfCodesMayCancelTheSum) {
  const std::string graph = R"(graph (%x: f32[1,64,16,16]) {
    %s = const splat<0.0061> : f32[] %z = const splat<ZERO> : i8[] %t = const splat<0.00501> : f32[]
    %u = const splat<3.05609974e-05> : f32[] %w = const splat<100> : i8[8,64,1,1] %b = const splat<-20000> : i32[8]
    %xq = quantize_linear(%x, %s, %z) %xd = dequantize_linear(%xq, %s, %z)
    %wd = dequantize_linear(%w, %t) %bd = dequantize_linear(%b, %u)
    %y = conv(%xd, %wd, %bd)
    return %y })";
  for (const char* zero : {"0", "-7"}) {
    std::string text = graph;
    text.replace(text.find("ZERO"), 4, zero);
    const ProofCase built(text);
    EXPECT_NE(print(built.program).find("i32"), std::string::npos) << "no sum of codes";
    for (const GroupComparison& g : built.compare())
      EXPECT_TRUE(g.ok) << zero << " " << g.name << " " << g.real.of_bound;
    const size_t last = built.program.launches.size() - 1;
    const Executable wrong = built.with_wrong(last, [](Launch& launch) {
      StageOutput& output = launch.region.stages.back().outputs.back();
      output.value = output.value + Expr::constant(output.dtype, 3e-5);  // one code
    });
    EXPECT_FALSE(built.compare_with(wrong)[last].ok);
  }
}

}  // namespace
}  // namespace opfuse
