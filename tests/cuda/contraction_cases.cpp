// Products and convolutions without tensor cores.
#include "codegen/regions.hpp"
#include "cuda/case_text.hpp"

namespace opfuse::test {
namespace {

/// Every tile of the skeleton without tensor cores.
void add_tile_schedules(std::vector<CudaCase>& cases) {
  for (int per : {2, 4, 8})
    for (int depth : {8, 16})
      cases.push_back(
          {.name = fmt::format("gemm_{}_{}", per, depth),
           .region = gemm_region("37", 29, 21),
           .schedule = {
               "tiles",
               {{"tile_m", 16 * per}, {"tile_n", 16 * per}, {"tile_k", depth}, {"per_m", per}, {"per_n", per}}}});
}

}  // namespace

const std::vector<CudaCase>& contraction_cases() {
  static const std::vector<CudaCase> cases = {
      {"gemm", gemm_region("64", 64, 64)},
      {"gemm_odd", gemm_region("37", 53, 71)},
      {"gemm_least", gemm_region("4", 4, 1)},
      {"gemm_prime", gemm_region("13", 17, 19)},
      {"gemm_one", gemm_region("1", 1, 1)},
      half("gemm_half_tiles", gemm_region("5", 7, 3)),
      half("gemm_half_vector", gemm_region("1", 37, 130)),
      bfloat("gemm_bfloat_tiles", gemm_region("7", 11, 13)),
      {"conv_one", conv_region({.c = 1, .h = 1, .w = 1, .o = 1})},
      {"conv_prime", conv_region({.c = 3, .h = 13, .w = 11, .o = 17, .kh = 5, .kw = 3})},
      {"gemm_untransposed", gemm_region("50", 33, 40, false)},
      {"gemm_open", gemm_region("n", 24, 19), kSizes},
      {"gemm_vector", gemm_region("1", 40, 130)},
      {"gemm_vector_untransposed", gemm_region("1", 130, 40, false)},
      {.name = "gemm_large_tiles",
       .region = gemm_region("150", 140, 40),
       .schedule = {"tiles", {{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 16}, {"per_m", 8}, {"per_n", 8}}}},
      {"batched", batched_text("3", 17, 20, 9)},
      {"batched_deep", batched_text("3", 17, 20, 39)},
      {"batched_open", batched_text("n", 8, 8, 16), kSizes},
      {"conv", conv_region({.c = 8, .h = 9, .w = 9, .o = 16})},
      {"conv_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})},
      {"conv_1x1", conv_region({.c = 24, .h = 7, .w = 7, .o = 20, .kh = 1, .kw = 1, .pad = 0, .residual = true})},
      {"conv_7x7", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})},
      {"conv_groups", conv_region({.c = 12, .h = 6, .w = 6, .o = 18, .group = 3})},
      {"conv_groups_many", conv_region({.c = 16, .h = 5, .w = 5, .o = 32, .group = 8})},
      {"conv_dilated", conv_region({.c = 6, .h = 10, .w = 10, .o = 7, .pad = 2, .dilation = 2})},
      {"conv_open", conv_region({.n = "n", .c = 4, .h = 5, .w = 5, .o = 6}), kSizes},
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_tile_schedules(list);
    return list;
  }();
  return all;
}

}  // namespace opfuse::test
