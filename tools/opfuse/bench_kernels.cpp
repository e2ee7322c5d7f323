// Each drawn layer is compiled as a model of its own (dense arrays in and out, as a caller has them) and timed; its
// floor is max(FLOP / FMA rate, bytes / read rate of the level that holds them). Few runs each: the median over 200
// layers is the point.
#include "bench_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compile_model.hpp"
#include "console.hpp"
#include "drawn_layer.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "profile/roofline.hpp"
#include "report.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

constexpr double kExplainBelow = 0.35;

struct Row {
  std::string kind, title, schedule;
  double ms = 0, flops = 0, bytes = 0;
  size_t launches = 0;
  Roofline point;
  std::string explanation;
};

std::string explain(const Row& row, const std::vector<LaunchInfo>& launches, const std::vector<int64_t>& times,
                    int threads) {
  std::string text;
  double total = 0, heaviest = 0;
  size_t at = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    total += static_cast<double>(times[i]);
    if (static_cast<double>(times[i]) > heaviest) heaviest = static_cast<double>(times[i]), at = i;
  }
  if (row.point.floor_seconds < 1e-5 * static_cast<double>(row.launches))
    text += fmt::format("the floor is {:.1f} us, {} launch{} with their barriers are a fixed cost; ",
                        1e6 * row.point.floor_seconds, row.launches, row.launches == 1 ? "" : "es");
  if (launches.size() > 1)
    text += fmt::format("{} takes {} of the time, the rest are layout moves; ", launches[at].name,
                        percent(heaviest / total, 0));
  if (!launches.empty() && launches[at].parts < threads)
    text += fmt::format("only {} part for {} threads; ", launches[at].parts, threads);
  if (!launches.empty()) text += fmt::format("schedule {}", launches[at].schedule);
  return text;
}

/// Limits again and again, each at its best: one measured while something else ran would flatter every kernel.
void raise_limits(MachineLimits& limits) {
  limits.fma_gflops = std::max(limits.fma_gflops, measure_fma_gflops(limits.threads, limits.vector_bytes, 0.05));
}

Row measure_layer(const DrawnLayer& layer, const KernelBench& bench, const MachineLimits& limits) {
  CompileFlags flags;
  flags.target = bench.target;
  flags.threads = bench.threads;
  flags.no_cache = bench.no_cache;
  InputFlags input_flags;
  input_flags.seed = bench.seed;
  const ModelInputs inputs = make_inputs(layer.graph, input_flags);
  const Compiled compiled = compile_fused(layer.graph, {}, flags);
  Session session(*compiled.executable, inputs, {bench.threads});
  MeasureSettings settings{0.01, 0.05, 5};
  Row row;
  row.kind = layer.kind;
  row.title = layer.title;
  row.ms = summarize(measure({&session.context()}, settings).front()).median;
  const WorkTotal work = total_work(session.context());
  row.flops = work.flops;
  row.launches = work.launches;
  // What must move at least: the caller's arrays and the weights once, not what the program happens to move.
  for (const Tensor& tensor : inputs.tensors) row.bytes += static_cast<double>(tensor.bytes());
  for (const Tensor& tensor : session.outputs()) row.bytes += static_cast<double>(tensor.bytes());
  for (const Value* constant : layer.graph.constants()) row.bytes += static_cast<double>(constant->constant->bytes());
  row.point = roofline(row.flops, row.bytes, row.ms * 1e-3, limits);
  if (row.point.share < 2 * kExplainBelow) {  // the limits may still rise
    ContextOptions options;
    options.threads = bench.threads;
    options.profile = true;
    Session profiled(*compiled.executable, inputs, options);
    profiled.context().run();
    profiled.context().run();
    row.explanation =
        explain(row, profiled.context().launches(), profiled.context().launch_nanoseconds(), limits.threads);
  }
  return row;
}

double geometric_mean(const std::vector<Row>& rows, const std::string& kind) {
  double sum = 0;
  int count = 0;
  for (const Row& row : rows) {
    if ((!kind.empty() && row.kind != kind) || row.point.share <= 0) continue;
    sum += std::log(row.point.share);
    ++count;
  }
  return count ? std::exp(sum / count) : 0;
}

void print_text(const std::vector<Row>& rows, const MachineLimits& limits) {
  Table table({"layer", ">ms", ">GFLOP/s", ">share", "limit"});
  for (const Row& row : rows)
    table.row({row.title, milliseconds(row.ms), fmt::format("{:.1f}", row.flops * 1e-6 / row.ms),
               percent(row.point.share, 0), row.point.memory_bound ? "memory" : "FMA"});
  fmt::print("{}", table.text());
  for (const Row& row : rows)
    if (row.point.share < kExplainBelow)
      fmt::print("  below {}: {}: {}\n", percent(kExplainBelow, 0), row.title, row.explanation);
  for (const char* kind : {"conv", "depthwise", "gemm"})
    fmt::print("  {:<10} geometric mean {}\n", kind, percent(geometric_mean(rows, kind)));
  fmt::print("  {} layers, {} threads, FMA limit {:.1f} GFLOP/s: geometric mean of the shares {}\n", rows.size(),
             limits.threads, limits.fma_gflops, percent(geometric_mean(rows, "")));
}

Json to_json(const std::vector<Row>& rows, const MachineLimits& limits, const KernelBench& bench) {
  Json out = document("opfuse.bench-kernels/1");
  out["seed"] = bench.seed;
  out["threads"] = limits.threads;
  out["fma_limit_gflop_per_s"] = limits.fma_gflops;
  out["geometric_mean"] = geometric_mean(rows, "");
  out["interrupted"] = interrupted();
  Json list = Json::array();
  for (const Row& row : rows)
    list.push_back({{"layer", row.title},
                    {"kind", row.kind},
                    {"ms", row.ms},
                    {"flop", row.flops},
                    {"bytes", row.bytes},
                    {"launches", row.launches},
                    {"share", row.point.share},
                    {"limit", row.point.memory_bound ? "memory" : "fma"},
                    {"explanation", row.point.share < kExplainBelow ? row.explanation : ""}});
  out["kernels"] = std::move(list);
  return out;
}

}  // namespace

int bench_random_kernels(const KernelBench& bench) {
  const TargetInfo target = parse_target(bench.target);
  const int threads = bench.threads > 0 ? bench.threads : default_threads();
  MachineLimits limits = measure_limits(threads, target.vector_bytes);
  Random random(bench.seed, "kernels");
  std::vector<Row> rows;
  for (int i = 0; i < bench.count && !interrupted(); ++i) {
    if (i % 10 == 9) raise_limits(limits);
    rows.push_back(measure_layer(draw_layer(random), bench, limits));
    show_progress("measuring drawn kernels", static_cast<size_t>(i + 1), static_cast<size_t>(bench.count));
  }
  finish_progress();
  for (Row& row : rows) row.point = roofline(row.flops, row.bytes, row.ms * 1e-3, limits);
  if (bench.json)
    print_json(to_json(rows, limits, bench));
  else
    print_text(rows, limits);
  return exit_code(kOk);
}

}  // namespace opfuse::cli
