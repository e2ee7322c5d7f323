// Attention in the spellings of exporters: each must be one ScaledDotProductAttention with its in-projection and keep
// its values on ordinary and on extreme inputs; what is not a self-attention is told why.
#include "match/attention.hpp"

#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "testing/corners.hpp"

namespace opfuse {
namespace {

struct Spelled {
  const char* name;
  const char* text;
  int projections = 1;  ///< MHAInProjection modules
};

// batch 2, 5 tokens, 2 heads of 4
const Spelled kSpellings[] = {
    // torch.nn.MultiheadAttention, opset 17: sequence first, one Linear, sliced; scale on q
    {"pytorch_mha", R"(graph (%x: f32[2,5,8]) {
      %w = const rand<1> : f32[8,24]  %b = const rand<2> : f32[24]  %root = const splat<2> : f32[]
      %heads = const dense<5,4,4> : i64[3]
      %z = const dense<0> : i64[1] %e = const dense<8> : i64[1] %ee = const dense<16> : i64[1] %eee = const dense<24> : i64[1]
      %last = const dense<-1> : i64[1]
      %t = transpose(%x) {perm = [1,0,2]}
      %m = matmul(%t, %w)  %a = add(%b, %m)
      %q0 = slice(%a, %z, %e, %last) %k0 = slice(%a, %e, %ee, %last) %v0 = slice(%a, %ee, %eee, %last)
      %q1 = reshape(%q0, %heads) %k1 = reshape(%k0, %heads) %v1 = reshape(%v0, %heads)
      %q2 = transpose(%q1) {perm = [1,0,2]} %k2 = transpose(%k1) {perm = [1,2,0]} %v2 = transpose(%v1) {perm = [1,0,2]}
      %q3 = div(%q2, %root)
      %s = matmul(%q3, %k2) %p = softmax(%s) %y = matmul(%p, %v2)
      return %y })"},
    // Hugging Face BERT, opset 13: three Linears, scale behind the product, additive mask
    {"huggingface_bert", R"(graph (%x: f32[2,5,8], %mask: f32[2,1,1,5]) {
      %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8]
      %bq = const rand<4> : f32[8] %bk = const rand<5> : f32[8] %bv = const rand<6> : f32[8] %root = const splat<2> : f32[]
      %heads = const dense<2,5,2,4> : i64[4]
      %qm = matmul(%x, %wq) %qa = add(%bq, %qm) %qr = reshape(%qa, %heads) %q = transpose(%qr) {perm = [0,2,1,3]}
      %km = matmul(%x, %wk) %ka = add(%bk, %km) %kr = reshape(%ka, %heads)
      %vm = matmul(%x, %wv) %va = add(%bv, %vm) %vr = reshape(%va, %heads) %v = transpose(%vr) {perm = [0,2,1,3]}
      %k = transpose(%kr) {perm = [0,2,3,1]}
      %s = matmul(%q, %k) %d = div(%s, %root) %e = add(%d, %mask) %p = softmax(%e) %y = matmul(%p, %v)
      return %y })"},
    // Hugging Face GPT-2, opset 13: one Gemm on flattened tokens, Split, causal mask by Where
    {"huggingface_gpt2", R"(graph (%x: f32[10,8], %causal: bool[1,1,5,5]) {
      %w = const rand<1> : f32[8,24] %b = const rand<2> : f32[24] %root = const splat<2> : f32[] %low = const splat<-3.4e38> : f32[]
      %three = const dense<2,5,24> : i64[3] %heads = const dense<2,5,2,4> : i64[4]
      %g = gemm(%x, %w, %b) %r = reshape(%g, %three)
      %q0, %k0, %v0 = split(%r) {axis = 2, split = [8,8,8]}
      %q1 = reshape(%q0, %heads) %k1 = reshape(%k0, %heads) %v1 = reshape(%v0, %heads)
      %q = transpose(%q1) {perm = [0,2,1,3]} %k = transpose(%k1) {perm = [0,2,3,1]} %v = transpose(%v1) {perm = [0,2,1,3]}
      %s = matmul(%q, %k) %d = div(%s, %root) %c = where(%causal, %d, %low) %p = softmax(%c) %y = matmul(%p, %v)
      return %y })"},
    // scaled_dot_product_attention of PyTorch 2, opset 18: the root of the scale on q and on k, NaN guarded
    {"pytorch_sdpa", R"(graph (%x: f32[2,5,8], %mask: f32[5,5]) {
      %w = const rand<1> : f32[8,24] %root = const splat<0.70710678> : f32[] %zero = const splat<0> : f32[]
      %five = const dense<2,5,3,2,4> : i64[5] %i0 = const dense<0> : i64[] %i1 = const dense<1> : i64[] %i2 = const dense<2> : i64[]
      %m = matmul(%x, %w) %r = reshape(%m, %five) %t = transpose(%r) {perm = [2,0,3,1,4]}
      %q0 = gather(%t, %i0) {axis = 0} %k0 = gather(%t, %i1) {axis = 0} %v = gather(%t, %i2) {axis = 0}
      %kt = transpose(%k0) {perm = [0,1,3,2]} %q = mul(%q0, %root) %k = mul(%kt, %root)
      %s = matmul(%q, %k) %e = add(%s, %mask) %p = softmax(%e) %n = is_nan(%p) %g = where(%n, %zero, %p)
      %y = matmul(%g, %v)
      return %y })"},
    // tf2onnx, opset 13: Dense layers on flattened tokens, scale by Mul in front of the query
    {"tf2onnx", R"(graph (%x: f32[2,5,8]) {
      %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %bq = const rand<4> : f32[8]
      %half = const splat<0.5> : f32[] %heads = const dense<2,5,2,4> : i64[4] %flat = const dense<10,8> : i64[2]
      %f = reshape(%x, %flat)
      %qm = matmul(%f, %wq) %qa = add(%qm, %bq) %qs = mul(%qa, %half) %qr = reshape(%qs, %heads) %q = transpose(%qr) {perm = [0,2,1,3]}
      %km = matmul(%f, %wk) %kr = reshape(%km, %heads) %k = transpose(%kr) {perm = [0,2,3,1]}
      %vm = matmul(%f, %wv) %vr = reshape(%vm, %heads) %v = transpose(%vr) {perm = [0,2,1,3]}
      %s = matmul(%q, %k) %p = softmax(%s) %y = matmul(%p, %v)
      return %y })"},
    // the same with the scale as the first operand
    {"tf2onnx_scale_first", R"(graph (%x: f32[2,5,8]) {
      %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %bq = const rand<4> : f32[8]
      %half = const splat<0.5> : f32[] %heads = const dense<2,5,2,4> : i64[4] %flat = const dense<10,8> : i64[2]
      %f = reshape(%x, %flat)
      %qm = matmul(%f, %wq) %qa = add(%qm, %bq) %qs = mul(%half, %qa) %qr = reshape(%qs, %heads) %q = transpose(%qr) {perm = [0,2,1,3]}
      %km = matmul(%f, %wk) %kr = reshape(%km, %heads) %k = transpose(%kr) {perm = [0,2,3,1]}
      %vm = matmul(%f, %wv) %vr = reshape(%vm, %heads) %v = transpose(%vr) {perm = [0,2,1,3]}
      %s = matmul(%q, %k) %p = softmax(%s) %y = matmul(%p, %v)
      return %y })"},
    // Swin: relative position bias, then the windows' mask between two reshapes
    {"swin_window", R"(graph (%x: f32[4,5,8], %mask: f32[1,2,1,5,5]) {
      %w = const rand<1> : f32[8,24] %bias = const rand<3> : f32[1,2,5,5] %half = const splat<0.5> : f32[]
      %five = const dense<4,5,3,2,4> : i64[5] %apart = const dense<2,2,2,5,5> : i64[5] %back = const dense<4,2,5,5> : i64[4]
      %i0 = const dense<0> : i64[] %i1 = const dense<1> : i64[] %i2 = const dense<2> : i64[]
      %m = matmul(%x, %w) %r = reshape(%m, %five) %t = transpose(%r) {perm = [2,0,3,1,4]}
      %q0 = gather(%t, %i0) {axis = 0} %k0 = gather(%t, %i1) {axis = 0} %v = gather(%t, %i2) {axis = 0}
      %q = mul(%q0, %half) %k = transpose(%k0) {perm = [0,1,3,2]}
      %s = matmul(%q, %k) %e = add(%s, %bias) %ra = reshape(%e, %apart) %em = add(%ra, %mask) %rb = reshape(%em, %back)
      %p = softmax(%rb) %y = matmul(%p, %v)
      return %y })"},
    // Llama as Hugging Face writes it: 4 heads of queries on 2 of keys and values, which Expand repeats
    {"grouped_query", R"(graph (%x: f32[2,5,8]) {
      %wq = const rand<1> : f32[8,16] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
      %qh = const dense<2,5,4,4> : i64[4] %kh = const dense<2,5,2,4> : i64[4] %all = const dense<2,4,5,4> : i64[4]
      %two = const dense<2> : i64[1] %wide = const dense<2,2,2,5,4> : i64[5]
      %qm = matmul(%x, %wq) %qr = reshape(%qm, %qh) %q = transpose(%qr) {perm = [0,2,1,3]}
      %km = matmul(%x, %wk) %kr = reshape(%km, %kh) %kt = transpose(%kr) {perm = [0,2,1,3]}
      %vm = matmul(%x, %wv) %vr = reshape(%vm, %kh) %vt = transpose(%vr) {perm = [0,2,1,3]}
      %ku = unsqueeze(%kt, %two) %ke = expand(%ku, %wide) %kk = reshape(%ke, %all) %k = transpose(%kk) {perm = [0,1,3,2]}
      %vu = unsqueeze(%vt, %two) %ve = expand(%vu, %wide) %v = reshape(%ve, %all)
      %s = matmul(%q, %k) %d = div(%s, %root) %p = softmax(%d) %y = matmul(%p, %v)
      return %y })"},
    // repeat_interleave through TorchScript: Tile repeats
    {"grouped_query_by_tile", R"(graph (%x: f32[2,5,8]) {
      %wq = const rand<1> : f32[8,16] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
      %qh = const dense<2,5,4,4> : i64[4] %kh = const dense<2,5,2,4> : i64[4] %all = const dense<2,4,5,4> : i64[4]
      %two = const dense<2> : i64[1] %wide = const dense<1,1,2,1,1> : i64[5]
      %qm = matmul(%x, %wq) %qr = reshape(%qm, %qh) %q = transpose(%qr) {perm = [0,2,1,3]}
      %km = matmul(%x, %wk) %kr = reshape(%km, %kh) %kt = transpose(%kr) {perm = [0,2,1,3]}
      %vm = matmul(%x, %wv) %vr = reshape(%vm, %kh) %vt = transpose(%vr) {perm = [0,2,1,3]}
      %ku = unsqueeze(%kt, %two) %ke = tile(%ku, %wide) %kk = reshape(%ke, %all) %k = transpose(%kk) {perm = [0,1,3,2]}
      %vu = unsqueeze(%vt, %two) %ve = tile(%vu, %wide) %v = reshape(%ve, %all)
      %s = matmul(%q, %k) %d = div(%s, %root) %p = softmax(%d) %y = matmul(%p, %v)
      return %y })"},
    // Qwen 3: heads of q and k normalised and turned, rotate-half by Split, behind a cache of keys and values
    {"normalised_heads_and_a_cache", R"(graph (%x: f32[2,5,8], %pk: f32[2,2,3,4], %pv: f32[2,2,3,4]) {
      %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
      %heads = const dense<2,5,2,4> : i64[4] %two = const splat<2> : f32[] %eps = const splat<1e-5> : f32[]
      %gq = const rand<4> : f32[4] %gk = const rand<5> : f32[4] %cos = const rand<6> : f32[5,4] %sin = const rand<7> : f32[5,4]
      %qm = matmul(%x, %wq) %qr = reshape(%qm, %heads) %q2 = pow(%qr, %two) %qn = reduce_mean(%q2) {axes=[-1]}
      %qe = add(%qn, %eps) %qs = sqrt(%qe) %qd = div(%qr, %qs) %qg = mul(%qd, %gq) %qt = transpose(%qg) {perm = [0,2,1,3]}
      %km = matmul(%x, %wk) %kr = reshape(%km, %heads) %k2 = pow(%kr, %two) %kn = reduce_mean(%k2) {axes=[-1]}
      %ke = add(%kn, %eps) %ks = sqrt(%ke) %kd = div(%kr, %ks) %kg = mul(%kd, %gk) %kt = transpose(%kg) {perm = [0,2,1,3]}
      %vm = matmul(%x, %wv) %vr = reshape(%vm, %heads) %vt = transpose(%vr) {perm = [0,2,1,3]}
      %qa, %qb = split(%qt) {axis = -1, num_outputs = 2} %qi = neg(%qb) %qj = concat(%qi, %qa) {axis = -1}
      %qc = mul(%qt, %cos) %ql = mul(%qj, %sin) %q = add(%qc, %ql)
      %ka, %kb = split(%kt) {axis = -1, num_outputs = 2} %ki = neg(%kb) %kj = concat(%ki, %ka) {axis = -1}
      %kc = mul(%kt, %cos) %kl = mul(%kj, %sin) %k0 = add(%kc, %kl)
      %k = concat(%pk, %k0) {axis = 2} %v = concat(%pv, %vt) {axis = 2} %kk = transpose(%k) {perm = [0,1,3,2]}
      %s = matmul(%q, %kk) %d = div(%s, %root) %p = softmax(%d) %y = matmul(%p, %v)
      return %y, %k, %v })"},
    // Phi: one Linear for q, k and v, of which the first half of a head turns
    {"partly_turned", R"(graph (%x: f32[2,5,8]) {
      %w = const rand<1> : f32[8,24] %root = const splat<2> : f32[] %heads = const dense<2,5,2,4> : i64[4]
      %o = const dense<0> : i64[1] %h = const dense<2> : i64[1] %e = const dense<4> : i64[1] %l = const dense<3> : i64[1]
      %cos = const rand<6> : f32[5,2] %sin = const rand<7> : f32[5,2]
      %m = matmul(%x, %w) %q0, %k0, %v0 = split(%m) {axis = 2, split = [8,8,8]}
      %q1 = reshape(%q0, %heads) %k1 = reshape(%k0, %heads) %v1 = reshape(%v0, %heads)
      %q2 = transpose(%q1) {perm = [0,2,1,3]} %k2 = transpose(%k1) {perm = [0,2,1,3]} %v = transpose(%v1) {perm = [0,2,1,3]}
      %qt = slice(%q2, %o, %h, %l) %qp = slice(%q2, %h, %e, %l) %kt = slice(%k2, %o, %h, %l) %kp = slice(%k2, %h, %e, %l)
      %qa, %qb = split(%qt) {axis = -1, num_outputs = 2} %qi = neg(%qb) %qj = concat(%qi, %qa) {axis = -1}
      %qc = mul(%qt, %cos) %ql = mul(%qj, %sin) %qr = add(%qc, %ql) %q = concat(%qr, %qp) {axis = -1}
      %ka, %kb = split(%kt) {axis = -1, num_outputs = 2} %ki = neg(%kb) %kj = concat(%ki, %ka) {axis = -1}
      %kc = mul(%kt, %cos) %kl = mul(%kj, %sin) %kr = add(%kc, %kl) %k = concat(%kr, %kp) {axis = -1}
      %kk = transpose(%k) {perm = [0,1,3,2]}
      %s = matmul(%q, %kk) %d = div(%s, %root) %p = softmax(%d) %y = matmul(%p, %v)
      return %y })"},
    // Einsum throughout, as Flax writes it: projections into heads, two products, capped scores
    {"einsum", R"(graph (%x: f32[2,5,8]) {
      %wq = const rand<1> : f32[8,2,4] %wk = const rand<2> : f32[8,2,4] %wv = const rand<3> : f32[8,2,4]
      %root = const splat<2> : f32[] %cap = const splat<3> : f32[]
      %q = einsum(%x, %wq) {equation = "bsd,dhk->bshk"} %k = einsum(%x, %wk) {equation = "bsd,dhk->bshk"}
      %v = einsum(%x, %wv) {equation = "bsd,dhk->bshk"}
      %qs = div(%q, %root) %s = einsum(%qs, %k) {equation = "bqhd,bkhd->bhqk"}
      %c0 = div(%s, %cap) %c1 = tanh(%c0) %c2 = mul(%c1, %cap)
      %p = softmax(%c2) %y = einsum(%p, %v) {equation = "bhqk,bkhd->bqhd"}
      return %y })"},
    // a decoder's cross-attention: keys and values come from the encoder
    {"cross_attention", R"(graph (%x: f32[2,5,8], %z: f32[2,7,8]) {
      %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
      %q = matmul(%x, %wq) %k0 = matmul(%z, %wk) %v = matmul(%z, %wv) %k = transpose(%k0) {perm = [0,2,1]}
      %s = matmul(%q, %k) %d = div(%s, %root) %p = softmax(%d) %y = matmul(%p, %v)
      return %y })",
     0},
};

