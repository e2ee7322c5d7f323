// opfuse demo: the main job on built-in models. Fuse, compile, prove equal, measure against the unfused program, and
// run the same file in ONNX Runtime where it is installed. Every step shows its time; nothing is downloaded.
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/temporary_folder.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "facts.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "peer.hpp"
#include "profile/machine_limits.hpp"
#include "profile/statistics.hpp"
#include "proof/compare.hpp"
#include "report.hpp"
#include "session.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::vector<std::string> models = {"mobilenet_v2", "resnet50"};
  CompileFlags compile;
  uint64_t seed = 0;
  double seconds = 1.5;  ///< of measuring, per model
  bool json = false;
};

struct DemoSide {
  WorkTotal work;
  double activation_bytes = 0;
  size_t arena = 0;
  Summary latency_ms;
  std::vector<double> sample;
};

struct DemoResult {
  std::string model;
  std::map<std::string, int> modules;
  DemoSide fused, unfused;
  std::optional<DemoSide> folded;  ///< a launch per operator, BatchNorm folded into weights; of models that have any
  Interval ratio, folded_ratio;    ///< fused over unfused, over folded
  double fma_gflops = 0;
  int threads = 1;
  Comparison proof;
  std::optional<PeerRun> peer;
  double peer_error = 0;
  std::string peer_problem;
  /// Share of a latency that the multiplications alone take at the measured FMA limit.
  double multiply_share(const DemoSide& side) const {
    const double floor_ms = fused.work.flops * 1e-6 / fma_gflops;
    return side.latency_ms.median > 0 ? floor_ms / side.latency_ms.median : 0;
  }
};

DemoSide side_of(Context& context, std::vector<double> sample, const Graph& graph) {
  DemoSide side;
  side.work = total_work(context);
  side.activation_bytes = activation_bytes(graph, {});
  side.arena = context.arena_bytes();
  side.latency_ms = summarize(sample);
  side.sample = std::move(sample);
  return side;
}

/// What any runtime does to weights, and no more: a launch per operator of the folded model. Nothing: no BatchNorm.
std::optional<Compiled> compile_folded(const Graph& model, const SymbolValues& dims, CompileFlags flags) {
  flags.plan.only = {"ConvBN"};
  flags.plan.no_rules = true;
  flags.passes.no_chains = true;
  Compiled compiled = compile_fused(model, dims, flags);
  if (compiled.plan.applied().empty()) return std::nullopt;
  return compiled;
}

void measure_all(const Compiled& fused, const Compiled& unfused, const Compiled* folded, const ModelInputs& inputs,
                 const Flags& flags, DemoResult& result) {
  Session a(fused.executable, inputs, {flags.compile.threads}), b(unfused.executable, inputs, {flags.compile.threads});
  result.threads = a.context().threads();
  const int vector_bytes = parse_target(flags.compile.target).vector_bytes;
  result.fma_gflops = measure_fma_gflops(result.threads, vector_bytes);
  std::optional<Session> c;
  if (folded) c.emplace(folded->executable, inputs, ContextOptions{flags.compile.threads});
  std::vector<Context*> contexts = {&a.context(), &b.context()};
  if (c) contexts.push_back(&c->context());
  auto samples = measure(contexts, {0.2, flags.seconds, 5});
  result.fma_gflops = std::max(result.fma_gflops, measure_fma_gflops(result.threads, vector_bytes));
  result.fused = side_of(a.context(), std::move(samples[0]), fused.fused);
  result.unfused = side_of(b.context(), std::move(samples[1]), unfused.fused);
  result.ratio = ratio_of_medians(result.fused.sample, result.unfused.sample, flags.seed);
  if (!c || samples[2].empty()) return;
  result.folded = side_of(c->context(), std::move(samples[2]), folded->fused);
  result.folded_ratio = ratio_of_medians(result.fused.sample, result.folded->sample, flags.seed);
}

void run_peer(const Graph& graph, const Compiled& compiled, const ModelInputs& inputs, const std::string& python,
              const Flags& flags, DemoResult& result) {
  const TemporaryFolder folder;
  write_onnx(graph, folder.path("model.onnx"));
  result.peer = run_onnxruntime(python, folder.path("model.onnx"), inputs.tensors.front(), result.threads,
                                flags.seconds, result.peer_problem);
  if (!result.peer) return;
  const Tensor mine = run_executable(compiled.executable, inputs.tensors, {flags.compile.threads}).front();
  result.peer_error = difference(result.peer->output, mine).relative();
}

