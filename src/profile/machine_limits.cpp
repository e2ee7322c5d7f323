// Each limit is the rate of a loop of limit_loops.hpp, or of the loads of a working set.
#include "profile/machine_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "profile/limit_loops.hpp"
#include "profile/passes_per_second.hpp"

namespace opfuse {
namespace {

void fma_steps(int vector_bytes, int64_t steps) {
  if (vector_bytes == 64) return limit_loops::fma_512(steps);
  if (vector_bytes == 32) return limit_loops::fma_256(steps);
  limit_loops::multiply_add_128(steps);
}

void read_floats(int vector_bytes, const float* data, int64_t floats) {
  if (vector_bytes == 64) return limit_loops::read_512(data, floats);
  if (vector_bytes == 32) return limit_loops::read_256(data, floats);
  limit_loops::read_128(data, floats);
}

/// Data cache of a level: what the kernel says of the first processor, else the C library. (A virtual machine may show
/// the whole socket's L3 in one place and its own share in the other: the smaller one counts.)
int64_t cache_bytes(int level, int name, int64_t otherwise) {
  int64_t least = std::max<int64_t>(sysconf(name), 0);
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string type, size;
    int at = 0;
    if (!(std::ifstream(folder + "level") >> at) || at != level) continue;
    if (!(std::ifstream(folder + "type") >> type) || type == "Instruction") continue;
    if (!(std::ifstream(folder + "size") >> size) || size.empty()) continue;
    const int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    const int64_t bytes = std::strtoll(size.c_str(), nullptr, 10) * unit;
    if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
  }
  return least > 0 ? least : otherwise;
}

}  // namespace

int widest_vector_bytes() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 64;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 16;
}

double measure_fma_gflops(int threads, int vector_bytes, double seconds) {
  if (vector_bytes == 0 || vector_bytes > widest_vector_bytes()) vector_bytes = widest_vector_bytes();
  constexpr int64_t kSteps = 4096;
  const int chains = vector_bytes == 16 ? limit_loops::kChains / 2 : limit_loops::kChains;
  const double flop_per_pass = 2.0 * kSteps * chains * vector_bytes / 4;
  return 1e-9 * flop_per_pass * passes_per_second(std::max(1, threads), seconds, [=](int) -> RepeatedPass {
           return [=] { fma_steps(vector_bytes, kSteps); };
         });
}

double measure_clock_hz(double seconds) {
  constexpr int64_t kSteps = 4096, kAdditions = 16;
  return static_cast<double>(kSteps * kAdditions) * passes_per_second(1, seconds, [](int) -> RepeatedPass {
           return [] { limit_loops::dependent_additions(kSteps); };
         });
}

double measure_read_gb_per_s(int threads, int64_t bytes, double seconds) {
  threads = std::max(1, threads);
  const int64_t floats = std::max<int64_t>(64, bytes / threads / 4 / 64 * 64);
  const int64_t repeats = std::max<int64_t>(1, (int64_t{1} << 18) / floats);
  // Of a large set a pass reads the next 8 MB, not all.
  const int64_t piece = std::min<int64_t>(floats, int64_t{1} << 21);
  const int width = widest_vector_bytes();
  const double rate = passes_per_second(threads, seconds, [=](int) -> RepeatedPass {
    const auto data = std::make_shared<std::vector<float>>(static_cast<size_t>(floats), 1.0f);
    return [=, at = int64_t{0}]() mutable {
      for (int64_t i = 0; i < repeats; ++i) read_floats(width, data->data() + at, piece);
      at = at + 2 * piece <= floats ? at + piece : 0;
    };
  });
  return 1e-9 * rate * static_cast<double>(repeats * piece) * 4;
}

MachineLimits measure_limits(int threads, int vector_bytes, bool memory) {
  MachineLimits limits;
  limits.threads = std::max(1, threads);
  limits.vector_bytes = vector_bytes == 0 ? widest_vector_bytes() : std::min(vector_bytes, widest_vector_bytes());
  limits.fma_gflops = measure_fma_gflops(limits.threads, limits.vector_bytes);
  if (!memory) return limits;
  const int64_t l1 = cache_bytes(1, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  const int64_t l2 = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const int64_t l3 = std::max(cache_bytes(3, _SC_LEVEL3_CACHE_SIZE, 32 << 20), l2 * limits.threads * 4);
  // (what still counts as this level, the working set it is measured with)
  const std::pair<int64_t, int64_t> levels[] = {{l1 * limits.threads, l1 * limits.threads / 2},
                                                {l2 * limits.threads, l2 * limits.threads / 2},
                                                {l3 / 4, l3 / 8},
                                                {l3, l3 / 2}};
  for (const auto& [holds, working_set] : levels)
    limits.reads.push_back({holds, measure_read_gb_per_s(limits.threads, working_set)});
  const int64_t outside = std::max<int64_t>(4 * l3, 128 << 20);
  limits.reads.push_back({outside, measure_read_gb_per_s(limits.threads, outside, 0.1)});
  // A larger level is never faster: what a disturbed measurement of a smaller one says is corrected upwards.
  for (size_t i = limits.reads.size() - 1; i-- > 0;)
    limits.reads[i].gb_per_s = std::max(limits.reads[i].gb_per_s, limits.reads[i + 1].gb_per_s);
  return limits;
}

double MachineLimits::read_gb_per_s(double bytes) const {
  for (const ReadRate& level : reads)
    if (bytes <= static_cast<double>(level.bytes)) return level.gb_per_s;
  return reads.empty() ? 0 : reads.back().gb_per_s;
}

const ProductRate* MachineLimits::rate_of(std::string_view type) const {
  for (const ProductRate& rate : products)
    if (rate.products == type) return &rate;
  return nullptr;
}

double MachineLimits::gops(std::string_view type) const {
  const ProductRate* rate = rate_of(type);
  return rate ? rate->gops : fma_gflops;
}

}  // namespace opfuse
