// opfuse bench: latency, throughput and share of the FMA limit that is measured in the same run. `--vs-unfused` takes
// turns with the unfused program and decides whether fusion improved latency and peak memory beyond noise.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/read_files.hpp"
#include "base/temporary_folder.hpp"
#include "bench_kernels.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "profile/machine_limits.hpp"
#include "profile/statistics.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "session.hpp"
#include "split_forms.hpp"
#include "standard_input.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, kernels, warmup = "200ms", duration = "3s", export_times;
  std::vector<double> percentiles;
  InputFlags inputs;
  CompileFlags compile;
  int iterations = 10, contexts = 1, count = 200;
  bool vs_unfused = false, per_group = false, resident = false, alone = false, json = false;

  MeasureSettings settings() const { return {parse_duration(warmup, 1e-3), parse_duration(duration, 1), iterations}; }
};

/// One side of the comparison.
struct Side {
  Summary latency_ms;
  std::vector<double> sample;
  WorkTotal work;
  size_t arena = 0, intermediates = 0;
};

/// What a process pays before its second run.
struct Start {
  double compile_ms = 0;  ///< of a model; kernels may come from the cache
  double load_ms = 0;     ///< of an .opf; a compiled model is saved and loaded once
  double first_ms = 0;    ///< context, binding and first run of a fresh executable
};

struct Result {
  Start start;
  Side fused;
  std::optional<Side> unfused;
  Interval ratio;           ///< fused / unfused latency
  double output_error = 0;  ///< fused against unfused, of max abs
  std::vector<SplitForm> groups;
  std::vector<GroupBar> bars;  ///< with --per-group
  MachineLimits limits;
  double share = 0;       ///< FLOP / median / FMA limit
  double per_second = 0;  ///< runs per second of all contexts
  int threads = 1, contexts = 1;
  SymbolValues dims;
  std::string target;

  bool faster() const { return unfused && ratio.high < 1; }  ///< beyond noise, as `slower`
  bool slower() const { return unfused && ratio.low > 1; }
  bool groups_kept() const {
    return std::all_of(bars.begin(), bars.end(), [](const GroupBar& bar) { return bar.kept(); });
  }
  bool smaller() const { return unfused && fused.arena < unfused->arena; }
  bool larger() const { return unfused && fused.arena > unfused->arena; }
};

Side side_of(Context& context, std::vector<double> sample) {
  Side side;
  side.work = total_work(context);
  side.arena = context.arena_bytes();
  side.intermediates = context.intermediate_bytes();
  side.latency_ms = summarize(sample);
  side.sample = std::move(sample);
  return side;
}

Json json_of(const Side& side) {
  return {{"latency_ms", cli::json_of(side.latency_ms)},
          {"kernels", side.work.launches},
          {"bytes", side.work.bytes},
          {"flop", side.work.flops},
          {"arena_bytes", side.arena},
          {"intermediate_bytes", side.intermediates}};
}

double largest_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) error = std::max(error, difference(got[i], want[i]).relative());
  return error;
}

/// Peak throughput of several contexts at once; with one context it follows from the latency.
double throughput(const Executable& executable, const ModelInputs& inputs, const Flags& flags, const Side& side) {
  if (flags.contexts <= 1) return side.latency_ms.mean > 0 ? 1e3 / side.latency_ms.mean : 0;
  std::vector<Session> sessions;
  for (int i = 0; i < flags.contexts; ++i)
    sessions.emplace_back(executable, inputs, ContextOptions{flags.compile.threads}, flags.resident);
  return measure_throughput(sessions, flags.settings());
}

