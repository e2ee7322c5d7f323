// Each drawn layer is compiled where it would stand in a network (docs/cli.md, "Drawn kernels") and its launch is timed
// alone, again and again over the same operands. Its floor is max(FLOP / FMA rate, bytes / read rate of the level that
// holds them): FLOP on useful taps, bytes of operands that must move. What a launch costs by itself is part of the
// time.
#include "bench_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "drawn_layer.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "profile/roofline.hpp"
#include "repeating_executor.hpp"
#include "report.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

constexpr double kExplainBelow = 0.35;
constexpr double kSeconds = 0.02;  // per layer and round; the geometric mean over many layers is the point
constexpr int kRounds = 2;         // some tens of seconds apart; the better median of a layer counts, as of the limits

struct Row {
  DrawnLayer layer;  ///< without its graph
  LaunchInfo launch;
  double ms = 0;
  double launch_us = 0;  ///< of a launch of so many parts that does nothing
  Roofline point;
};

/// The launch that the layer itself became.
size_t launch_of(const Context& context, const std::string& node) {
  const std::vector<LaunchInfo> launches = context.launches();
  for (size_t i = 0; i < launches.size(); ++i)
    if (std::count(launches[i].sources.begin(), launches[i].sources.end(), node)) return i;
  throw fail(E::internal, "no launch came from node '{}'", node);
}

/// The whole run instead: with the caller's arrays, and launches that only move layouts.
void measure_run(Row& row, Session& session) {
  MeasureSettings settings{kSeconds / 4, kSeconds, 5};
  row.ms = summarize(measure({&session.context()}, settings).front()).median;
}

Row measure_layer(DrawnLayer layer, const KernelBench& bench, const MachineLimits& limits) {
  CompileFlags flags = bench.compile;
  flags.threads = limits.threads;
  InputFlags input_flags;
  input_flags.seed = bench.seed;
  const ModelInputs inputs = make_inputs(layer.graph, input_flags);
  const Compiled compiled = compile_fused(layer.graph, {}, flags);
  Row row;
  size_t index = 0;
  {
    Session first(compiled.executable, inputs, ContextOptions{1});
    index = launch_of(first.context(), layer.node);
    row.launch = first.context().launches()[index];
  }
  RepeatingExecutor executor(limits.threads, index, bench.alone ? 0 : kSeconds);
  ContextOptions options;
  options.executor = &executor;
  Session session(compiled.executable, inputs, options);
  session.context().run();
  row.ms = 1e-3 * summarize(executor.sample()).median;
  row.launch_us = executor.empty_launch(row.launch.parts);
  if (bench.alone) {
    Session whole(compiled.executable, inputs, ContextOptions{limits.threads});
    measure_run(row, whole);
  }
  row.layer = std::move(layer);
  row.layer.graph = Graph();
  return row;
}

double geometric_mean(const std::vector<Row>& rows, const std::string& kind) {
  double sum = 0;
  int count = 0;
  for (const Row& row : rows) {
    if ((!kind.empty() && row.layer.kind != kind) || row.point.share <= 0) continue;
    sum += std::log(row.point.share);
    ++count;
  }
  return count ? std::exp(sum / count) : 0;
}

/// Share of the vector lanes that hold outputs, when every group's channels are rounded up to whole vectors.
double used_lanes(const Row& row, const MachineLimits& limits) {
  const int64_t lanes = limits.vector_bytes / 4;
  const bool depthwise = row.layer.kind == "depthwise";
  const int64_t outputs = depthwise ? row.layer.outputs : row.layer.outputs / row.layer.groups;
  return static_cast<double>(outputs) / static_cast<double>((outputs + lanes - 1) / lanes * lanes);
}

std::string explain(const Row& row, const MachineLimits& limits) {
  std::string text = fmt::format("bound by {}", row.point.memory_bound ? "memory" : "FMA");
  const double time_us = 1e3 * row.ms;
  if (row.launch_us > 0.1 * time_us)
    text += fmt::format("; the launch itself takes {:.1f} of {:.1f} us", row.launch_us, time_us);
  if (limits.threads > 1 && row.launch.parts < limits.threads)
    text += fmt::format("; {} part for {} threads", row.launch.parts, limits.threads);
  if (const double lanes = used_lanes(row, limits); lanes < 0.8)
    text += fmt::format("; {} outputs in {} group{} fill {} of the lanes", row.layer.outputs, row.layer.groups,
                        row.layer.groups == 1 ? "" : "s", percent(lanes, 0));
  return text + "; schedule " + row.launch.schedule;
}

bool is_winograd(const Row& row) { return row.launch.schedule.find("winograd_h=") != std::string::npos; }

