// Products of groups of four warps: ragged in rows, columns and depth, one step and more than the ring holds, copied
// and filled element by element, one group and two, widened operands. Attention: ragged, masked, strided, of open
// length.
#include <limits>

#include "codegen/attention_regions.hpp"
#include "codegen/regions.hpp"
#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

CudaCase with(const std::string& name, const std::string& region, int rows, int columns, int stages, int copies,
              int vector, const std::string& type = "f16") {
  return {.name = "wgmma_" + name,
          .region = type == "f32" ? region : retyped(region, type),
          .schedule = {"wgmma",
                       {{"mma_m", rows},
                        {"mma_n", columns},
                        {"stages", stages},
                        {"copy_a", copies / 2},
                        {"copy_b", copies % 2},
                        {"vector", vector}}},
          .tolerance = type == "bf16"  ? 1e-2
                       : type == "f32" ? 2e-5
                                       : 2e-3};
}

/// Blocks that stay, fed by the copy engine; `boxes`: results leave as boxes.
CudaCase stays(const std::string& name, const std::string& region, int rows, int columns, int stages, int blocks,
               int boxes, const std::string& type = "f16", int vector = 8, int maps = 3, int copies = 0) {
  return {.name = "tma_" + name,
          .region = type == "f32" ? region : retyped(region, type),
          .schedule = {"tma",
                       {{"mma_m", rows},
                        {"mma_n", columns},
                        {"stages", stages},
                        {"blocks", blocks},
                        {"map_a", maps / 2},
                        {"map_b", maps % 2},
                        {"map_y", boxes},
                        {"copy_a", copies / 2},
                        {"copy_b", copies % 2},
                        {"vector", vector}}},
          .tolerance = type == "bf16"  ? 1e-2
                       : type == "f32" ? 2e-5
                                       : 2e-3};
}

/// Attention by boxes.
CudaCase attends(const std::string& name, const std::string& region, int groups, int keys, int stages, int vector = 8,
                 const std::string& type = "f16") {
  return {.name = "attention_tma_" + name,
          .region = retyped(region, type),
          .schedule = {"attention_tma", {{"groups", groups}, {"keys", keys}, {"stages", stages}, {"vector", vector}}},
          .tolerance = type == "bf16" ? 1e-2 : 2e-3};
}

CudaCase attends(const std::string& name, const Sizes& sizes, int groups, int keys, int stages, int vector = 8,
                 const std::string& type = "f16") {
  return attends(name, attention_region(sizes), groups, keys, stages, vector, type);
}

Sizes with_prologues_of_queries(Sizes s) {
  s.query = "div(r0, 1.5)";
  return s;
}

/// Batch and heads as one axis of which parts index, as regions of whole models have it.
std::string merged_heads(int batch, int tokens, int heads, int depth) {
  std::string text = attention_region(sized(tokens, tokens, depth, depth, std::to_string(batch * heads)));
  const auto replace = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  const std::string own = fmt::format("f32[{},{},{}]", batch * heads, tokens, depth);
  replace(fmt::format("param input {0}\nparam input {0}\nparam input {0}\nparam output {0}", own),
          fmt::format("param input f32[{0},{1},{2}]\nparam output f32[{0},{1},{3}]", tokens, batch, 3 * heads * depth,
                      heads * depth));
  const std::string part = fmt::format("a0/{0}, a3 + {1}*a0%{0}", heads, depth);
  replace("read param 0 at [a0, a1, a3]", fmt::format("read param 0 at [a1, {}]", part));
  replace("read param 1 at [a0, a2, a3]", fmt::format("read param 0 at [a2, {} + {}]", part, heads * depth));
  replace("read param 2 at [a0, a3, a2]",
          fmt::format("read param 0 at [a3, a0/{0}, a2 + {1}*a0%{0} + {2}]", heads, depth, 2 * heads * depth));
  replace(fmt::format("output param 3 {} at [a0, a1, a2]", own),
          fmt::format("output param 1 f32[{0},{1},{2}] at [a1, a0/{3}, a2 + {4}*a0%{3}]", tokens, batch, heads * depth,
                      heads, depth));
  return text;
}