/// Each group against the kernels it replaces, with the launches recorded.
std::vector<SplitForm> measure_groups(const Executable& fused, const Executable& unfused, const ModelInputs& inputs,
                                      const Flags& flags) {
  if (std::ranges::any_of(fused.artifact().launches, [](const ArtifactLaunch& l) { return l.is_routine(); })) {
    note("groups are not timed apart: a run finds the sizes of some values");
    return {};
  }
  ContextOptions options{flags.compile.threads};
  options.profile = true;
  Session session(fused, inputs, options), other(unfused, inputs, options);
  const NodeLinks links = links_between(fused, unfused, inputs.symbols);
  std::vector<SplitForm> forms = measure_split_forms(session, other, links, flags.settings(), flags.inputs.seed);
  const bool any = std::any_of(forms.begin(), forms.end(), [](const SplitForm& form) { return form.slower(); });
  if (fused.artifact().on_device() || (!any && !flags.per_group) || interrupted()) return forms;
  const auto pool = make_thread_pool(session.context().threads());
  LaunchReplay replay(*pool, fused.artifact().program_for(inputs.symbols), inputs.symbols);
  LaunchReplay other_replay(*pool, unfused.artifact().program_for(inputs.symbols), inputs.symbols);
  const auto with = [](LaunchReplay& executor) {
    ContextOptions replayed;
    replayed.executor = &executor;
    return replayed;
  };
  Session again(fused, inputs, with(replay)), other_again(unfused, inputs, with(other_replay));
  measure_alone(forms, {again, replay}, {other_again, other_replay}, links, flags.settings(), flags.inputs.seed);
  return forms;
}

double milliseconds_since(int64_t start) { return static_cast<double>(now_ns() - start) * 1e-6; }

/// Loads the executable from a file, as another process would, and runs it once. Files of programs with launches of
/// the interpreter do not exist; then what was compiled runs.
Start measure_start(const Executable& executable, const GivenModel& model, const ModelInputs& inputs,
                    const Flags& flags, double compile_ms) {
  Start start;
  start.compile_ms = compile_ms;
  std::optional<Executable> loaded;
  const auto& launches = executable.artifact().launches;
  if (std::none_of(launches.begin(), launches.end(), [](const ArtifactLaunch& l) { return bool(l.host); })) {
    const TemporaryFolder folder;
    const std::string path = model.executable ? path_of(flags.model) : folder.path("model.opf");
    if (!model.executable) executable.save(path);
    const int64_t begin = now_ns();
    loaded = Executable::load(path);
    start.load_ms = milliseconds_since(begin);
  }
  const int64_t begin = now_ns();
  Session session(loaded ? *loaded : executable, inputs, {flags.compile.threads});
  session.context().run();
  start.first_ms = milliseconds_since(begin);
  return start;
}