void print_text(const std::vector<Row>& rows, const MachineLimits& limits) {
  Table table({"layer", ">us", ">GFLOP/s", ">share", "limit", "schedule"});
  for (const Row& row : rows)
    table.row({row.layer.title, fmt::format("{:.1f}", 1e3 * row.ms),
               fmt::format("{:.1f}", row.layer.flop * 1e-6 / row.ms), percent(row.point.share, 0),
               row.point.memory_bound ? "memory" : "FMA", row.launch.schedule});
  fmt::print("{}", table.text());
  for (const Row& row : rows)
    if (row.point.share < kExplainBelow)
      fmt::print("  below {}: {}: {}\n", percent(kExplainBelow, 0), row.layer.title, explain(row, limits));
  for (const char* kind : {"conv", "depthwise", "gemm"})
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.layer.kind == kind; }))
      fmt::print("  {:<10} geometric mean {}\n", kind, percent(geometric_mean(rows, kind)));
  double launch = 0;
  for (const Row& row : rows) launch = std::max(launch, row.launch_us);
  fmt::print("  a launch that does nothing takes up to {:.2f} us, which is part of every time above\n", launch);
  if (const auto count = std::count_if(rows.begin(), rows.end(), is_winograd))
    fmt::print("  {} layers by Winograd, whose share counts direct convolution's FLOP; --exact leaves it out\n", count);
  fmt::print("  {} layers, {} threads, FMA limit {:.1f} GFLOP/s: geometric mean of the shares {}\n", rows.size(),
             limits.threads, limits.fma_gflops, percent(geometric_mean(rows, "")));
}

Json to_json(const std::vector<Row>& rows, const MachineLimits& limits, const KernelBench& bench) {
  Json out = document("opfuse.bench-kernels/2");
  out["seed"] = bench.seed;
  out["threads"] = limits.threads;
  out["alone"] = bench.alone;
  out["exact"] = bench.compile.algorithms.exact;
  out["fma_limit_gflop_per_s"] = limits.fma_gflops;
  Json reads = Json::array();
  for (const ReadRate& level : limits.reads) reads.push_back({{"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}});
  out["read_limits"] = std::move(reads);
  out["geometric_mean"] = geometric_mean(rows, "");
  for (const char* kind : {"conv", "depthwise", "gemm"}) out["geometric_means"][kind] = geometric_mean(rows, kind);
  out["interrupted"] = interrupted();
  Json list = Json::array();
  for (const Row& row : rows)
    list.push_back({{"layer", row.layer.title},
                    {"kind", row.layer.kind},
                    {"ms", row.ms},
                    {"flop", row.layer.flop},
                    {"bytes", row.layer.bytes},
                    {"floor_ms", 1e3 * row.point.floor_seconds},
                    {"launch_us", row.launch_us},
                    {"parts", row.launch.parts},
                    {"schedule", row.launch.schedule},
                    {"lanes_used", used_lanes(row, limits)},
                    {"share", row.point.share},
                    {"limit", row.point.memory_bound ? "memory" : "fma"},
                    {"explanation", row.point.share < kExplainBelow ? explain(row, limits) : ""}});
  out["kernels"] = std::move(list);
  return out;
}

}  // namespace

int bench_random_kernels(const KernelBench& bench) {
  const TargetInfo target = parse_target(bench.compile.target);
  const int threads = bench.compile.threads > 0 ? bench.compile.threads : default_threads();
  MachineLimits limits;
  {
    const NothingToKeep scope;
    limits = measure_limits(threads, target.vector_bytes);
  }
  const Surroundings surroundings = bench.alone ? Surroundings::none : Surroundings::network;
  std::vector<Row> rows;
  const int total = kRounds * bench.count;
  for (int round = 0, done = 0; round < kRounds && !interrupted(); ++round) {
    Random random(bench.seed, "kernels");
    for (int i = 0; i < bench.count && !interrupted(); ++i) {
      // Again and again, the best counts: a limit measured while something else ran would flatter every kernel.
      if (i % 10 == 9)
        limits.fma_gflops = std::max(limits.fma_gflops, measure_fma_gflops(threads, limits.vector_bytes, 0.05));
      Row row;
      try {
        row = measure_layer(draw_layer(random, surroundings), bench, limits);
      } catch (const Stopped&) {
        break;
      }
      if (round == 0)
        rows.push_back(std::move(row));
      else if (row.ms < rows[static_cast<size_t>(i)].ms)
        rows[static_cast<size_t>(i)].ms = row.ms;
      show_progress("measuring drawn kernels", static_cast<size_t>(++done), static_cast<size_t>(total));
    }
  }
  finish_progress();
  if (interrupted())
    warn(rows.empty() ? "interrupted before the first kernel: nothing was measured"
                      : "interrupted: the numbers are those of the kernels so far");
  if (rows.empty()) return exit_code(kOk);
  for (Row& row : rows) row.point = roofline(row.layer.flop, row.layer.bytes, row.ms * 1e-3, limits);
  if (bench.json)
    print_json(to_json(rows, limits, bench));
  else
    print_text(rows, limits);
  return exit_code(kOk);
}

}  // namespace opfuse::cli
