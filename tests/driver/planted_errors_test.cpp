// Kernels with one planted error each, for 51 graphs: all are caught, and the kernels without it all pass. What is
// planted is an edit of the region that is compiled; the oracle keeps the original.
#include <gtest/gtest.h>

#include "driver/proof_case.hpp"
#include "region/dependence.hpp"

namespace opfuse {
namespace {

struct Kernel {
  const char* name;
  const char* text;
  bool functions = false;  ///< calls functions: their ULPs hide a smaller error
};

constexpr const char* kUlp = "one ULP";

// clang-format off
const Kernel kKernels[] = {
  {"pointwise", "graph (%x: f32[1,16,6,7]) { %w = const rand<1> : f32[32,16,1,1] %b = const rand<2> : f32[32] %y = conv(%x, %w, %b) return %y }"},
  {"pointwise_ragged", "graph (%x: f32[1,24,5,5]) { %w = const rand<1> : f32[40,24,1,1] %b = const rand<2> : f32[40] %c = conv(%x, %w, %b) %y = relu(%c) return %y }"},
  {"conv3x3", "graph (%x: f32[1,8,9,9]) { %w = const rand<1> : f32[16,8,3,3] %b = const rand<2> : f32[16] %y = conv(%x, %w, %b) {pads=[1,1,1,1]} return %y }"},
  {"conv3x3_stride", "graph (%x: f32[1,8,9,11]) { %w = const rand<1> : f32[16,8,3,3] %y = conv(%x, %w) {pads=[1,1,1,1], strides=[2,2]} return %y }"},
  {"stem", "graph (%x: f32[1,3,15,15]) { %w = const rand<1> : f32[16,3,7,7] %c = conv(%x, %w) {pads=[3,3,3,3], strides=[2,2]} %y = relu(%c) return %y }"},
  {"conv5_dilated", "graph (%x: f32[1,4,12,12]) { %w = const rand<1> : f32[8,4,3,3] %y = conv(%x, %w) {pads=[2,2,2,2], dilations=[2,2]} return %y }"},
  {"conv_grouped", "graph (%x: f32[1,32,6,6]) { %w = const rand<1> : f32[32,8,3,3] %y = conv(%x, %w) {pads=[1,1,1,1], group=4} return %y }"},
  {"depthwise", "graph (%x: f32[1,24,8,8]) { %w = const rand<1> : f32[24,1,3,3] %b = const rand<2> : f32[24] %y = conv(%x, %w, %b) {pads=[1,1,1,1], group=24} return %y }"},
  {"depthwise_stride", "graph (%x: f32[1,16,9,9]) { %w = const rand<1> : f32[16,1,5,5] %y = conv(%x, %w) {pads=[2,2,2,2], strides=[2,2], group=16} return %y }"},
  {"conv1d", "graph (%x: f32[1,6,33]) { %w = const rand<1> : f32[10,6,5] %y = conv(%x, %w) {pads=[2,2]} return %y }"},
  {"conv3d", "graph (%x: f32[1,3,5,6,7]) { %w = const rand<1> : f32[8,3,3,3,3] %y = conv(%x, %w) {pads=[1,1,1,1,1,1]} return %y }"},
  {"few_outputs", "graph (%x: f32[1,16,9,9]) { %w = const rand<1> : f32[3,16,3,3] %y = conv(%x, %w) {pads=[1,1,1,1]} return %y }"},
  {"conv_residual", "graph (%x: f32[1,16,7,7]) { %w = const rand<1> : f32[16,16,1,1] %c = conv(%x, %w) %a = add(%c, %x) %y = relu(%a) return %y }"},
  {"conv_transpose", "graph (%x: f32[1,4,5,5]) { %w = const rand<1> : f32[4,6,3,3] %y = conv_transpose(%x, %w) {strides=[2,2]} return %y }"},
  {"matmul", "graph (%x: f32[19,33]) { %w = const rand<1> : f32[33,48] %b = const rand<2> : f32[48] %m = matmul(%x, %w) %y = add(%m, %b) return %y }"},
  {"matvec", "graph (%x: f32[1,70]) { %w = const rand<1> : f32[70,50] %y = matmul(%x, %w) return %y }"},
  {"gemm_transposed", "graph (%x: f32[9,20]) { %w = const rand<1> : f32[31,20] %c = const rand<2> : f32[31] %y = gemm(%x, %w, %c) {transB = true} return %y }"},
  {"batched_products", "graph (%a: f32[3,9,17], %b: f32[3,17,21]) { %y = matmul(%a, %b) return %y }"},
  {"products_of_columns", "graph (%a: f32[2,18,16], %b: f32[2,20,16]) { %t = transpose(%b) {perm=[0,2,1]} %y = matmul(%a, %t) return %y }"},
  {"matmul_gelu", "graph (%x: f32[9,16]) { %w = const rand<1> : f32[16,32] %m = matmul(%x, %w) %y = gelu(%m) return %y }", true},
  {"matmul_silu", "graph (%x: f32[9,16]) { %w = const rand<1> : f32[16,32] %m = matmul(%x, %w) %y = silu(%m) return %y }", true},
  {"attention", "graph (%q: f32[2,9,16], %k: f32[2,16,9], %v: f32[2,9,16]) { %s = matmul(%q, %k) %p = softmax(%s) %y = matmul(%p, %v) return %y }", true},
  {"softmax", "graph (%x: f32[11,37]) { %y = softmax(%x) {axis=-1} return %y }", true},
  {"layer_norm", "graph (%x: f32[9,48]) { %s = const rand<1> : f32[48] %b = const rand<2> : f32[48] %y = layer_norm(%x, %s, %b) {axis=-1} return %y }", true},
  {"reduce_sum", "graph (%x: f32[9,37]) { %y = reduce_sum(%x) {axes=[-1]} return %y }"},
  {"reduce_mean", "graph (%x: f32[7,64]) { %y = reduce_mean(%x) {axes=[-1]} return %y }"},
  {"reduce_max", "graph (%x: f32[9,37]) { %y = reduce_max(%x) {axes=[-1]} return %y }"},
  {"reduce_columns", "graph (%x: f32[21,19]) { %y = reduce_sum(%x) {axes=[0]} return %y }"},
  {"sum_of_squares", "graph (%x: f32[9,37]) { %y = reduce_sum_square(%x) {axes=[-1]} return %y }"},
  {"global_pool", "graph (%x: f32[1,24,8,8]) { %y = global_average_pool(%x) return %y }"},
  {"max_pool", "graph (%x: f32[1,16,9,9]) { %y = max_pool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]} return %y }"},
  {"average_pool", "graph (%x: f32[1,16,8,8]) { %y = average_pool(%x) {kernel_shape=[2,2], strides=[2,2]} return %y }"},
  {"relu", "graph (%x: f32[5,33]) { %y = relu(%x) return %y }"},
  {"scale_shift", "graph (%x: f32[5,33]) { %s = const rand<1> : f32[33] %b = const rand<2> : f32[33] %m = mul(%x, %s) %y = add(%m, %b) return %y }"},
  {"broadcast_add", "graph (%x: f32[4,1,9], %z: f32[5,1]) { %y = add(%x, %z) return %y }"},
  {"exp", "graph (%x: f32[5,33]) { %y = exp(%x) return %y }", true},
  {"tanh", "graph (%x: f32[5,33]) { %y = tanh(%x) return %y }", true},
  {"sigmoid", "graph (%x: f32[5,33]) { %y = sigmoid(%x) return %y }", true},
  {"transpose", "graph (%x: f32[5,33]) { %y = transpose(%x) {perm=[1,0]} return %y }"},
  {"transpose_images", "graph (%x: f32[2,5,6,7]) { %t = transpose(%x) {perm=[0,2,3,1]} %y = relu(%t) return %y }"},
  {"concat", "graph (%x: f32[3,5], %z: f32[3,9]) { %a = relu(%x) %y = concat(%a, %z) {axis = 1} return %y }"},
  {"compare", "graph (%x: f32[5,33], %z: f32[33]) { %c = less(%x, %z) %y = where(%c, %x, %z) return %y }"},
  {"clip", "graph (%x: f32[5,33]) { %l = const splat<-1> : f32[] %h = const splat<2> : f32[] %y = clip(%x, %l, %h) return %y }"},
  {"half_products", "graph (%x: f16[9,32]) { %w = const rand<1> : f16[32,24] %y = matmul(%x, %w) return %y }"},
  {"half_conv", "graph (%x: f16[1,8,6,6]) { %w = const rand<1> : f16[16,8,3,3] %y = conv(%x, %w) {pads=[1,1,1,1]} return %y }"},
  {"half_sum", "graph (%x: f16[9,40]) { %y = reduce_sum(%x) {axes=[-1]} return %y }"},
  {"bfloat_products", "graph (%x: bf16[9,16]) { %w = const rand<1> : bf16[16,24] %y = matmul(%x, %w) return %y }"},
  {"double_products", "graph (%x: f64[9,16]) { %w = const rand<1> : f64[16,24] %y = matmul(%x, %w) return %y }"},
  {"integers", "graph (%x: i32[9,16], %z: i32[16]) { %m = mul(%x, %z) %y = reduce_sum(%m) {axes=[-1]} return %y }"},
  {"quantised", "graph (%x: f32[9,32]) { %s = const splat<0.05> : f32[] %q = quantize_linear(%x, %s) %y = dequantize_linear(%q, %s) return %y }"},
  {"ties_within", "graph (%x: f32[9,32]) { %s = const splat<0.05> : f32[] %t = const splat<0.007843138> : f32[] %o = const splat<1> : f32[] %h = const splat<0.5> : f32[] %z = const splat<128> : u8[] %p = const splat<0> : u8[] %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %e = tanh(%d) %eq = quantize_linear(%e, %t, %z) %ed = dequantize_linear(%eq, %t, %z) %a = add(%ed, %o) %aq = quantize_linear(%a, %t, %p) %ad = dequantize_linear(%aq, %t, %p) %m = mul(%d, %ad) %mq = quantize_linear(%m, %s, %z) %md = dequantize_linear(%mq, %s, %z) %f = mul(%md, %h) %y = quantize_linear(%f, %s, %z) return %y }"},
};
// clang-format on
static_assert(std::size(kKernels) == 51);

Expr one(DType dtype) { return is_float(dtype) ? Expr::constant(dtype, 1) : Expr::integer(dtype, 1); }

double next_after_one(DType dtype) { return 1 + 2 * unit_of(dtype == DType::f64 ? DType::f32 : dtype); }

constexpr double kBehindFunctions = 1 + 0x1p-16, kOfWinograd = 1 + 0x1p-6;

/// `value` off by a factor (0: by one ULP), integers by one.
Expr spoiled(const Expr& value, double by) {
  const DType dtype = value.dtype();
  if (dtype == DType::boolean) return Expr::make(ExprOp::logical_not, {value});
  if (!is_float(dtype)) return Expr::make(ExprOp::add, {value, one(dtype)});
  const double factor = by > 0 ? by : next_after_one(dtype);
  return Expr::make(ExprOp::mul, {value, Expr::constant(dtype, factor)});
}

using Plant = bool (*)(Region& region, double by);

bool plant_ulp(Region& region, double by) {
  Expr& value = region.stages.back().outputs.back().value;
  value = spoiled(value, by);
  return true;
}

bool plant_in_last_lane(Region& region, double by) {
  Stage& stage = region.stages.back();
  if (stage.domain.empty() || !stage.domain.back().is_constant() || stage.domain.back().value() < 2) return false;
  const auto axis = static_cast<int>(stage.domain.size()) - 1;
  const Expr last = Expr::integer(DType::i64, stage.domain.back().value() - 1);
  Expr& value = stage.outputs.back().value;
  value = Expr::make(ExprOp::select, {Expr::make(ExprOp::lt, {Expr::coord(axis), last}), value, spoiled(value, by)});
  return true;
}

/// The last tap or channel is left out.
bool plant_dropped_term(Region& region, double) {
  for (Stage& stage : region.stages)
    for (size_t k = stage.reduce.size(); k-- > 0;)
      if (stage.reduce[k].is_constant() && stage.reduce[k].value() > 1) {
        stage.reduce[k] = Dim(stage.reduce[k].value() - 1);
        return true;
      }
  return false;
}

bool plant_doubled_term(Region& region, double) {
  for (Stage& stage : region.stages)
    for (Reduction& r : stage.reductions)
      if (r.kind == ReduceKind::sum) {
        const Expr first =
            Expr::make(ExprOp::eq, {Expr::coord(static_cast<int>(stage.domain.size())), Expr::integer(DType::i64, 0)});
        const Expr two = Expr::make(ExprOp::add, {one(r.value.dtype()), one(r.value.dtype())});
        r.value = Expr::make(ExprOp::mul, {r.value, Expr::make(ExprOp::select, {first, two, one(r.value.dtype())})});
        return true;
      }
  return false;
}

bool is_guarded(const Stage& stage, int read) {
  bool found = false;
  const auto look = [&](const Expr& e) { found = found || (e.op() == ExprOp::in_bounds && e.index() == read); };
  for (const Reduction& r : stage.reductions) r.value.visit(look);
  for (const StageOutput& o : stage.outputs) o.value.visit(look);
  return found;
}

/// A window one pixel to the right.
bool plant_shifted_tap(Region& region, double) {
  for (Stage& stage : region.stages)
    for (size_t r = 0; r < stage.reads.size(); ++r)
      if (is_guarded(stage, static_cast<int>(r)) && !stage.reads[r].map.dims.empty()) {
        stage.reads[r].map.dims.back().offset = stage.reads[r].map.dims.back().offset + Dim(1);
        return true;
      }
  return false;
}

/// The last index of an operand (a weight, a bias, a column) becomes the first.
bool plant_wrong_index(Region& region, double) {
  for (Stage& stage : region.stages)
    for (size_t r = stage.reads.size(); r-- > 0;) {
      if (is_guarded(stage, static_cast<int>(r))) continue;
      for (IndexExpr& dim : stage.reads[r].map.dims)
        for (IndexTerm& t : dim.terms) {
          const auto axis = static_cast<size_t>(t.axis);
          const Dim& extent =
              axis < stage.domain.size() ? stage.domain[axis] : stage.reduce[axis - stage.domain.size()];
          if (!(t.coef == Dim(1)) || !(t.mod == Dim(0)) || !extent.is_constant() || extent.value() < 3) continue;
          t.mod = extent - Dim(1);
          return true;
        }
    }
  return false;
}

const std::pair<const char*, Plant> kPlants[] = {
    {kUlp, plant_ulp},
    {"last lane", plant_in_last_lane},
    {"dropped term", plant_dropped_term},
    {"doubled term", plant_doubled_term},
    {"shifted tap", plant_shifted_tap},
    {"wrong index", plant_wrong_index},
};

bool all_ok(const std::vector<GroupComparison>& groups) {
  return std::all_of(groups.begin(), groups.end(), [](const GroupComparison& g) { return g.ok; });
}

/// Nothing where the generator has no such kernel.
std::optional<Executable> planted_in(const ProofCase& built, size_t launch, Plant plant, double by) {
  Region region = built.program.launches[launch].region;
  if (!plant(region, by)) return std::nullopt;
  try {
    return built.with_wrong(launch, [&](Launch& wrong) { wrong.region = region; });
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// In the last launch that has a place for it.
std::optional<Executable> planted(const ProofCase& built, Plant plant, double by) {
  for (size_t i = built.program.launches.size(); i-- > 0;)
    if (Region region = built.program.launches[i].region; plant(region, by)) return planted_in(built, i, plant, by);
  return std::nullopt;
}

class PlantedErrors : public testing::TestWithParam<Kernel> {};

TEST_P(PlantedErrors, AreCaughtAndRightKernelsPass) {
  const Kernel& kernel = GetParam();
  const ProofCase built(kernel.text);
  for (const GroupComparison& g : built.compare())
    EXPECT_TRUE(g.ok) << g.name << ": real " << g.real.of_bound << " drawn " << g.exact.outside << g.problem;
  int caught = 0;
  for (const auto& [name, plant] : kPlants) {
    const std::optional<Executable> wrong = planted(built, plant, kernel.functions ? kBehindFunctions : 0);
    if (!wrong) continue;
    EXPECT_FALSE(all_ok(built.compare_with(*wrong))) << name;
    ++caught;
  }
  EXPECT_GE(caught, 2);
  RecordProperty("planted", caught);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlantedErrors, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(info.param.name); });

/// Sums of weights and data that Winograd transforms: F(2x2) has the bits, F(4x4) shows a tap that is missing.
TEST(PlantedErrors, AreCaughtInWinograd) {
  for (const char* algorithm : {"f2", "f4"}) {
    LowerOptions options;
    options.algorithms.only = {algorithm};
    const ProofCase built(
        "graph (%x: f32[1,8,12,12]) { %v = const rand<3> : f32[32,8,1,1] %w = const rand<1> : f32[32,32,3,3]"
        " %b = const rand<2> : f32[32] %u = conv(%x, %v) %c = conv(%u, %w, %b) {pads=[1,1,1,1]} %y = relu(%c) return "
        "%y }",
        "host", options);
    const auto groups = built.compare();
    ASSERT_EQ(groups.size(), 2u);
    ASSERT_EQ(built.program.algorithms.back().name, algorithm);
    EXPECT_TRUE(groups[1].ok) << algorithm << groups[1].real.of_bound << " " << groups[1].exact.of_bound;
    EXPECT_EQ(groups[1].exact.exact == groups[1].exact.elements, std::string(algorithm) == "f2");
    for (const auto& [name, plant] : kPlants) {
      const std::optional<Executable> wrong = planted(built, plant, std::string(algorithm) == "f4" ? kOfWinograd : 0);
      if (!wrong) continue;
      EXPECT_FALSE(all_ok(built.compare_with(*wrong))) << algorithm << " " << name;
    }
  }
}

/// Loops of launches are proven step by step: each cell, with all that a layer can have.
const Kernel kLayers[] = {
    {"rnn",
     "graph (%x: f32[5,3,6]) { %w = const rand<1> : f32[1,20,6] %r = const rand<2> : f32[1,20,20] %b = const rand<3> : "
     "f32[1,40] %y, %h = rnn(%x, %w, %r, %b) return %y, %h }"},
    {"gru",
     "graph (%x: f32[5,3,6], %h0: f32[2,3,20]) { %n = const dense<2,5,3> : i32[3] %w = const rand<1> : f32[2,60,6] %r "
     "= const rand<2> : "
     "f32[2,60,20] %b = const rand<3> : f32[2,120] %y, %h = gru(%x, %w, %r, %b, %n, %h0) {direction = "
     "\"bidirectional\"} return %y, %h }"},
    {"gru_product_before_reset",
     "graph (%x: f32[5,3,6]) { %w = const rand<1> : f32[1,60,6] %r = const rand<2> : f32[1,60,20] %b = const rand<3> : "
     "f32[1,120] %y, %h = gru(%x, %w, %r, %b) {linear_before_reset = true} return %y, %h }"},
    {"lstm",
     "graph (%x: f32[5,3,6], %h0: f32[1,3,20], %c0: f32[1,3,20]) { %w = const rand<1> : f32[1,80,6] %r = const rand<2> "
     ": f32[1,80,20] %b = const rand<3> : f32[1,160] %p = const rand<4> : f32[1,60] %y, %h, %c = lstm(%x, %w, %r, %b, "
     "_, %h0, %c0, %p) {direction = \"reverse\"} return %y, %h, %c }"},
    {"lstm_of_given_weights",
     "graph (%x: f32[5,3,6], %w: f32[1,28,6], %r: f32[1,28,7]) { %y, %h, %c = lstm(%x, %w, %r) return %y, %h, %c }"},
};

bool plant_other_gate(Region& region, double) {
  std::vector<Reduction>& sums = region.stages[0].reductions;
  if (sums.size() < 2) return false;
  std::swap(sums.front(), sums.back());
  return true;
}

class PlantedStepErrors : public testing::TestWithParam<Kernel> {};

TEST_P(PlantedStepErrors, AreCaughtAndRightKernelsPass) {
  const ProofCase built(GetParam().text);
  for (const GroupComparison& g : built.compare())
    EXPECT_TRUE(g.ok) << g.name << ": real " << g.real.of_bound << " drawn " << g.exact.of_bound << g.problem;
  int caught = 0;
  std::vector<std::pair<const char*, Plant>> plants(std::begin(kPlants), std::end(kPlants));
  plants.emplace_back("other gate", plant_other_gate);
  for (size_t i = 0; i < built.program.launches.size(); ++i)
    for (const auto& [name, plant] : plants) {
      if (built.program.launches[i].steps.empty()) continue;
      const std::optional<Executable> wrong = planted_in(built, i, plant, kBehindFunctions);
      if (!wrong) continue;
      EXPECT_FALSE(all_ok(built.compare_with(*wrong))) << built.program.launches[i].name << ": " << name;
      ++caught;
    }
  EXPECT_GE(caught, 4);
}

INSTANTIATE_TEST_SUITE_P(Layers, PlantedStepErrors, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

/// The largest f32 is passed everywhere: no element has a bound, and a kernel that stores anything is not proven.
TEST(PlantedErrors, AreNotHiddenWhereNothingIsClaimed) {
  const ProofCase built(
      "graph (%x: f32[5,33]) { %k = const splat<200> : f32[] %a = add(%x, %k) %y = exp(%a) return %y }");
  EXPECT_TRUE(all_ok(built.compare()));
  const Executable wrong =
      built.with_wrong(0, [&](Launch& launch) { launch.region.stages.back().outputs.back().value = one(DType::f32); });
  const std::vector<GroupComparison> groups = built.compare_with(wrong);
  EXPECT_EQ(groups[0].real.unclaimed, 5 * 33);
  EXPECT_TRUE(groups[0].mostly_unclaimed);
  EXPECT_FALSE(groups[0].ok);
  CompareOptions options;
  options.most_unclaimed = 1;
  options.exact_proof = false;  // of drawn numbers the region itself is infinite, which has to be met
  EXPECT_TRUE(
      all_ok(compare_groups(built.fused, built.program, wrong, random_inputs(built.fused, {.seed = 1}), options)));
}

}  // namespace
}  // namespace opfuse
