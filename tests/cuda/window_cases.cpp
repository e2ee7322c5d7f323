// Depthwise convolutions and pooling.
#include "codegen/regions.hpp"
#include "cuda/case_text.hpp"

namespace opfuse::test {
namespace {

/// Columns of a thread that small images do not choose: ragged, strided and dilated ones.
void add_depthwise_schedules(std::vector<CudaCase>& cases) {
  for (int columns : {4, 7, 8}) {
    const auto add = [&](const char* what, const Conv& conv) {
      CudaCase c = half(fmt::format("depthwise_{}_{}", what, columns), conv_region(conv));
      c.schedule = {"depthwise", {{"columns", columns}, {"block", 128}}};
      cases.push_back(c);
    };
    add("ragged", {.c = 16, .h = 6, .w = 9, .o = 16, .group = 16, .residual = true});
    add("wide", {.c = 8, .h = 5, .w = 16, .o = 8, .kh = 7, .kw = 7, .pad = 3, .group = 8});
    add("strided", {.c = 24, .h = 9, .w = 15, .o = 24, .stride = 2, .group = 24});
    add("dilated", {.c = 8, .h = 9, .w = 11, .o = 8, .pad = 2, .dilation = 2, .group = 8});
    add("unpadded", {.c = 8, .h = 5, .w = 13, .o = 8, .kh = 3, .kw = 5, .pad = 0, .group = 8});
  }
}

}  // namespace

const std::vector<CudaCase>& window_cases() {
  static const std::vector<CudaCase> cases = {
      {"depthwise", conv_region({.c = 32, .h = 14, .w = 14, .o = 32, .group = 32})},
      {"depthwise_strided", conv_region({.c = 5, .h = 15, .w = 17, .o = 5, .stride = 2, .group = 5})},
      {"depthwise_5x5", conv_region({.c = 3, .h = 7, .w = 7, .o = 3, .kh = 5, .kw = 5, .pad = 2, .group = 3})},
      {"depthwise_dilated", conv_region({.c = 4, .h = 9, .w = 11, .o = 4, .pad = 2, .dilation = 2, .group = 4})},
      {"depthwise_residual",
       conv_region({.c = 19, .h = 9, .w = 9, .o = 19, .group = 19, .residual = true, .activation = "exp({})"})},
      {"depthwise_open", conv_region({.n = "n", .c = 7, .h = 9, .w = 9, .o = 7, .group = 7}), kSizes},
      {"depthwise_one", conv_region({.c = 2, .h = 1, .w = 1, .o = 2, .group = 2})},
      half("depthwise_half", conv_region({.c = 16, .h = 9, .w = 9, .o = 16, .group = 16})),
      half("depthwise_half_prime", conv_region({.c = 13, .h = 7, .w = 5, .o = 13, .stride = 2, .group = 13})),
      bfloat("depthwise_bfloat",
             conv_region({.c = 24, .h = 5, .w = 7, .o = 24, .kh = 5, .kw = 5, .pad = 2, .group = 24})),
      {"max_pool_one", pool_region({.c = 1, .h = 1, .w = 1}, "max")},
      half("max_pool_half", pool_region({.c = 7, .h = 13, .w = 11, .stride = 2}, "max")),
      half("mean_pool_half", pool_region({.c = 8, .h = 7, .w = 7, .kh = 7, .kw = 7, .pad = 0}, "sum")),
      {"max_pool", pool_region({.c = 8, .h = 15, .w = 13, .stride = 2}, "max")},
      {"max_pool_2x2", pool_region({.c = 3, .h = 10, .w = 10, .kh = 2, .kw = 2, .stride = 2, .pad = 0}, "max")},
      {"mean_pool", pool_region({.c = 5, .h = 9, .w = 9}, "sum")},
      {"min_pool", pool_region({.c = 3, .h = 9, .w = 9, .stride = 2, .pad = 0}, "min")},
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_depthwise_schedules(list);
    return list;
  }();
  return all;
}

}  // namespace opfuse::test
