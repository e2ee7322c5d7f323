// In the order of rates: the first row that target and machine have is what kernels use.
#include "profile/product_rates.hpp"

#include <algorithm>

#include "profile/limit_loops.hpp"
#include "profile/passes_per_second.hpp"
#include "target/target_file.hpp"

namespace opfuse {
namespace {

struct Unit {
  std::string_view products, feature;
  const char* instruction;
  void (*loop)(int64_t steps);
  double operations;  ///< of a step
};

constexpr double kMatrix = 16.0 * 16.0 * limit_loops::kMatrixSums;  ///< sums of a step
constexpr double kLanes512 = 16.0 * limit_loops::kChains, kLanes256 = 8.0 * limit_loops::kChains;
constexpr Unit kUnits[] = {
    {"int8", "amx-int8", "tdpbusd", limit_loops::int8_matrix, 2 * 64 * kMatrix},
    {"int8", "avx512vnni", "vpdpbusd", limit_loops::int8_512, 2 * 4 * kLanes512},
    {"int8", "avxvnni", "vpdpbusd", limit_loops::int8_256, 2 * 4 * kLanes256},
    {"int8", "avx512bw", "vpmaddwd", limit_loops::words_512, 2 * 2 * kLanes512},
    {"int8", "avx2", "vpmaddubsw", limit_loops::pairs_256, 2 * 4 * kLanes256},
    {"bf16", "amx-bf16", "tdpbf16ps", limit_loops::bf16_matrix, 2 * 32 * kMatrix},
    {"bf16", "avx512bf16", "vdpbf16ps", limit_loops::bf16_512, 2 * 2 * kLanes512},
};

bool has(const std::vector<std::string>& features, std::string_view name) {
  return std::find(features.begin(), features.end(), name) != features.end();
}

}  // namespace

ProductRate measure_product_rate(std::string_view products, const std::vector<std::string>& features, int threads,
                                 double seconds) {
  const std::vector<std::string> here = host_features();
  for (const Unit& unit : kUnits) {
    if (unit.products != products || !has(features, unit.feature) || !has(here, unit.feature)) continue;
    constexpr int64_t kSteps = 1024;
    const double passes = passes_per_second(std::max(1, threads), seconds,
                                            [&](int) -> RepeatedPass { return [loop = unit.loop] { loop(kSteps); }; });
    return {std::string(products), unit.instruction, 1e-9 * passes * kSteps * unit.operations};
  }
  return {};
}

}  // namespace opfuse