DemoResult run_model(const std::string& name, const std::string& python, const Flags& flags) {
  DemoResult result;
  result.model = name;
  say(fmt::format("{}", name));
  GivenModel model;
  {
    StepTimer timer("build the model in code");
    model = open_model("zoo:" + name);
  }
  InputFlags input_flags;
  input_flags.seed = flags.seed;
  const ModelInputs inputs = make_inputs(*model.graph, input_flags);
  const std::optional<ModelInputs> second = other_inputs(*model.graph, input_flags, inputs);
  std::optional<Compiled> fused, unfused, folded;
  stop_if_interrupted();
  {
    StepTimer timer("plan, fuse and compile");
    fused = compile_fused(*model.graph, inputs.symbols, flags.compile);
    show_limits(*fused);
    result.modules = fused->plan.module_counts();
  }
  stop_if_interrupted();
  {
    StepTimer timer("compile unfused, to compare");
    unfused = compile_unfused(*model.graph, inputs.symbols, flags.compile);
    folded = compile_folded(*model.graph, inputs.symbols, flags.compile);
  }
  stop_if_interrupted();
  {
    StepTimer timer("prove equal to the interpreter");
    CompareOptions options;
    options.threads = flags.compile.threads;
    options.progress = [](const std::string& step, size_t done, size_t total) {
      stop_if_interrupted();
      show_progress(step, done, total);
    };
    result.proof = compare_model(*model.graph, fused->fused, fused->program, fused->executable, inputs.tensors,
                                 second->tensors, options);
  }
  stop_if_interrupted();
  {
    StepTimer timer("measure, in turns");
    measure_all(*fused, *unfused, folded ? &*folded : nullptr, inputs, flags, result);
  }
  if (result.fused.sample.empty() || result.unfused.sample.empty()) throw Stopped{};
  if (!python.empty() && !interrupted()) {
    StepTimer timer("the same file in ONNX Runtime");
    run_peer(*model.graph, *fused, inputs, python, flags, result);
  }
  return result;
}

void print_table(const DemoResult& r) {
  Table table({"", ">kernels", ">activation bytes", ">peak memory", ">latency, ms", ">best", ">GFLOP/s"});
  const auto add = [&](const char* title, const DemoSide& s) {
    table.row({title, std::to_string(s.work.launches), human_bytes(s.activation_bytes),
               human_bytes(static_cast<double>(s.arena)), milliseconds(s.latency_ms.median),
               milliseconds(s.latency_ms.min), fmt::format("{:.0f}", s.work.flops * 1e-6 / s.latency_ms.median)});
  };
  add("unfused", r.unfused);
  if (r.folded) add("BatchNorm folded", *r.folded);
  add("fused", r.fused);
  if (r.peer)
    table.row({"ONNX Runtime " + r.peer->version, "", "", "", milliseconds(r.peer->median_ms),
               milliseconds(r.peer->min_ms), fmt::format("{:.0f}", r.fused.work.flops * 1e-6 / r.peer->median_ms)});
  fmt::print("{}", table.text());
}

/// "1.31x faster than", or slower, for a ratio of times.
std::string speed(double ratio) {
  return ratio <= 1 ? fmt::format("{:.2f}x faster than", 1 / ratio) : fmt::format("{:.2f}x SLOWER than", ratio);
}

std::string interval(const Interval& ratio) {
  return fmt::format("[95 %: {:.2f} to {:.2f} times as fast{}]", 1 / ratio.high, 1 / ratio.low,
                     ratio.low <= 1 && ratio.high >= 1 ? ": within noise" : "");
}

/// What the numbers mean, small gains included.
void print_reading(const DemoResult& r) {
  const double removed = 1 - r.fused.activation_bytes / r.unfused.activation_bytes;
  fmt::print("  kernels {} -> {}, activation traffic {} -> {} (-{})\n", r.unfused.work.launches, r.fused.work.launches,
             human_bytes(r.unfused.activation_bytes), human_bytes(r.fused.activation_bytes), percent(removed, 0));
  fmt::print("  fused is {} the model as read, a kernel per operator {}\n", speed(r.ratio.estimate), interval(r.ratio));
  if (r.folded)
    fmt::print("           {} the same with BatchNorm folded {}\n", speed(r.folded_ratio.estimate),
               interval(r.folded_ratio));
  if (r.peer)
    fmt::print("           {} ONNX Runtime {} (not in turns, unlike ./dev bench); outputs differ by {:.1g} of max\n",
               speed(r.fused.latency_ms.median / r.peer->median_ms), r.peer->version, r.peer_error);
  if (!r.peer_problem.empty()) fmt::print("  ONNX Runtime failed: {}\n", r.peer_problem);
  const double reached = r.multiply_share(r.fused);
  fmt::print("           at {} of the machine's multiply-add limit{}\n", percent(reached, 0),
             reached > 1 ? ", counted as direct convolution: Winograd multiplies less (--exact leaves it out)" : "");
  // Of the best run: disturbances of the machine are not work.
  const double share = std::min(1.0, r.fused.work.flops * 1e-6 / r.fma_gflops / r.unfused.latency_ms.min);
  if (r.ratio.estimate > 0.8)
    fmt::print("  why not more: {} of the unfused time is multiplications, which fusion cannot remove\n",
               percent(share, 0));
}

