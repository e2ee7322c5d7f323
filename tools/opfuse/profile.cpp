// opfuse profile: where the time goes, kernel by kernel, against what the machine allows.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "measure_profile.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "profile/counters.hpp"
#include "report.hpp"
#include "report/chrome_trace.hpp"
#include "runtime/artifact.hpp"
#include "split_forms.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, warmup = "200ms", duration = "2s", sort = "order", trace, profile_file, layers_file;
  InputFlags inputs;
  CompileFlags compile;
  int top = 0;
  bool vs_unfused = false, counters = false, json = false, force = false;
};

/// What runs, from a model or an .opf.
struct Subject {
  Executable executable;
  ModelInputs inputs;
  std::optional<Executable> unfused;  ///< with --vs-unfused
};

/// Beside the rows of the profile.
struct Extras {
  std::vector<SplitForm> groups;
  std::string no_counters;                ///< why; "" with counters, or without --counters
  std::optional<CounterValues> counters;  ///< of one run
};

Subject open_subject(const FlagSet& app, const Flags& flags) {
  const GivenModel model = open_model(flags.model, {.inputs = flags.inputs.files});
  if (model.executable) refuse_compile_flags(app, flags.model);
  const ModelInputs inputs = make_inputs(model.interface(), flags.inputs);
  std::optional<Executable> executable = model.executable;
  if (!executable) {
    const Compiled compiled = compile_fused(*model.graph, inputs.symbols, flags.compile);
    show_limits(compiled);
    executable = compiled.executable;
  } else {
    show_limits(*executable);
  }
  warn_emulated(*executable);
  if (flags.vs_unfused && !model.graph)
    throw fail(E::bad_option, "--vs-unfused needs the model, an .opf holds only the fused program");
  std::optional<Executable> unfused;
  if (flags.vs_unfused) unfused = compile_unfused(*model.graph, inputs.symbols, flags.compile).executable;
  return {*executable, inputs, unfused};
}

void sort_rows(std::vector<ProfiledLaunch>& rows, const Flags& flags) {
  if (flags.sort == "time")
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ProfiledLaunch& a, const ProfiledLaunch& b) { return a.ms > b.ms; });
  if (flags.sort == "roof")
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ProfiledLaunch& a, const ProfiledLaunch& b) { return a.point.share < b.point.share; });
  if (flags.top > 0 && rows.size() > static_cast<size_t>(flags.top)) rows.resize(static_cast<size_t>(flags.top));
}

/// Counters per run; they are made before the threads that they shall count.
void count(const Subject& subject, const Flags& flags, Extras& extras) {
  const HardwareCounters counters;
  extras.no_counters = counters.missing();
  if (!extras.no_counters.empty()) return;
  Session session(subject.executable, subject.inputs, {flags.compile.threads});
  constexpr int kRuns = 10;
  for (int i = 0; i < 3; ++i) session.context().run();
  const auto before = counters.read();
  for (int i = 0; i < kRuns; ++i) session.context().run();
  const auto after = counters.read();
  if (!before || !after) {
    extras.no_counters = "the system gave the counters no time to count";
    return;
  }
  const auto per_run = [&](double CounterValues::*field) { return ((*after).*field - (*before).*field) / kRuns; };
  extras.counters = CounterValues{per_run(&CounterValues::cycles), per_run(&CounterValues::instructions),
                                  per_run(&CounterValues::cache_references), per_run(&CounterValues::cache_misses)};
}

Extras measure_extras(const Subject& subject, const Flags& flags, const MeasureSettings& settings) {
  Extras extras;
  if (subject.unfused && !interrupted()) {
    ContextOptions options{flags.compile.threads};
    options.profile = true;
    Session fused(subject.executable, subject.inputs, options), unfused(*subject.unfused, subject.inputs, options);
    const NodeLinks links = links_between(subject.executable, *subject.unfused, subject.inputs.symbols);
    extras.groups = measure_split_forms(fused, unfused, links, settings, flags.inputs.seed);
  }
  if (flags.counters && !interrupted()) count(subject, flags, extras);
  return extras;
}

void print_extras(const Extras& extras) {
  if (!extras.groups.empty()) fmt::print("{}", text_of(extras.groups, true));
  if (!extras.no_counters.empty()) fmt::print("  counters: none, {}\n", extras.no_counters);
  if (const auto& c = extras.counters)
    fmt::print(
        "  counters per run: {:.4g} instructions, {:.2f} per cycle, {:.3g} reads of the last cache, {:.3g} missed\n",
        c->instructions, c->cycles > 0 ? c->instructions / c->cycles : 0, c->cache_references, c->cache_misses);
}

