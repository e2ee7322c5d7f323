// Products and convolutions of 16-bit types and tf32 by mma.sync.
#include "codegen/regions.hpp"
#include "cuda/case_text.hpp"

namespace opfuse::test {
namespace {

/// k runs over 16, of which the left operand has 12, guarded; behind those lie the next row's.
std::string guarded_text() {
  return "region\nparam input f32[40,2,12]\nparam input f32[24,16]\nparam output f32[40,24]\nstage contraction\n"
         "  domain [40,24]\n  reduce [16]\n  read param 0 at [a0, 0, a2]\n  read param 1 at [a1, a2]\n"
         "  reduction sum mul(select(in0, r0, 0), r1)\n  output param 2 f32[40,24] at [a0, a1] = s0\n";
}

/// f32 results of factors that are rounded to tf32 already.
std::string widened_text(int m, int n, int k) {
  return fmt::format(
      "region\nparam input tf32[{0},{2}]\nparam constant tf32[{1},{2}]\nparam output f32[{0},{1}]\nstage contraction\n"
      "  domain [{0},{1}]\n  reduce [{2}]\n  read param 0 at [a0, a2]\n  read param 1 at [a1, a2]\n"
      "  reduction sum mul(cast<f32>(r0:tf32), cast<f32>(r1:tf32))\n  output param 2 f32[{0},{1}] at [a0, a1] = s0\n",
      m, n, k);
}

/// A tile of the skeleton: rows, columns, depth, warps' rows and columns, stages.
struct MmaTile {
  int m, n, k, warp, stages;
};

Schedule mma_schedule(const MmaTile& t, int copies, int vector) {
  return {"mma",
          {{"mma_m", t.m},
           {"mma_n", t.n},
           {"mma_k", t.k},
           {"warp", t.warp},
           {"stages", t.stages},
           {"copy_a", copies / 2},
           {"copy_b", copies % 2},
           {"vector", vector}}};
}

/// The tile sizes and ways of copying that one shape does not choose, all on one convolution.
void add_tensor_core_schedules(std::vector<CudaCase>& cases) {
  for (const MmaTile& tile : {MmaTile{64, 64, 64, 32, 3}, {128, 64, 32, 64, 4}, {128, 128, 32, 64, 4}})
    for (int copies = 0; copies < 4; ++copies)
      for (int vector : {1, 8})
        cases.push_back({.name = fmt::format("conv_half_{}x{}_{}{}_{}", tile.m, tile.n, copies / 2, copies % 2, vector),
                         .region = retyped(conv_region({.c = 24, .h = 5, .w = 5, .o = 24}), "f16"),
                         .schedule = mma_schedule(tile, copies, vector),
                         .tolerance = 2e-3});
}

/// Steps that stay within a tap of the window: a thread has several chunks of a row, borders and jumps count steps.
/// Rows are equally far apart or not, ragged, the window dilated; the depth of a step is chosen, or twice that.
void add_windows_of_whole_steps(std::vector<CudaCase>& cases) {
  cases.push_back(half("conv_half_taps", conv_region({.c = 64, .h = 9, .w = 9, .o = 72})));
  cases.push_back(half("conv_half_taps_deep", conv_region({.c = 128, .h = 13, .w = 5, .o = 40, .stride = 2})));
  cases.push_back(half("conv_half_taps_dilated",
                       conv_region({.n = "2", .c = 64, .h = 7, .w = 6, .o = 24, .pad = 2, .dilation = 2})));
  cases.push_back(tf32("conv_tf32_taps", conv_region({.c = 32, .h = 6, .w = 7, .o = 24, .kh = 1, .kw = 5, .pad = 2})));
  const auto add = [&](const char* what, const Conv& conv, const MmaTile& tile) {
    cases.push_back(half(fmt::format("conv_half_taps_{}_{}x{}", what, tile.m, tile.n), conv_region(conv)));
    cases.back().schedule = mma_schedule(tile, 3, 8);
  };
  add("even", {.c = 32, .h = 7, .w = 11, .o = 72}, {128, 64, 32, 64, 4});
  add("strided", {.n = "2", .c = 64, .h = 13, .w = 15, .o = 40, .stride = 2}, {128, 64, 32, 64, 4});
  add("bare", {.c = 32, .h = 9, .w = 14, .o = 136, .pad = 0}, {128, 128, 32, 64, 4});
}

/// Patches of an image whose channels lie apart: windows that do not overlap, read along their rows.
std::string patches_text(int n, int channels, int size, int rows, int columns, int results) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{6},{7}]\nparam constant f32[{5},{1},{2},{2}]\n"
      "param output f32[{0},{5},{3},{4}]\nstage contraction\n  domain [{0},{5},{3},{4}]\n  reduce [{2},{1},{2}]\n"
      "  read param 0 at [a0, a5, {2}*a2 + a6, {2}*a3 + a4]\n  read param 1 at [a1, a5, a6, a4]\n"
      "  reduction sum mul(r0, r1)\n  output param 2 f32[{0},{5},{3},{4}] at [a0, a1, a2, a3] = s0\n",
      n, channels, size, rows, columns, results, size * rows, size * columns);
}

/// Steps that hold several rows of a window, or several channels: chunks of a thread lie as far apart as those do.
void add_steps_of_several_rows(std::vector<CudaCase>& cases) {
  const auto add = [&](CudaCase c, const MmaTile& tile, int vector) {
    c.schedule = mma_schedule(tile, 3, vector);
    cases.push_back(std::move(c));
  };
  add(tf32("patches_tf32_16", patches_text(1, 3, 16, 3, 5, 40)), {64, 64, 32, 32, 3}, 4);
  add(half("patches_half_8_deep", patches_text(3, 5, 8, 2, 3, 24)), {64, 64, 64, 32, 3}, 8);
}