std::vector<CudaCase> attention_by_boxes() {
  Sizes heads = sized(75, 75, 64, 64, "3");
  heads.heads_inside = true;
  Sizes open = sized(0, 0, 24, 24, "1");
  open.rows = "m", open.keys = "n";
  const Sizes computed = with_prologues_of_queries(sized(75, 150, 24, 40, "1"));
  const Sizes added = masked(sized(70, 150, 24, 40), "f32[70,150]", "a1, a2", "add(s0, r2)");
  std::vector<CudaCase> all = {
      attends("tile", sized(64, 64, 64, 64, "1"), 1, 64, 2),
      attends("ragged", sized(150, 197, 64, 64), 2, 64, 2),
      attends("three_stages", sized(67, 330, 32, 64, "1"), 1, 64, 3),
      attends("wide_steps", sized(130, 300, 64, 64, "1"), 2, 128, 2),
      attends("panels", sized(67, 130, 128, 128, "1"), 1, 64, 2),
      attends("panels_of_values", sized(130, 70, 64, 128, "1"), 2, 64, 2),
      attends("parts_of_panels", sized(66, 150, 80, 72, "1"), 1, 64, 2),
      attends("merged", merged_heads(2, 75, 3, 64), 2, 64, 2),
      attends("strided", heads, 2, 64, 2),
      attends("bias", added, 2, 64, 2),
      attends("causal", masked(sized(90, 90, 16, 24), "", "", "select(le(i2, i1), s0, -60000)"), 1, 64, 2),
      attends("one_by_one", sized(65, 65, 8, 8), 1, 64, 2, 1),
      attends("computed_queries", computed, 2, 64, 2),
      attends("computed_panels", with_prologues_of_queries(sized(70, 66, 72, 128)), 1, 64, 2),
      attends("bfloat", sized(70, 90, 48, 24), 1, 64, 2, 8, "bf16"),
      attends("open", open, 2, 64, 2),
  };
  all.back().bindings = {{{"m", 1}, {"n", 1}}, {{"m", 70}, {"n", 130}}, {{"m", 129}, {"n", 64}}};
  CudaCase hidden = attends("without_keys", zero_without_keys(added), 2, 64, 2);
  const Tensor mask = holes(70, 150, -std::numeric_limits<double>::infinity(), 0);
  Tensor narrow(DType::f16, mask.sizes());
  for (int64_t e = 0; e < mask.elements(); ++e) narrow.set_real(e, mask.real(e));
  hidden.given[4] = narrow;
  all.push_back(hidden);
  return all;
}

/// f32 results of operands that are stored in 16 bits, or as tf32.
std::string widened(const std::string& type, int m, int n, int k) {
  return fmt::format(
      "region\nparam input {0}[{1},{3}]\nparam constant {0}[{2},{3}]\nparam output f32[{1},{2}]\nstage contraction\n"
      "  domain [{1},{2}]\n  reduce [{3}]\n  read param 0 at [a0, a2]\n  read param 1 at [a1, a2]\n"
      "  reduction sum mul(cast<f32>(r0:{0}), cast<f32>(r1:{0}))\n  output param 2 f32[{1},{2}] at [a0, a1] = s0\n",
      type, m, n, k);
}

}  // namespace