void PrintTo(const Spelled& s, std::ostream* out) { *out << s.name; }

class Attention : public ::testing::TestWithParam<Spelled> {};

TEST_P(Attention, IsOneModuleAndKeepsItsValues) {
  const Graph original = parse_graph(GetParam().text, ops());
  const Graph graph = prepared_text(GetParam().text);
  const FusionPlan plan = make_plan(graph);
  const auto counts = plan.module_counts();
  EXPECT_EQ(counts.contains("FusedScaledDotProductAttention"), true) << print(graph);
  EXPECT_EQ(counts.contains("FusedMHAInProjection") ? 1 : 0, GetParam().projections) << print(graph);
  const QdqSummary points = qdq_summary(plan);
  EXPECT_EQ(points.declared, points.tensors.size() + (GetParam().projections ? 0 : 1));  // z feeds two Linears
  const Graph fused = apply(graph, plan);
  verify(fused);
  testing::expect_same_on_corners(original, fused);
}

INSTANTIATE_TEST_SUITE_P(Exporters, Attention, ::testing::ValuesIn(kSpellings),
                         [](const auto& info) { return std::string(info.param.name); });

std::string reason(const std::string& text) {
  RewriteReport report;
  prepared_text(text, &report);
  for (const RewriteNote& n : report.notes)
    if (n.rule == "DecomposeMultiheadAttention") return n.applied ? "applied" : n.reason.code;
  return "";
}