std::optional<Result> measure_model(const FlagSet& app, const Flags& flags) {
  const GivenModel model = open_model(flags.model, {.inputs = flags.inputs.files});
  if (model.executable) refuse_compile_flags(app, flags.model);
  if (flags.vs_unfused && !model.graph)
    throw fail(E::bad_option, "--vs-unfused needs the model, an .opf holds only the fused program");
  const ModelInputs inputs = make_inputs(model.interface(), flags.inputs);
  std::optional<Executable> fused = model.executable, unfused;
  double compile_ms = 0;
  if (!fused) {
    const int64_t begin = now_ns();
    const Compiled compiled = compile_fused(*model.graph, inputs.symbols, flags.compile);
    compile_ms = milliseconds_since(begin);
    show_limits(compiled);
    fused = compiled.executable;
  } else {
    show_limits(*fused);
  }
  warn_emulated(*fused);
  if (flags.resident && !fused->artifact().on_device())
    throw fail(E::bad_option, "--resident is for GPUs, and this is compiled for {}", fused->artifact().target)
        .hint("--target cuda:sm_90");
  if (flags.vs_unfused) unfused = compile_unfused(*model.graph, inputs.symbols, flags.compile).executable;

  Result result;
  result.start = measure_start(*fused, model, inputs, flags, compile_ms);
  result.dims = inputs.symbols;
  result.target = fused->artifact().target;
  result.contexts = flags.contexts;
  const int vector_bytes = vector_bytes_of(fused->artifact().cpu_features);
  Session session(*fused, inputs, {flags.compile.threads}, flags.resident);
  std::optional<Session> other;
  if (unfused) other.emplace(*unfused, inputs, ContextOptions{flags.compile.threads}, flags.resident);
  result.threads = session.context().threads();
  result.limits.threads = result.threads;
  result.limits.vector_bytes = vector_bytes;
  const bool device = fused->artifact().on_device();  // the CPU's limit says nothing of a GPU
  if (!device) result.limits.fma_gflops = measure_fma_gflops(result.threads, vector_bytes);

  std::vector<Context*> contexts = {&session.context()};
  if (other) contexts.push_back(&other->context());
  std::vector<std::vector<double>> samples = measure(contexts, flags.settings());
  if (samples[0].empty()) return std::nullopt;  // interrupted while warming up
  // The limit is measured on both sides of the runs; the better one counts.
  if (!device)
    result.limits.fma_gflops = std::max(result.limits.fma_gflops, measure_fma_gflops(result.threads, vector_bytes));
  result.fused = side_of(session.context(), std::move(samples[0]));
  if (other && !samples[1].empty()) {  // empty: interrupted before its first turn
    result.unfused = side_of(other->context(), std::move(samples[1]));
    result.ratio = ratio_of_medians(result.fused.sample, result.unfused->sample, flags.inputs.seed);
    result.output_error = largest_error(session.outputs(), other->outputs());
    if (!interrupted()) result.groups = measure_groups(*fused, *unfused, inputs, flags);
    if (flags.per_group && !interrupted()) result.bars = bars_of(result.groups, flags.compile.algorithms.measure);
  }
  const double seconds = result.fused.latency_ms.median * 1e-3;
  if (seconds > 0 && !device) result.share = result.fused.work.flops * 1e-9 / seconds / result.limits.fma_gflops;
  if (!interrupted() || flags.contexts <= 1) result.per_second = throughput(*fused, inputs, flags, result.fused);
  return result;
}

Json to_json(const Result& r, const Flags& flags) {
  Json out = document("opfuse.bench/1");
  const double seconds = r.fused.latency_ms.median * 1e-3;
  out.update({{"model", flags.model},
              {"target", r.target},
              {"threads", r.threads},
              {"contexts", r.contexts},
              {"dims", cli::json_of(r.dims)},
              {"seed", flags.inputs.seed}});
  if (flags.resident) out["resident"] = true;
  out.update(json_of(r.fused));
  const auto known = [](double ms) { return ms > 0 ? Json(ms) : Json(nullptr); };
  out["start_ms"] = {{"compile", known(r.start.compile_ms)},
                     {"load", known(r.start.load_ms)},
                     {"first_inference", known(r.start.first_ms)}};
  Json extra = Json::object();
  for (double p : flags.percentiles) extra[fmt::format("p{:g}", p)] = percentile(r.fused.sample, p);
  out["percentiles_ms"] = std::move(extra);
  out["throughput_per_s"] = r.per_second > 0 ? Json(r.per_second) : Json(nullptr);
  out["gflop_per_s"] = seconds > 0 ? Json(r.fused.work.flops * 1e-9 / seconds) : Json(nullptr);
  const bool limited = r.limits.fma_gflops > 0;
  out["fma_limit_gflop_per_s"] = limited ? Json(r.limits.fma_gflops) : Json(nullptr);
  out["share_of_fma_limit"] = limited ? Json(r.share) : Json(nullptr);
  out["interrupted"] = interrupted();
  if (r.unfused) {
    out["unfused"] = json_of(*r.unfused);
    out["fused_over_unfused"] = cli::json_of(r.ratio);
    out["output_error"] = r.output_error;
    out["improved"] = {{"latency", r.faster()}, {"memory", r.smaller()}};
    out["worse"] = {{"latency", r.slower()}, {"memory", r.larger()}};
    Json groups = Json::array();
    for (const SplitForm& form : r.groups) groups.push_back(cli::json_of(form));
    out["groups"] = std::move(groups);
    if (flags.per_group) {
      Json bars = Json::array();
      for (const GroupBar& bar : r.bars) bars.push_back(cli::json_of(bar));
      out["group_bars"] = std::move(bars);
    }
  }
  return out;
}