void add_extras(const Extras& extras, Json& out) {
  if (!extras.groups.empty()) {
    Json groups = Json::array();
    for (const SplitForm& form : extras.groups) groups.push_back(cli::json_of(form));
    out["groups"] = std::move(groups);
  }
  if (!extras.no_counters.empty()) out["counters"] = {{"missing", extras.no_counters}};
  if (const auto& c = extras.counters)
    out["counters"] = {{"cycles", c->cycles},
                       {"instructions", c->instructions},
                       {"cache_references", c->cache_references},
                       {"cache_misses", c->cache_misses}};
}

/// What a launch cannot exceed: "memory", or the unit that multiplies its type.
std::string bound_of(const MachineLimits& limits, const ProfiledLaunch& row) {
  if (row.point.memory_bound) return "memory";
  const ProductRate* rate = limits.rate_of(row.launch.products);
  return rate ? rate->instruction : "FMA";
}

void print_text(const LaunchProfile& p, const std::vector<ProfiledLaunch>& rows, const Flags& flags) {
  fmt::print("{}   {}   threads {}   seed {}   {} runs\n", flags.model, p.target, p.limits.threads, flags.inputs.seed,
             p.runs);
  Table table({">time", ">ms", "kernel", ">bytes", ">GB/s", ">GFLOP/s", ">roof", "bound", "nodes"});
  double flops = 0, bytes = 0, floor = 0;
  for (const ProfiledLaunch& row : p.rows)
    flops += row.launch.flops, bytes += row.bytes(), floor += row.point.floor_seconds;
  for (const ProfiledLaunch& row : rows)
    table.row({percent(row.ms / p.sum_ms), milliseconds(row.ms), row.launch.name, human_bytes(row.bytes()),
               fmt::format("{:.1f}", row.bytes() * 1e-6 / row.ms),
               fmt::format("{:.1f}", row.launch.flops * 1e-6 / row.ms), percent(row.point.share, 0),
               bound_of(p.limits, row), listed(row.launch.sources, 3)});
  table.row({"", milliseconds(p.sum_ms), fmt::format("sum of {} kernels", p.rows.size()), human_bytes(bytes),
             fmt::format("{:.1f}", bytes * 1e-6 / p.sum_ms), fmt::format("{:.1f}", flops * 1e-6 / p.sum_ms),
             percent(floor * 1e3 / p.sum_ms, 0)});
  fmt::print("{}", table.text());
  fmt::print("  kernels sum to {} ms of {} ms latency while recording ({}){}\n", milliseconds(p.sum_ms),
             milliseconds(p.recorded_ms), percent(p.sum_ms / p.recorded_ms),
             p.plain_ms > 0 ? fmt::format(", {} ms without", milliseconds(p.plain_ms)) : "");
  if (p.limits.fma_gflops == 0) {  // a GPU
    fmt::print("  roof: copies on the device, {:.0f} GB/s read and written; times are the device's own\n",
               p.limits.reads.front().gb_per_s);
    return;
  }
  std::string reads;
  for (const ReadRate& level : p.limits.reads)
    reads += fmt::format("{}{:.0f} GB/s up to {}", reads.empty() ? "" : ", ", level.gb_per_s,
                         human_bytes(static_cast<double>(level.bytes)));
  std::string products;
  for (const ProductRate& rate : p.limits.products)
    products += fmt::format(", {:.0f} GOP/s {} ({})", rate.gops, rate.products, rate.instruction);
  fmt::print("  roof: {:.1f} GFLOP/s f32{}; reads {}\n", p.limits.fma_gflops, products, reads);
}

