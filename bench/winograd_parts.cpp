// One convolution seven times in a row, its weights from memory each time, computed by each algorithm and cut in other
// ways than the cost model does: what the constants of cpu/winograd/winograd_cost.cpp and the rates of targets/x86.toml
// come from.
//
//   winograd_parts THREADS  N,C,O,H,W ALGORITHM[:PARTS_O:PARTS_P:CHUNK] ...  [N,C,O,H,W ALGORITHM...] ...
//   winograd_parts 2  1,256,256,14,14 direct f2 f4x2 f4x2:2:2:14 f4
//
// Prints the median of the inner convolutions in milliseconds, measured and predicted (at 3.8 GHz).
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>

#include "base/integers.hpp"
#include "cpu/winograd/winograd_cost.hpp"
#include "driver/measure_launches.hpp"
#include "driver/pipeline.hpp"
#include "ops/registry.hpp"

namespace {

using namespace opfuse;

constexpr int kConvolutions = 7;
constexpr double kGigahertz = 3.8;

std::vector<int64_t> numbers(const std::string& text, char separator) {
  std::vector<int64_t> all;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) all.push_back(std::atoll(part.c_str()));
  return all;
}

/// The convolutions, and two products with 64 MB of weights each that push theirs out of L3.
Graph chain(const std::vector<int64_t>& s) {
  std::string text = fmt::format(
      "graph (%x: f32[{},{},{},{}], %z: f32[1,4096]) {{\n"
      " %v1 = const rand<77> : f32[4096,4096]\n %v2 = const rand<78> : f32[4096,4096]\n"
      " %q1 = matmul(%z, %v1)\n %q2 = matmul(%q1, %v2)\n",
      s[0], s[1], s[3], s[4]);
  std::string last = "%x";
  for (int i = 0; i < kConvolutions; ++i) {
    const int64_t in = i % 2 ? s[2] : s[1], out = i % 2 ? s[1] : s[2];
    text += fmt::format(
        " %w{0} = const rand<{1}> : f32[{2},{3},3,3]\n"
        " %c{0} = conv({4}, %w{0}) {{pads = [1,1,1,1], kernel_shape = [3,3]}}\n %r{0} = relu(%c{0})\n",
        i, i + 1, out, in, last);
    last = fmt::format("%r{}", i);
  }
  return parse_graph(text + fmt::format(" return {}, %q2\n}}\n", last), ops());
}

void cut(Schedule& s, const std::vector<int64_t>& knobs, const TargetInfo& target) {
  if (s.get("winograd_h", 0) == 0 || knobs.size() != 3) return;
  const int64_t vectors = s.get("nv", 1), width = winograd_width(knobs[2], vectors, false, target);
  s.set("parts_o", knobs[0]);
  s.set("parts_p", knobs[1]);
  s.set("chunk", knobs[2]);
  s.set("tile_w", width);
  const int64_t lines = kWinogradUnrolled * vectors * target.lanes_f32() / target.line_floats();
  s.set("prefetch", ceil_of(lines, ceil_of(knobs[2], width)));
}

void report(const std::string& shape, const std::string& variant, const Program& program,
            const std::vector<double>& ns) {
  std::vector<double> inner;
  double predicted = 0;
  std::string schedule;
  for (size_t i = 1; i + 1 < program.algorithms.size(); ++i) {
    const Algorithm& a = program.algorithms[i];
    inner.push_back(ns[static_cast<size_t>(a.launch)] * 1e-6);
    schedule = program.launches[static_cast<size_t>(a.launch)].schedule.text();
    for (const AlgorithmCost& c : a.costs)
      if (c.name == a.name) predicted = c.cost / kGigahertz * 1e-6;
  }
  std::nth_element(inner.begin(), inner.begin() + static_cast<std::ptrdiff_t>(inner.size() / 2), inner.end());
  const bool own = variant.find(':') == std::string::npos;
  fmt::print("{:20} {:14} {:8.3f} ms {:>18}   {}\n", shape, variant, inner[inner.size() / 2],
             own ? fmt::format("predicted {:.3f}", predicted) : "", schedule);
}

void measure(int threads, const std::string& shape, const std::vector<std::string>& variants) {
  const TargetInfo target = host_target();
  Graph graph = chain(numbers(shape, ','));
  prepare(graph, {}, nullptr);
  const Graph fused = apply(graph, plan_graph(graph, target, {}));
  std::vector<Program> programs;
  for (const std::string& variant : variants) {
    const size_t colon = variant.find(':');
    AlgorithmRequest request{.only = {variant.substr(0, colon)}};
    request.max_weight_growth = int64_t{1} << 50;
    request.threads = threads;
    programs.push_back(lower_to_program(fused, target, {false, request}));
    if (colon == std::string::npos) continue;
    for (Launch& launch : programs.back().launches)
      cut(launch.schedule, numbers(variant.substr(colon + 1), ':'), target);
  }
  const auto times = time_launches(programs, target, threads);
  for (size_t p = 0; p < programs.size(); ++p) report(shape, variants[p], programs[p], times[p]);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  std::string shape;
  std::vector<std::string> variants;
  for (int i = 2; i <= argc; ++i) {
    if (i < argc && !std::strchr(argv[i], ',')) {
      variants.emplace_back(argv[i]);
      continue;
    }
    if (!variants.empty()) measure(std::atoi(argv[1]), shape, variants);
    if (i < argc) shape = argv[i];
    variants.clear();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr,
               "usage: winograd_parts THREADS  N,C,O,H,W ALGORITHM[:PARTS_O:PARTS_P:CHUNK] ... (see the source)\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    return 1;
  }
}