void print_text(const Result& r, const Flags& flags) {
  fmt::print("{}   {} threads {}   contexts {}   seed {}\n", flags.model, r.target, r.threads, r.contexts,
             flags.inputs.seed);
  Table table(
      {"", ">min", ">median", ">p90", ">p95", ">p99", ">mean", ">cv", ">runs", ">kernels", ">bytes moved", ">arena"});
  const auto add = [&](const char* title, const Side& s) {
    const Summary& l = s.latency_ms;
    table.row({title, milliseconds(l.min), milliseconds(l.median), milliseconds(l.p90), milliseconds(l.p95),
               milliseconds(l.p99), milliseconds(l.mean), percent(l.cv), std::to_string(l.count),
               std::to_string(s.work.launches), human_bytes(s.work.bytes), human_bytes(static_cast<double>(s.arena))});
  };
  if (r.unfused) add("unfused", *r.unfused);
  add(r.unfused ? "fused" : "latency, ms", r.fused);
  fmt::print("{}", table.text());
  for (double p : flags.percentiles) fmt::print("  p{:g}  {} ms\n", p, milliseconds(percentile(r.fused.sample, p)));
  fmt::print("  {} in {} ms = {:.1f} GFLOP/s", human_flops(r.fused.work.flops), milliseconds(r.fused.latency_ms.median),
             r.fused.work.flops * 1e-6 / r.fused.latency_ms.median);
  if (r.limits.fma_gflops > 0)
    fmt::print(", {} of the measured FMA limit ({:.1f} GFLOP/s, {} bit)\n", percent(r.share), r.limits.fma_gflops,
               8 * r.limits.vector_bytes);
  else
    fmt::print(", copies to and from the device included (profile times the kernels alone)\n");
  if (r.per_second > 0)
    fmt::print("  throughput {:.1f} per second ({} context{} x {} thread{})\n", r.per_second, r.contexts,
               r.contexts == 1 ? "" : "s", r.threads, r.threads == 1 ? "" : "s");
  std::string start;
  if (r.start.compile_ms > 0) start += fmt::format("compile {} ms, ", milliseconds(r.start.compile_ms));
  if (r.start.load_ms > 0) start += fmt::format("load {} ms, ", milliseconds(r.start.load_ms));
  fmt::print("  start: {}first inference {} ms\n", start, milliseconds(r.start.first_ms));
  fmt::print("  arena {} for intermediates of {}\n", human_bytes(static_cast<double>(r.fused.arena)),
             human_bytes(static_cast<double>(r.fused.intermediates)));
  if (!r.unfused) return;
  fmt::print("  fused / unfused  {:.3f}x  [95 % interval {:.3f}, {:.3f}]: speed-up {:.2f}x, {}\n", r.ratio.estimate,
             r.ratio.low, r.ratio.high, 1 / r.ratio.estimate,
             r.slower()   ? "SLOWER"
             : r.faster() ? "faster"
                          : "no difference beyond noise");
  fmt::print("  peak memory {} -> {}: {}\n", human_bytes(static_cast<double>(r.unfused->arena)),
             human_bytes(static_cast<double>(r.fused.arena)),
             r.larger()    ? "HIGHER"
             : r.smaller() ? "lower"
                           : "equal");
  fmt::print("  outputs differ by {:.2g} of max abs\n", r.output_error);
  if (!r.groups.empty() || !interrupted()) fmt::print("{}{}", text_of(r.bars), text_of(r.groups, flags.per_group));
}

void judge(const Result& r) {
  if (r.fused.latency_ms.cv > 0.05)
    warn(
        fmt::format("the runs vary by {}: something else uses this machine, or its clock changes; trust ratios, not "
                    "single times",
                    percent(r.fused.latency_ms.cv)));
  if (r.fused.latency_ms.count < 10)
    warn(fmt::format("only {} runs: percentiles say little; raise --duration", r.fused.latency_ms.count));
  if (interrupted()) warn("interrupted: the numbers are those of the runs so far");
}

