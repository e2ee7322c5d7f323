// What the machine's units give at most for products of a type: the fastest instruction of a target for it, measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse {

struct ProductRate {
  std::string products;     ///< "int8", "bf16"
  std::string instruction;  ///< "tdpbusd", "vpdpbusd", ...
  double gops = 0;          ///< a multiply-add counts two; all threads together
};

/// The instruction that kernels of a target with these features multiply such numbers by, operands in registers. Empty
/// name and rate 0: the target has none, or this machine lacks it, or products are f32 (measure_fma_gflops).
ProductRate measure_product_rate(std::string_view products, const std::vector<std::string>& features, int threads,
                                 double seconds = 0.1);

}  // namespace opfuse