Json to_json(const LaunchProfile& p, const std::vector<ProfiledLaunch>& rows, const Flags& flags) {
  Json out = document("opfuse.profile/1");
  out.update({{"model", flags.model},
              {"target", p.target},
              {"threads", p.limits.threads},
              {"seed", flags.inputs.seed},
              {"dims", cli::json_of(p.dims)},
              {"variant", cli::json_of(p.variant)},
              {"runs", p.runs},
              {"sum_ms", p.sum_ms},
              {"recorded_ms", p.recorded_ms},
              {"latency_ms", p.plain_ms > 0 ? Json(p.plain_ms) : Json(nullptr)},
              {"fma_limit_gflop_per_s", p.limits.fma_gflops},
              {"interrupted", interrupted()}});
  Json levels = Json::array();
  for (const ReadRate& level : p.limits.reads) levels.push_back({{"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}});
  out["read_limits"] = std::move(levels);
  Json products = Json::array();
  for (const ProductRate& rate : p.limits.products)
    products.push_back({{"products", rate.products}, {"instruction", rate.instruction}, {"gop_per_s", rate.gops}});
  out["product_limits"] = std::move(products);
  Json list = Json::array();
  for (const ProfiledLaunch& row : rows)
    list.push_back({{"kernel", row.launch.name},
                    {"symbol", row.launch.kernel},
                    {"pattern", row.launch.pattern},
                    {"ms", row.ms},
                    {"share", row.ms / p.sum_ms},
                    {"bytes", row.bytes()},
                    {"flop", row.launch.flops},
                    {"gb_per_s", row.bytes() * 1e-6 / row.ms},
                    {"gflop_per_s", row.launch.flops * 1e-6 / row.ms},
                    {"share_of_roof", row.point.share},
                    {"bound", row.point.memory_bound ? "memory" : "fma"},
                    {"products", row.launch.products},
                    {"parts", row.launch.parts},
                    {"schedule", row.launch.schedule},
                    {"nodes", row.launch.sources}});
  out["kernels"] = std::move(list);
  return out;
}

/// What is known of each launch without running it: the profile without its times.
Json layers_of(Json profile) {
  for (Json& kernel : profile["kernels"])
    for (const char* measured : {"ms", "share", "gb_per_s", "gflop_per_s", "share_of_roof"}) kernel.erase(measured);
  Json out = document("opfuse.layers/1");
  for (const char* key : {"model", "target", "dims", "variant", "kernels"}) out[key] = std::move(profile[key]);
  return out;
}

void write_trace(const Subject& subject, const SymbolValues& sizes, const Flags& flags) {
  const Artifact& artifact = subject.executable.artifact();
  const report::RunTrace trace = trace_run(subject.executable, subject.inputs, flags.compile.threads);
  write_text_file(flags.trace, report::chrome_trace(flags.model, artifact.program_for(sizes), sizes, trace));
}

int run(const FlagSet& app, Flags flags) {
  catch_interrupts();
  check_companions(app, {{"--allow-stale", "--plan"}});
  bound_threads(flags.compile);
  for (const auto& [flag, file] : {std::pair<const char*, const std::string&>{"--trace", flags.trace},
                                   {"--export-profile", flags.profile_file},
                                   {"--export-layers", flags.layers_file}})
    check_output(flag, file, {".json"}, flags.force);
  const Subject subject = open_subject(app, flags);
  const MeasureSettings settings{parse_duration(flags.warmup, 1e-3), parse_duration(flags.duration, 1), 5};
  const LaunchProfile profile = measure_profile(subject.executable, subject.inputs, flags.compile.threads, settings);
  if (!flags.trace.empty()) write_trace(subject, profile.dims, flags);
  const Extras extras = measure_extras(subject, flags, settings);
  if (interrupted())
    warn(fmt::format("interrupted: the numbers are those of the {} run{} so far", profile.runs,
                     profile.runs == 1 ? "" : "s"));
  std::vector<ProfiledLaunch> rows = profile.rows;
  sort_rows(rows, flags);
  Json out = to_json(profile, rows, flags);
  add_extras(extras, out);
  if (!flags.profile_file.empty()) write_text_file(flags.profile_file, json_text(out, 1) + "\n");
  if (!flags.layers_file.empty()) write_text_file(flags.layers_file, json_text(layers_of(out), 1) + "\n");
  if (flags.json) {
    print_json(out);
  } else {
    print_text(profile, rows, flags);
    print_extras(extras);
  }
  return exit_code(kOk);
}

}  // namespace

std::function<int()> add_profile(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelOrOpfHelp)->required();
  app.add_option("--sort", flags->sort, "order, time or roof")
      ->one_of({"order", "time", "roof"})
      ->capture_default_str();
  app.add_option("--top", flags->top, "show only the first N kernels");
  app.add_option("--warmup,--warmUp", flags->warmup, "time of uncounted runs")->capture_default_str();
  app.add_option("--duration", flags->duration, "time of recorded runs")->capture_default_str();
  app.add_flag("--vs-unfused", flags->vs_unfused,
               "time of each group and of the kernels it replaces, measured in turns, and the bytes that fusing saves");
  app.add_flag("--counters", flags->counters,
               "instructions, cycles and misses of the last cache per run, where the system allows (perf_event)");
  app.add_option("--trace", flags->trace, "a run part by part, for ui.perfetto.dev: launches, workers, waiting, memory")
      ->type_name("FILE.json");
  app.add_option("--export-profile,--exportProfile", flags->profile_file, "write the profile as JSON (docs/json.md)")
      ->type_name("FILE.json");
  app.add_option("--export-layers,--exportLayerInfo", flags->layers_file,
                 "write every kernel's nodes, schedule, bytes and FLOP as JSON, without times")
      ->type_name("FILE.json");
  add_force_flag(app, flags->force);
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