int run(const FlagSet& app, Flags flags) {
  catch_interrupts();
  check_companions(app, {{"--count", "--kernels"}, {"--alone", "--kernels"}, {"--allow-stale", "--plan"}});
  bound_threads(flags.compile);
  if (!flags.kernels.empty()) {
    if (!parse_target(flags.compile.target).traits.on_host)
      throw fail(E::bad_option, "--kernels is timed on cpu targets, not on {}", flags.compile.target)
          .hint("opfuse profile times each kernel of a model on the device");
    if (flags.kernels != "random") throw fail(E::bad_option, "--kernels {}: only 'random' is known", flags.kernels);
    if (!flags.model.empty())
      throw fail(E::bad_option, "MODEL and --kernels exclude each other: --kernels times drawn layers");
    return bench_random_kernels({flags.inputs.seed, flags.count, flags.compile, flags.alone, flags.json});
  }
  if (flags.per_group && !flags.vs_unfused) throw fail(E::bad_option, "--per-group goes with --vs-unfused");
  if (flags.model.empty())
    throw fail(E::bad_option, "a MODEL is required").hint("opfuse bench MODEL.onnx, or --kernels random");
  remember_read_file(flags.model);
  check_output("--export-times", flags.export_times, {".json"}, false, false);
  const std::optional<Result> measured = measure_model(app, flags);
  if (!measured) {
    warn("interrupted before the first counted run: nothing was measured");
    return kInterrupted;
  }
  const Result& result = *measured;
  judge(result);
  if (!flags.export_times.empty()) {
    Json times = document("opfuse.times/1");
    times["latency_ms"] = result.fused.sample;
    if (result.unfused) times["unfused_latency_ms"] = result.unfused->sample;
    write_text_file(flags.export_times, json_text(times, 1) + "\n");
  }
  if (flags.json)
    print_json(to_json(result, flags));
  else
    print_text(result, flags);
  if (interrupted()) return kInterrupted;
  constexpr double kSameOutputs = 1e-4;  // reordered sums through a whole model
  if (result.unfused && result.output_error > kSameOutputs) {
    warn(fmt::format("fused and unfused outputs differ by {:.2g} of max abs: see opfuse compare", result.output_error));
    return kCheckFailed;
  }
  return result.slower() || result.larger() || !result.groups_kept() ? kCheckFailed : kOk;
}

}  // namespace

std::function<int()> add_bench(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelOrOpfHelp);
  app.add_flag(
      "--vs-unfused", flags->vs_unfused,
      "measure in turns with the unfused program; exit 1 if peak memory is larger, or latency worse beyond noise");
  app.add_flag("--per-group", flags->per_group,
               "with --vs-unfused: time of each group and of the kernels it replaces; exit 1 if too many are slower");
  app.add_flag("--resident", flags->resident,
               "of a GPU: inputs and outputs stay in its memory; without it copies there and back are timed too");
  app.add_option("--contexts,--infStreams", flags->contexts, "contexts that run at the same time, --threads each")
      ->range(1, 1024)
      ->capture_default_str();
  app.add_option("--warmup,--warmUp", flags->warmup, "time of uncounted runs")->capture_default_str();
  app.add_option("--duration", flags->duration, "time of counted runs")->capture_default_str();
  app.add_option("--iterations", flags->iterations, "least number of runs")->range(1, 1 << 30)->capture_default_str();
  app.add_option("--percentile", flags->percentiles, "further percentiles, e.g. 90,99.9")->delimiter(',');
  app.add_option("--export-times,--exportTimes", flags->export_times, "write every run's time as JSON")
      ->type_name("FILE");
  app.add_option("--kernels", flags->kernels,
                 "'random': drawn convolutions, products and depthwise layers instead of a model");
  app.add_option("--count", flags->count, "how many kernels to draw")->range(1, 100000)->capture_default_str();
  app.add_flag(
      "--alone", flags->alone,
      "with --kernels: compile each layer as a model of its own on dense arrays, not in the layouts of a network");
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