void print_model(const DemoResult& r) {
  std::vector<std::string> modules;
  int total = 0;
  for (const auto& [module, count] : r.modules) modules.push_back(fmt::format("{} {}", count, module)), total += count;
  fmt::print("\n{}   {}   {} thread{}\n  {} fused modules: {}\n", r.model, human_flops(r.fused.work.flops), r.threads,
             r.threads == 1 ? "" : "s", total, fmt::join(modules, ", "));
  print_table(r);
  print_reading(r);
  size_t failed = 0;
  for (const GroupComparison& group : r.proof.groups) failed += !group.ok;
  const GroupComparison* worst = r.proof.worst();
  fmt::print("  proof: {} of {} groups within their error bounds of the fp64 interpreter (worst {:.1g} of max{})\n",
             r.proof.groups.size() - failed, r.proof.groups.size(), worst ? worst->difference.relative() : 0,
             worst ? " at " + worst->name : "");
  for (const OutputComparison& output : r.proof.outputs)
    fmt::print("         {}: error {:.1g} of max; another input changes it by {}   {}\n", output.name,
               output.difference.relative(), percent(output.change, 0), output.ok ? "PASSED" : "FAILED");
}

Json to_json(const DemoSide& side) {
  return {{"kernels", side.work.launches},
          {"activation_bytes", side.activation_bytes},
          {"bytes", side.work.bytes},
          {"arena_bytes", side.arena},
          {"latency_ms", json_of(side.latency_ms)}};
}

Json to_json(const DemoResult& r) {
  Json out = {{"model", r.model},
              {"threads", r.threads},
              {"flop", r.fused.work.flops},
              {"modules", r.modules},
              {"fused", to_json(r.fused)},
              {"unfused", to_json(r.unfused)},
              {"fused_over_unfused", json_of(r.ratio)},
              {"fma_limit_gflop_per_s", r.fma_gflops},
              {"share_of_fma_limit", r.multiply_share(r.fused)},
              {"equal", r.proof.ok()}};
  if (r.folded) {
    out["folded"] = to_json(*r.folded);
    out["fused_over_folded"] = json_of(r.folded_ratio);
  }
  if (r.peer)
    out["onnxruntime"] = {
        {"version", r.peer->version}, {"median_ms", r.peer->median_ms}, {"output_error", r.peer_error}};
  return out;
}

/// How this program was called, for commands to copy.
std::string own_name() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path relative = std::filesystem::relative(self, std::filesystem::current_path(error), error);
  if (error || relative.empty()) return "opfuse";
  const std::string text = relative.string();
  return text.rfind("..", 0) == 0 ? self.string() : text;
}

int run(Flags flags) {
  bound_threads(flags.compile);
  if (!parse_target(flags.compile.target).traits.on_host)
    throw fail(E::bad_option, "the demo runs on cpu targets, not on {}", flags.compile.target)
        .hint("opfuse profile MODEL --target cuda:sm_XX times a model on a GPU");
  catch_interrupts();
  const int64_t start = now_ns();
  const std::string python = find_peer_python();
  std::vector<DemoResult> results;
  bool equal = true;
  for (const std::string& model : flags.models) {
    if (interrupted()) break;
    try {
      results.push_back(run_model(model, python, flags));
    } catch (const Stopped&) {
      break;
    }
    equal = equal && results.back().proof.ok();
    if (!flags.json) print_model(results.back());
    std::fflush(stdout);
  }
  if (interrupted())
    warn(results.empty() ? "interrupted: nothing was measured" : "interrupted: the models above are what was measured");
  if (flags.json) {
    Json out = document("opfuse.demo/1");
    out["seconds"] = static_cast<double>(now_ns() - start) * 1e-9;
    out["models"] = Json::array();
    for (const DemoResult& result : results) out["models"].push_back(to_json(result));
    out["interrupted"] = interrupted();
    print_json(out);
    return exit_code(equal ? kOk : kCheckFailed);
  }
  if (interrupted()) return kInterrupted;
  if (python.empty()) fmt::print("\nto see ONNX Runtime on the same files:\n  {}\n", kInstallPeer);
  const std::string self = own_name();
  fmt::print(
      "\n{:.1f} s in all. Now on your own model:\n  {} fuse YOUR.onnx -o fused.onnx\n  {} compare YOUR.onnx\n"
      "  {} bench YOUR.onnx --vs-unfused\n",
      static_cast<double>(now_ns() - start) * 1e-9, self, self, self);
  return exit_code(equal ? kOk : kCheckFailed);
}

}  // namespace

std::function<int()> add_demo(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->models, "built-in models to run")->delimiter(',')->capture_default_str();
  app.add_option("--seconds", flags->seconds, "measuring time per model and engine")->capture_default_str();
  app.add_option("--seed", flags->seed, "of the random inputs")->capture_default_str();
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags] { return run(*flags); };
}

}  // namespace opfuse::cli
