// The order of the stages is the driver's (driver/pipeline.hpp); this file only connects flags with them.
#include "compile_model.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>

#include "base/fail.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "limits_flag.hpp"
#include "opfuse/opfuse.hpp"
#include "outputs.hpp"
#include "passes/pass_manager.hpp"
#include "plan_file.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

/// "45MB", "512 KiB", "1000000".
std::optional<int64_t> parse_bytes(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    value = -1;
  }
  std::string unit = text.substr(std::min(used, text.size()));
  std::erase(unit, ' ');
  constexpr std::pair<const char*, double> kUnits[] = {{"", 1},         {"B", 1},           {"KB", 1e3},
                                                       {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                                                       {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  for (const auto& [name, factor] : kUnits)
    if (unit == name && value >= 0) return static_cast<int64_t>(value * factor);
  throw fail(E::bad_option, "{} {}: not a number of bytes", option, text).hint("write 45MB, 512KiB or 1000000");
}

Compiled compile_to_end(const Graph& model, const CompileFlags& flags, CompilationOptions options,
                        const EmitRequest& emit, const std::vector<SymbolValues>& specialize) {
  options.specialize = specialize;
  options.artifact.progress = [](const std::string& step, size_t done, size_t total) {
    stop_if_interrupted();
    show_progress(step, done, total);
  };
  options.artifact.emit_dir = emit.folder;
  options.artifact.emit_llvm = emit.llvm;
  options.artifact.emit_assembly = emit.assembly;
  options.artifact.emit_cuda = emit.cuda;
  options.artifact.text_only = emit.text_only;
  const TargetInfo target = take_target(flags.target, options);
  Compiled compiled(compile_graph(model, target, options));
  finish_progress();
  return compiled;
}

}  // namespace

void add_target_flag(FlagSet& app, std::string& target) {
  app.add_option("--target", target,
                 "host, cpu:avx512, cpu:avx2, cpu:baseline, cuda:sm_80 ..., cuda:emulated, a file FILE.toml, or "
                 "devices in front of a cpu target: example-npu,cuda:sm_80,cpu")
      ->capture_default_str();
}

TargetInfo take_target(const std::string& names, CompilationOptions& options) {
  std::string rest = names;
  for (size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
    if (comma == 0) throw fail(E::bad_option, "--target {} has an empty name between its commas", names);
    options.accelerators.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  TargetInfo target = parse_target(rest);
  if (!options.accelerators.empty() && !target.traits.on_host)
    throw fail(E::bad_option, "the last of --target {} must be a cpu target, not {}", names, target.name)
        .hint("what no accelerator takes runs there: --target example-npu,cpu");
  return target;
}

void add_reproducer_flag(FlagSet& app) {
  app.add_option_function(
         "--reproducer-dir", [](const std::string& folder) { set_reproducer_folder(folder); },
         "where to write the graph when opfuse itself fails (default: $XDG_STATE_HOME/opfuse or "
         "~/.local/state/opfuse)")
      ->type_name("DIR");
}

void add_plan_flags(FlagSet& app, PlanFlags& flags) {
  add_reproducer_flag(app);
  app.add_option("--only", flags.only, "apply only these patterns (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--skip", flags.skip, "leave out these patterns (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_flag("--no-rules", flags.no_rules, "named patterns only; everything else stays unfused");
  app.add_option("--plan", flags.plan_file, "apply the verdicts of a saved plan")->type_name("FILE");
  app.add_flag("--allow-stale", flags.allow_stale,
               "with --plan: also when it was made for other weights or dimensions");
  app.add_option("--patterns", flags.patterns, "your own patterns, tried before the built-in ones (repeatable)")
      ->type_name("FILE.toml")
      ->allow_extra_args(false);
  app.add_option(
         "--precision", flags.precision,
         "compute products in f32, bf16, f16 (on CPUs: f16 weights, f32 products) or tf32, all or those of a node "
         "(repeatable)")
      ->type_name("TYPE[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--no-fuse", flags.no_fuse, "keep two nodes in separate groups and launches (repeatable)")
      ->type_name("A B")
      ->allow_extra_args(false);
  app.add_option(
         "--fuse", flags.fuse,
         "put two nodes in one group even if that is predicted to be slower; an error if it is illegal (repeatable)")
      ->type_name("A B")
      ->allow_extra_args(false);
  app.add_option("--place", flags.place,
                 "the device, one of --target, for a node's group; * means every node that it can run (repeatable)")
      ->type_name("NODE=DEVICE")
      ->allow_extra_args(false);
  app.add_flag("--fallback", flags.fallback,
               "continue without an accelerator whose plug-in cannot be loaded, with a note");
  app.add_option("--max-group-nodes", flags.max_group_nodes, "nodes that a group of the rules may have")
      ->range(1, 1 << 20)
      ->capture_default_str();
}

void take_plan(DimensionFlags& dimensions, const PlanFlags& plan) {
  if (!plan.allow_stale) dimensions.plan_file = plan.plan_file;
}

std::vector<std::string> PassFlags::off() const {
  std::vector<std::string> names = no_pass;
  if (no_chains) names.insert(names.end(), passes_of_chains().begin(), passes_of_chains().end());
  return names;
}

void add_pass_flags(FlagSet& app, PassFlags& flags) {
  std::vector<std::string> names;
  for (const ShapingPass& pass : shaping_passes()) names.push_back(pass.name);
  app.add_option("--no-pass", flags.no_pass,
                 fmt::format("leave out a shaping pass (repeatable): {}", fmt::join(names, ", ")))
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--no-chains", flags.no_chains,
               fmt::format("launch each group separately and keep batches together: --no-pass with each of {}",
                           fmt::join(passes_of_chains(), ", ")));
}

void add_algorithm_flags(FlagSet& app, AlgorithmFlags& flags) {
  app.add_flag("--exact", flags.exact, "direct convolution only (no Winograd), no table-based activations");
  app.add_flag("--measure", flags.measure,
               "choose algorithms and groups formed by rules by timing the whole model with each");
  app.add_option("--timings", flags.timings,
                 "with --measure: where measured groups, algorithms and schedules are kept (repeatable: the first is "
                 "written, the others are read "
                 "too; default: ~/.cache/opfuse/timings.json)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--algorithm", flags.only,
                 "compute convolutions with direct, f2, f4x2 or f4, products of codes in pairs (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--no-algorithm", flags.skip,
                 "never compute convolutions, or products of codes, with these (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--max-weight-growth", flags.max_weight_growth,
                 "memory that transformed weights may add (default: 45MB, or 40 % of a larger model)")
      ->type_name("BYTES");
  app.add_option(
         "--memory", flags.memory,
         "least: weights of 16 bits stay so in memory, none are transformed, and slices are small; fast: whatever "
         "is faster")
      ->one_of({"fast", "least"})
      ->capture_default_str();
  app.add_option("--workspace", flags.workspace,
                 "scratch memory per thread that an algorithm, or a kernel of several stages, may need")
      ->type_name("BYTES");
}

AlgorithmRequest algorithm_request(const AlgorithmFlags& flags, int threads) {
  if (!flags.timings.empty() && !flags.measure)
    throw fail(E::bad_option, "--timings goes with --measure: without it nothing is measured");
  return {flags.exact,
          flags.only,
          flags.skip,
          parse_bytes("--max-weight-growth", flags.max_weight_growth),
          parse_bytes("--workspace", flags.workspace),
          threads,
          flags.measure,
          flags.memory == "least"};
}

void add_compile_flags(FlagSet& app, CompileFlags& flags) {
  add_target_flag(app, flags.target);
  app.add_option("--threads", flags.threads, "threads of a run; 0: affinity mask and CPU quota")->capture_default_str();
  app.add_option("--compile-threads", flags.compile_threads, "threads of the compiler; 0: all available")
      ->capture_default_str();
  app.add_option("--dump-dir", flags.dump_dir, "write the graph here after each pass that changes it")
      ->type_name("DIR");
  app.add_flag("--no-cache", flags.no_cache, "neither read nor write the kernel cache");
  app.add_flag("--allow-reference", flags.allow_reference, "run operators without a kernel in the interpreter (slow)");
  add_pass_flags(app, flags.passes);
  add_algorithm_flags(app, flags.algorithms);
  add_plan_flags(app, flags.plan);
}

/// Every flag of add_compile_flags, so that a new one is refused too where nothing is compiled; `but`: those that
/// apply.
static std::vector<std::string> names_of_compiling(const std::vector<std::string>& but) {
  CompileFlags unused;
  std::vector<std::string> names = FlagSet::names_added_by([&](FlagSet& set) { add_compile_flags(set, unused); });
  std::erase_if(names, [&](const std::string& name) { return std::count(but.begin(), but.end(), name) > 0; });
  return names;
}

void refuse_compile_flags(const FlagSet& app, const std::string& opf) {
  refuse_flags(app, names_of_compiling({"--threads"}), "'" + opf + "' is compiled already",
               "compile the model again with that flag: opfuse compile MODEL -o " + opf);
  refuse_reading_flags(app, opf);
}

void refuse_reading_flags(const FlagSet& app, const std::string& opf) {
  refuse_flags(app, {"--limit", "--operator"}, "'" + opf + "' is compiled already",
               "compile the model again with that flag: opfuse compile MODEL -o " + opf);
}

void refuse_compile_flags_of_reference(const FlagSet& app) {
  refuse_flags(app, names_of_compiling({"--reproducer-dir"}), "--reference compiles nothing", "leave it out");
}

void refuse_plan_flags(const FlagSet& app, const std::string& why) {
  refuse_flags(app,
               {"--only", "--skip", "--plan", "--allow-stale", "--patterns", "--max-group-nodes", "--no-rules",
                "--no-fuse", "--fuse"},
               why, "leave it out");
}

void bound_threads(CompileFlags& flags) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;  // more processors than the set has bits
  const int most = CPU_COUNT(&set);
  if (flags.threads <= most) return;
  note(fmt::format("--threads {}: this process may use {} processor{}, so the runs have {} thread{}", flags.threads,
                   most, most == 1 ? "" : "s", most, most == 1 ? "" : "s"));
  flags.threads = most;
}

CompilationOptions compilation_options(const SymbolValues& dims, const PlanFlags& flags) {
  CompilationOptions options;
  options.dims = dims;
  options.limits = given_limits();
  options.allow_stale = flags.allow_stale;
  options.plan.precision = flags.precision;
  options.fallback = flags.fallback;
  for (const std::string& text : flags.place) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      throw fail(E::bad_option, "--place {}: write NODE=DEVICE", text);
    options.place.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  if (flags.plan_file.empty()) {
    options.plan.only = flags.only;
    options.plan.skip = flags.skip;
    options.plan.rules = !flags.no_rules;
    options.plan.pattern_files = flags.patterns;
    options.plan.max_group_nodes = flags.max_group_nodes;
    options.plan.no_fuse = flags.no_fuse;
    options.plan.fuse = flags.fuse;
    return options;
  }
  if (!flags.only.empty() || !flags.skip.empty() || !flags.patterns.empty() || flags.no_rules ||
      !flags.no_fuse.empty() || !flags.fuse.empty() || flags.max_group_nodes != PlanFlags{}.max_group_nodes)
    throw fail(E::bad_option,
               "--plan and --only/--skip/--patterns/--no-rules/--max-group-nodes/--no-fuse/--fuse exclude each other")
        .hint("edit \"apply\" in the plan file");
  options.given_plan = std::make_shared<const FusionPlan>(read_plan(flags.plan_file));
  return options;
}

CompilationOptions compilation_options(const SymbolValues& dims, const CompileFlags& flags) {
  CompilationOptions options = compilation_options(dims, flags.plan);
  options.no_pass = flags.passes.off();
  options.allow_reference = flags.allow_reference;
  options.algorithms = algorithm_request(flags.algorithms, flags.threads);
  options.timings = flags.algorithms.timings;
  options.dump_dir = flags.dump_dir;
  options.artifact.threads = flags.compile_threads;
  options.artifact.cache = !flags.no_cache;
  options.artifact.progress = show_progress;
  return options;
}

const Program* lower_or_note(Compilation& compilation, const std::string& without) {
  try {
    compilation.run_to(Milestone::lowered);
    return &compilation.program;
  } catch (const Error& error) {
    const Diagnostic& d = error.diagnostic();
    if (exit_code_of(d) != kBadModel && d.name != "unknown_dimension") throw;
    note(fmt::format("the model does not compile ({}): {}", d.message, without));
    return nullptr;
  }
}

Compiled::Compiled(Compilation compilation)
    : Compilation(std::move(compilation)), executable(Executable::from_artifact(artifact)) {}

Compiled compile_fused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags, const EmitRequest& emit,
                       const std::vector<SymbolValues>& specialize) {
  return compile_to_end(model, flags, compilation_options(dims, flags), emit, specialize);
}

Compiled compile_unfused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                         const EmitRequest& emit, const std::vector<SymbolValues>& specialize) {
  CompilationOptions options = compilation_options(dims, flags);
  options.fused = false;
  return compile_to_end(model, flags, std::move(options), emit, specialize);
}

void show_limits(const Compilation& compilation) {
  for (const std::string& text : compilation.conversions)
    if (text.starts_with("fallback: ")) note(text);
  for (const std::string& text : grouped_notes(compilation.program.notes)) note(text);
}

void show_limits(const Executable& loaded) {
  for (const std::string& text : grouped_notes(loaded.artifact().notes)) note(text);
}

void warn_emulated(const Executable& executable) {
  if (executable.artifact().target == "cuda:emulated")
    warn("cuda:emulated runs the kernels on this CPU: these times say nothing about a GPU");
}

}  // namespace opfuse::cli