const std::string kTail =
    " %k = transpose(%k0) {perm = [0,2,1]} %s = matmul(%q, %k) %p = softmax(%s) %y = matmul(%p, %v) return %y }";
const std::string kHead =
    "graph (%x: f32[2,5,8], %z: f32[2,5,8], %u: f32[8,8]) { %w = const rand<1> : f32[8,8] %h = const rand<2> : "
    "f32[8,8] ";

TEST(DecomposeMultiheadAttention, IsNamedAfterQInWhateverOrderTheFileHasThem) {
  const std::string q = "%q = matmul(%x, %w) @\"q\" ", k = "%k0 = matmul(%x, %h) @\"k\" ",
                    v = "%v = matmul(%x, %g) @\"v\" ";
  const std::string head = kHead + "%g = const rand<3> : f32[8,8] ";
  for (const std::string& products : {q + k + v, v + k + q, k + q + v}) {
    const Graph graph = prepared_text(head + products + kTail);
    const FusionPlan plan = make_plan(graph);
    EXPECT_NE(plan.find("MHAInProjection@q"), nullptr) << print(graph);
    verify(apply(graph, plan));
  }
}

TEST(DecomposeMultiheadAttention, TellsWhyNot) {
  EXPECT_EQ(reason(kHead + "%q = matmul(%x, %w) %k0 = matmul(%z, %w) %v = matmul(%x, %h)" + kTail), "cross_attention");
  EXPECT_EQ(reason(kHead + "%q = matmul(%x, %w) %k0 = matmul(%x, %u) %v = matmul(%x, %h)" + kTail), "computed_weight");
  EXPECT_EQ(reason(kHead + "%q = matmul(%x, %w) %k0 = relu(%x) %v = matmul(%x, %h)" + kTail), "no_projection");
  EXPECT_EQ(reason(kHead + "%q = matmul(%x, %w) %k0 = matmul(%x, %h) %v = matmul(%x, %w)" + kTail), "applied");
  EXPECT_EQ(
      reason(kHead +
             "%rows = const dense<10,8> : i64[2] %cube = const dense<2,5,8> : i64[3] %f = reshape(%x, %rows) %g = "
             "gemm(%f, %w) {alpha = 0.5} %q = reshape(%g, %cube) %k0 = matmul(%x, %h) %v = matmul(%x, %w)" +
             kTail),
      "gemm_attributes");
}