/// Stems: rows that a thread gathers, more taps than 32, ragged, unpadded.
void add_gathered_rows(std::vector<CudaCase>& cases) {
  const auto add = [&](CudaCase c, const MmaTile& tile, int vector) {
    c.schedule = mma_schedule(tile, 0, vector);
    cases.push_back(std::move(c));
  };
  const Conv stem = {.n = "3", .c = 3, .h = 15, .w = 13, .o = 72, .kh = 7, .kw = 7, .stride = 2, .pad = 3};
  add(half("conv_half_stem_gathered", conv_region(stem)), {128, 64, 32, 64, 4}, 8);
  const Conv patches = {.n = "7", .c = 3, .h = 20, .w = 24, .o = 40, .kh = 4, .kw = 4, .stride = 4, .pad = 0};
  add(half("conv_half_patches_gathered", conv_region(patches)), {128, 128, 32, 64, 4}, 8);
  const Conv wide = {.c = 3, .h = 12, .w = 17, .o = 20, .kh = 5, .kw = 5, .stride = 2, .pad = 2};
  add(tf32("conv_tf32_stem_gathered", conv_region(wide)), {128, 64, 16, 64, 4}, 4);
}

void add_tf32_schedules(std::vector<CudaCase>& cases) {
  const auto add = [&](const MmaTile& tile, int copies, int vector) {
    cases.push_back({.name = fmt::format("conv_tf32_{}x{}_{}{}_{}", tile.m, tile.n, copies / 2, copies % 2, vector),
                     .region = retyped(conv_region({.c = 12, .h = 5, .w = 5, .o = 20}), "tf32"),
                     .schedule = mma_schedule(tile, copies, vector),
                     .tolerance = 2e-3});
  };
  for (const MmaTile& tile : {MmaTile{64, 64, 32, 32, 3}, {128, 64, 16, 64, 4}, {128, 128, 16, 64, 4}}) add(tile, 3, 4);
  add({64, 64, 32, 32, 3}, 0, 1);
  add({128, 64, 16, 64, 4}, 1, 4);
  add({128, 128, 16, 64, 4}, 2, 1);
}

}  // namespace

const std::vector<CudaCase>& tensor_core_cases() {
  static const std::vector<CudaCase> cases = {
      half("gemm_half", gemm_region("64", 64, 64)),
      half("gemm_half_odd", gemm_region("37", 53, 71)),
      half("gemm_half_8", gemm_region("100", 72, 136)),
      half("gemm_half_deep", gemm_region("37", 53, 811)),
      half("gemm_half_five", gemm_region("50", 40, 320)),
      half("conv_half_deep", conv_region({.c = 32, .h = 9, .w = 9, .o = 40})),
      half("conv_half_deep_odd", conv_region({.c = 27, .h = 11, .w = 7, .o = 45, .stride = 2})),
      half("gemm_half_untransposed", gemm_region("50", 40, 40, false)),
      half("gemm_half_open", gemm_region("n", 24, 24), kSizes),
      half("gemm_half_large", gemm_region("200", 130, 96)),
      half("gemm_half_guarded", guarded_text()),
      half("batched_half", batched_text("3", 17, 24, 16)),
      half("conv_half", conv_region({.c = 16, .h = 9, .w = 9, .o = 24})),
      half("conv_half_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})),
      half("conv_half_1x1",
           conv_region({.c = 24, .h = 7, .w = 7, .o = 32, .kh = 1, .kw = 1, .pad = 0, .residual = true})),
      half("conv_half_stem", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})),
      half("conv_half_groups", conv_region({.c = 16, .h = 6, .w = 6, .o = 32, .group = 2})),
      half("conv_half_dilated", conv_region({.c = 8, .h = 10, .w = 10, .o = 16, .pad = 2, .dilation = 2})),
      half("conv_half_open", conv_region({.n = "n", .c = 8, .h = 5, .w = 5, .o = 8}), kSizes),
      bfloat("gemm_bfloat", gemm_region("64", 64, 64)),
      bfloat("conv_bfloat", conv_region({.c = 16, .h = 9, .w = 9, .o = 24, .residual = true})),
      half("gemm_half_least", gemm_region("8", 8, 8)),
      half("gemm_half_prime", gemm_region("11", 13, 17)),
      half("conv_half_least", conv_region({.c = 8, .h = 3, .w = 3, .o = 8})),
      half("conv_half_prime", conv_region({.c = 7, .h = 13, .w = 11, .o = 17, .kh = 5, .kw = 3})),
      bfloat("gemm_bfloat_prime", gemm_region("67", 29, 31)),
      bfloat("conv_bfloat_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})),
      {.name = "gemm_half_128",
       .region = retyped(gemm_region("130", 72, 168), "f16"),
       .schedule = mma_schedule({128, 64, 32, 64, 4}, 3, 8),
       .tolerance = 2e-3},
      {"gemm_tf32", widened_text(64, 64, 64)},
      {"gemm_tf32_8", widened_text(100, 72, 68)},
      tf32("gemm_tf32_odd", gemm_region("37", 53, 71)),
      tf32("gemm_tf32_open", gemm_region("n", 24, 24), kSizes),
      tf32("conv_tf32", conv_region({.c = 12, .h = 9, .w = 9, .o = 24, .stride = 2, .residual = true})),
      tf32("conv_tf32_stem", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})),
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_tensor_core_schedules(list);
    add_windows_of_whole_steps(list);
    add_steps_of_several_rows(list);
    add_gathered_rows(list);
    add_tf32_schedules(list);
    return list;
  }();
  return all;
}

}  // namespace opfuse::test
