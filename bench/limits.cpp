// Physical limits of the machine: what no program can exceed, measured with the smallest loops that reach them.
//
//   limits [--threads 1,2] [--only PREFIX[,PREFIX]] [--seconds 0.5] [--json]
//
// fma_, bf16_, int8_   multiply-add rates, operands in registers
// tile_                the same inside the register tiles a convolution or a GEMM would use (pixels x vectors of output
//                      channels: activations broadcast from L1, weights loaded from L1)
// read_, write_, copy_ memory rates; every thread has a buffer of its own, of the size in the name
//
// Needs no -m flags; rows that the processor lacks are left out. Threads are pinned to the allowed processors and start
// together; a rate is the sum over threads, best of several rounds, because a disturbance only ever makes a limit look
// lower.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "profile/limit_loops.hpp"
#include "profile/passes_per_second.hpp"
#include "tile_loops.hpp"

namespace {

using namespace bench;
using namespace opfuse;

struct Row {
  std::string name, unit;
  bool supported;
  std::function<double(int threads, double seconds)> rate;
};

Row compute_row(std::string name, bool supported, void (*loop)(int64_t), double giga_flops_per_step) {
  auto rate = [=](int threads, double seconds) {
    constexpr int64_t kSteps = 1024;
    const auto make_pass = [=](int) -> RepeatedPass { return [=] { loop(kSteps); }; };
    return passes_per_second(threads, seconds, make_pass) * kSteps * giga_flops_per_step;
  };
  return {std::move(name), "GFLOP/s", supported, rate};
}

template <int Pixels, int Vectors, bool Embedded>
Row tile_512_row(bool supported) {
  const std::string name = "tile_512_" + std::to_string(Pixels) + "x" + std::to_string(Vectors) +
                           (Embedded ? "_broadcast_per_fma" : "_broadcast_shared");
  return compute_row(name, supported, tile_512_loop<Pixels, Vectors, Embedded>,
                     2e-9 * 16 * Pixels * Vectors * kChannels);
}

template <int Pixels, int Vectors>
Row tile_256_row(bool supported) {
  return compute_row("tile_256_" + std::to_string(Pixels) + "x" + std::to_string(Vectors), supported,
                     tile_256_loop<Pixels, Vectors>, 2e-9 * 8 * Pixels * Vectors * kChannels);
}

std::vector<Row> compute_rows() {
  const bool has_512 = __builtin_cpu_supports("avx512f"), has_256 = __builtin_cpu_supports("fma");
  return {
      compute_row("fma_512", has_512, limit_loops::fma_512, 2e-9 * 16 * limit_loops::kChains),
      compute_row("fma_256", has_256, limit_loops::fma_256, 2e-9 * 8 * limit_loops::kChains),
      compute_row("bf16_512", __builtin_cpu_supports("avx512bf16"), limit_loops::bf16_512,
                  2e-9 * 32 * limit_loops::kChains),
      compute_row("int8_512", __builtin_cpu_supports("avx512vnni"), limit_loops::int8_512,
                  2e-9 * 64 * limit_loops::kChains),
      tile_512_row<28, 1, true>(has_512),
      tile_512_row<14, 2, true>(has_512),
      tile_512_row<14, 2, false>(has_512),
      tile_512_row<12, 2, false>(has_512),
      tile_512_row<9, 3, true>(has_512),
      tile_512_row<9, 3, false>(has_512),
      tile_512_row<6, 4, true>(has_512),
      tile_512_row<6, 4, false>(has_512),
      tile_256_row<6, 2>(has_256),
      tile_256_row<4, 3>(has_256),
  };
}

enum class Traffic { read, write, copy };

struct AlignedBuffer {
  float* data;
  explicit AlignedBuffer(int64_t bytes) : data(static_cast<float*>(std::aligned_alloc(4096, bytes))) {
    if (data == nullptr) std::abort();
    std::memset(data, 0, bytes);
  }
  ~AlignedBuffer() { std::free(data); }
};

void move_once(Traffic traffic, bool wide, float* data, int64_t bytes) {
  const int64_t floats = bytes / 4;
  if (traffic == Traffic::read) return wide ? limit_loops::read_512(data, floats) : limit_loops::read_256(data, floats);
  if (traffic == Traffic::write)
    return wide ? limit_loops::write_512(data, floats) : limit_loops::write_256(data, floats);
  std::memcpy(data + floats / 2, data, bytes / 2);
}

constexpr int kMemoryRounds = 5;  // a pass over 1 GiB takes a tenth of a second

Row memory_row(std::string name, Traffic traffic, int64_t bytes) {
  auto rate = [=](int threads, double seconds) {
    const bool wide = __builtin_cpu_supports("avx512f");
    const int64_t repeats = std::max<int64_t>(1, (int64_t{1} << 22) / bytes);
    const auto make_pass = [=](int) -> RepeatedPass {
      auto buffer = std::make_shared<AlignedBuffer>(bytes);
      return [=] {
        for (int64_t i = 0; i < repeats; ++i) move_once(traffic, wide, buffer->data, bytes);
      };
    };
    return passes_per_second(threads, seconds, make_pass, kMemoryRounds) * repeats * bytes * 1e-9;
  };
  return {std::move(name), "GB/s", static_cast<bool>(__builtin_cpu_supports("avx2")), rate};
}

std::vector<Row> memory_rows() {
  constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;
  std::vector<Row> rows;
  const struct {
    const char* level;
    int64_t bytes;
  } sizes[] = {{"16KiB", 16 * kKiB}, {"32KiB", 32 * kKiB}, {"512KiB", 512 * kKiB}, {"1MiB", kMiB},
               {"8MiB", 8 * kMiB},   {"32MiB", 32 * kMiB}, {"1GiB", 1024 * kMiB}};
  for (const auto& size : sizes)
    rows.push_back(memory_row(std::string("read_") + size.level, Traffic::read, size.bytes));
  for (const auto& size : sizes)
    rows.push_back(memory_row(std::string("write_") + size.level, Traffic::write, size.bytes));
  rows.push_back(memory_row("copy_1GiB", Traffic::copy, 1024 * kMiB));
  return rows;
}

struct Options {
  std::vector<int> threads = {1, static_cast<int>(std::max<size_t>(1, allowed_processors().size()))};
  std::vector<std::string> only;
  double seconds = 0.5;
  bool json = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "limits: %s\nusage: limits [--threads 1,2] [--only PREFIX[,PREFIX]] [--seconds 0.5] [--json]\n",
               problem.c_str());
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == argc) usage("unknown flag or missing value: " + flag);
    const std::string value = argv[++i];
    if (flag == "--threads") {
      options.threads.clear();
      for (const std::string& part : split(value)) options.threads.push_back(std::atoi(part.c_str()));
    } else if (flag == "--only") {
      options.only = split(value);
    } else if (flag == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else {
      usage("unknown flag: " + flag);
    }
  }
  for (int threads : options.threads)
    if (threads < 1 || threads > 1024) usage("--threads wants numbers from 1 to 1024");
  if (options.threads.empty() || !(options.seconds > 0)) usage("--threads and --seconds must not be empty or zero");
  return options;
}

bool wanted(const Row& row, const Options& options) {
  if (!row.supported) return false;
  auto matches = [&](const std::string& prefix) { return row.name.starts_with(prefix); };
  return options.only.empty() || std::any_of(options.only.begin(), options.only.end(), matches);
}

void print_row(const Row& row, const Options& options, bool first) {
  std::printf(options.json ? "%s  \"%s\": {\"unit\": \"%s\"" : "%s%-34s %-8s", options.json && !first ? ",\n" : "",
              row.name.c_str(), row.unit.c_str());
  for (int threads : options.threads)
    std::printf(options.json ? ", \"%d\": %.2f" : "  %dT %8.1f", threads, row.rate(threads, options.seconds));
  std::printf(options.json ? "}" : "\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::vector<Row> rows = compute_rows();
  for (Row& row : memory_rows()) rows.push_back(std::move(row));
  if (options.json) std::printf("{\n");
  bool first = true;
  for (const Row& row : rows) {
    if (!wanted(row, options)) continue;
    print_row(row, options, first);
    first = false;
  }
  if (options.json) std::printf("\n}\n");
}