TEST(Attention, SparesWhatIsNoAttention) {
  const auto spared = [](const std::string& middle) {
    return !make_plan(prepared_text(kHead + "%k = transpose(%z) {perm = [0,2,1]} %s = matmul(%x, %k)" + middle +
                                    " return %y }"))
                .module_counts()
                .contains("FusedScaledDotProductAttention");
  };
  EXPECT_TRUE(spared("%p = softmax(%s) {axis = 1} %y = matmul(%p, %x)"));  // along the queries
  EXPECT_TRUE(spared("%p = sigmoid(%s) %y = matmul(%p, %x)"));             // no softmax
  EXPECT_TRUE(
      spared("%p = softmax(%s) %c = matmul(%p, %x) %d = matmul(%p, %z) %y = add(%c, %d)"));  // weights read twice
  EXPECT_TRUE(
      spared("%m = const splat<-1> : f32[] %n = mul(%s, %m) %p = softmax(%n) %y = matmul(%p, %x)"));  // scale < 0
  EXPECT_FALSE(spared("%p = softmax(%s) %y = matmul(%p, %x)"));
}

TEST(Attention, PartsAreFoundWhateverTheOrderOfOperands) {
  const Graph g = prepared_text(kSpellings[3].text);
  for (const Node* node : g.nodes())
    if (const auto parts = attention_parts(*node)) {
      EXPECT_EQ(parts->q->name, "q0");
      EXPECT_EQ(parts->k->name, "kt");
      EXPECT_EQ(parts->v->name, "v");
      return;
    }
  FAIL() << print(g);
}

TEST(Attention, ACompositeThatIsOnlyCalledAttentionIsDeclined) {
  const Graph graph = prepared_text(
      "graph (%x: f32[2,8]) { %y = composite \"attention\" (%x) { %r = relu(%x) yield %r } : f32[2,8] return %y }");
  ASSERT_EQ(operator_name(*graph.nodes().back()), kAttention);
  const FusionPlan plan = make_plan(graph);
  EXPECT_FALSE(plan.module_counts().contains("FusedScaledDotProductAttention"));
  const FusionPattern pattern = *std::find_if(fusion_patterns().begin(), fusion_patterns().end(),
                                              [](const auto& p) { return p.name == "ScaledDotProductAttention"; });
  const MatchResult result = Matcher(graph).match(pattern.topology, graph.nodes().back(), pattern.where);
  EXPECT_EQ(result.partial.decline.code, "no_parts");
}

}  // namespace
}  // namespace opfuse