const std::vector<CudaCase>& hopper_cases() {
  static const std::vector<CudaCase> kProducts = {
      with("tile", gemm_region("128", 64, 64), 128, 64, 3, 3, 8),
      with("two_groups", gemm_region("130", 40, 200), 128, 64, 3, 3, 8),
      with("ragged", gemm_region("130", 72, 168), 128, 64, 3, 3, 8),
      with("wide", gemm_region("70", 136, 320), 64, 128, 2, 3, 8),
      with("deep", gemm_region("66", 40, 456), 64, 64, 4, 3, 8),
      with("elements", gemm_region("67", 53, 71), 64, 64, 3, 0, 1),
      with("one_copied", gemm_region("67", 56, 136, false), 64, 64, 3, 2, 8),
      with("conv", conv_region({.c = 24, .h = 9, .w = 9, .o = 72, .residual = true}), 64, 64, 3, 3, 8),
      with("conv_strided", conv_region({.c = 16, .h = 13, .w = 11, .o = 64, .stride = 2}), 64, 64, 3, 3, 8),
      with("conv_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2}), 64, 64, 2, 0, 1),
      with("bfloat", gemm_region("100", 64, 136), 128, 64, 3, 3, 8, "bf16"),
      stays("tile", gemm_region("128", 64, 64), 128, 64, 2, 1, 1),
      stays("ragged", gemm_region("150", 72, 168), 128, 64, 2, 2, 1),
      stays("wide", gemm_region("70", 136, 328), 64, 128, 2, 1, 1),
      stays("widest", gemm_region("70", 264, 72), 64, 256, 2, 1, 0),
      stays("deep", gemm_region("130", 40, 456), 64, 64, 3, 2, 1),
      stays("odd_columns", gemm_region("67", 53, 72), 64, 64, 3, 1, 0, "f16", 1),
      stays("conv", conv_region({.c = 24, .h = 9, .w = 9, .o = 72, .residual = true}), 64, 64, 3, 2, 1),
      stays("conv_strided", conv_region({.c = 16, .h = 13, .w = 11, .o = 64, .stride = 2}), 64, 64, 3, 1, 1),
      stays("conv_deep", conv_region({.c = 72, .h = 5, .w = 16, .o = 80}), 128, 64, 2, 1, 1),
      stays("bfloat", gemm_region("100", 64, 136), 128, 64, 2, 1, 1, "bf16"),
      stays("widened", widened("f16", 70, 72, 136), 64, 64, 3, 1, 0, "f32", 4),
      stays("copied", gemm_region("150", 72, 328), 128, 64, 3, 1, 0, "f16", 8, 1, 2),
      stays("copied_right", gemm_region("67", 72, 456), 64, 64, 3, 1, 1, "f16", 8, 2, 1),
      stays("conv_copied", conv_region({.c = 24, .h = 9, .w = 9, .o = 72}), 64, 64, 3, 2, 1, "f16", 8, 1, 2),
      stays("elements", gemm_region("67", 64, 136), 64, 64, 3, 1, 1, "f16", 8, 1, 0),
      stays("nothing_mapped", gemm_region("67", 56, 71), 64, 64, 3, 1, 0, "f16", 8, 0, 0),
      with("widened", widened("f16", 70, 72, 136), 64, 64, 3, 3, 4, "f32"),
      with("tf32", widened("tf32", 130, 40, 100), 128, 64, 3, 3, 4, "f32"),
      with("conv_tf32", conv_region({.c = 12, .h = 9, .w = 9, .o = 72, .residual = true}), 64, 128, 2, 3, 4, "tf32"),
      with("tf32_elements", gemm_region("67", 53, 71), 64, 64, 3, 0, 1, "tf32"),
      stays("tf32", widened("tf32", 150, 72, 84), 128, 64, 2, 2, 0, "f32", 4),
      stays("tf32_widest", widened("tf32", 70, 264, 36), 64, 256, 2, 1, 0, "f32", 4),
      stays("conv_tf32", conv_region({.c = 36, .h = 9, .w = 16, .o = 80, .stride = 2}), 128, 128, 2, 1, 0, "tf32", 4),
      stays("tf32_copied", widened("tf32", 150, 72, 164), 128, 64, 3, 1, 0, "f32", 4, 1, 2),
      stays("tf32_elements", gemm_region("67", 64, 68), 64, 64, 3, 1, 0, "tf32", 4, 1, 0),
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = kProducts;
    for (CudaCase& c : attention_by_boxes()) list.push_back(std::move(c));
    return list;
  }();
  return all;
}

}  // namespace opfuse::test
