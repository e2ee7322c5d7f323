// The order of the stages is the driver's (driver/pipeline.hpp); this file only connects flags with them.
#include "compile_model.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "console.hpp"
#include "opfuse/opfuse.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"

namespace opfuse::cli {
namespace {

ArtifactOptions artifact_options(const CompileFlags& flags, const EmitRequest& emit, const FusionPlan& plan) {
  ArtifactOptions options;
  options.cache = !flags.no_cache;
  options.emit_dir = emit.folder;
  options.emit_llvm = emit.llvm;
  options.emit_assembly = emit.assembly;
  options.emit_cuda = emit.cuda;
  options.text_only = emit.text_only;
  options.model_hash = plan.model;
  if (!plan.candidates.empty()) options.plan_json = to_json(plan);
  options.progress = show_progress;
  return options;
}

LowerOptions lower_options(const CompileFlags& flags) {
  return {flags.allow_reference, algorithm_request(flags.algorithms, flags.threads), !flags.no_chains};
}

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

Executable finish(Compiled& compiled, const std::string& name, const TargetInfo& target, ArtifactOptions options) {
  options.kernel_times = &compiled.kernel_times;
  const auto& launches = compiled.program.launches;
  if (std::any_of(launches.begin(), launches.end(), [](const Launch& launch) { return launch.reference; }))
    options.reference_graph = std::make_shared<Graph>(compiled.fused.clone());
  Artifact artifact = build_artifact(compiled.program, compiled.variants, target, options);
  note_indexed_tables(artifact, compiled.fused);
  artifact.model_name = name;
  artifact.producer = "opfuse " + version();
  finish_progress();
  return Executable::from_artifact(std::move(artifact));
}

}  // namespace

void add_target_flag(CLI::App& app, std::string& target) {
  app.add_option("--target", target, "host, cpu:avx512, cpu:avx2, cpu:baseline, cuda:sm_80 ... or cuda:emulated")
      ->capture_default_str();
}

void add_plan_flags(CLI::App& app, PlanFlags& flags) {
  app.add_option("--only", flags.only, "apply only these patterns (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--skip", flags.skip, "leave out these patterns (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--plan", flags.plan_file, "apply the verdicts of a saved plan")->type_name("FILE");
  app.add_flag("--allow-stale", flags.allow_stale,
               "with --plan: also when it was made for other weights or dimensions");
  app.add_option("--patterns", flags.patterns, "patterns of your own, before the catalogue (repeatable)")
      ->type_name("FILE.toml")
      ->allow_extra_args(false);
}

void add_chain_flag(CLI::App& app, bool& no_chains) {
  app.add_flag("--no-chains", no_chains,
               "a launch each for a convolution and the depthwise one behind it, for means of its map, for factors "
               "of channels in front of 1x1 convolutions, and for the two products of a gated MLP; the first groups of "
               "a batch for all its images together");
}

void add_algorithm_flags(CLI::App& app, AlgorithmFlags& flags) {
  app.add_flag("--exact", flags.exact,
               "no algorithm that rounds otherwise than direct convolution (Winograd), no activations by tables");
  app.add_flag("--measure", flags.measure, "choose algorithms by timing the whole model with each of them");
  app.add_option("--algorithm", flags.only, "compute convolutions with direct, f2, f4x2 or f4 (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--no-algorithm", flags.skip, "never compute convolutions with these (repeatable)")
      ->type_name("NAME[@NODE]")
      ->allow_extra_args(false);
  app.add_option("--max-weight-growth", flags.max_weight_growth,
                 "what transformed weights may add (default: 45MB, or 40 % of a larger model)")
      ->type_name("BYTES");
  app.add_option("--workspace", flags.workspace, "scratch memory per thread that an algorithm may need")
      ->type_name("BYTES");
}

AlgorithmRequest algorithm_request(const AlgorithmFlags& flags, int threads) {
  return {flags.exact,
          flags.only,
          flags.skip,
          parse_bytes("--max-weight-growth", flags.max_weight_growth),
          parse_bytes("--workspace", flags.workspace),
          threads,
          flags.measure};
}

void add_compile_flags(CLI::App& app, CompileFlags& flags) {
  add_target_flag(app, flags.target);
  app.add_option("--threads", flags.threads, "threads of a run; 0: affinity mask and CPU quota")->capture_default_str();
  app.add_flag("--no-cache", flags.no_cache, "neither read nor write the kernel cache");
  app.add_flag("--allow-reference", flags.allow_reference, "run operators without a kernel in the interpreter (slow)");
  add_chain_flag(app, flags.no_chains);
  add_algorithm_flags(app, flags.algorithms);
  add_plan_flags(app, flags.plan);
}

Planned plan_model(const Graph& model, const SymbolValues& dims, const TargetInfo& target, const PlanFlags& flags) {
  Planned planned;
  planned.prepared = model.clone();
  PrepareOptions options;
  options.dims = dims;
  prepare(planned.prepared, options, &planned.notes);
  if (flags.plan_file.empty()) {
    planned.plan =
        plan_graph(planned.prepared, target, {.only = flags.only, .skip = flags.skip, .pattern_files = flags.patterns});
    return planned;
  }
  if (!flags.only.empty() || !flags.skip.empty() || !flags.patterns.empty())
    throw fail(E::bad_option, "--plan and --only/--skip/--patterns exclude each other")
        .hint("edit \"apply\" in the plan file");
  planned.plan = plan_from_json(read_text_file(flags.plan_file));
  return planned;
}

Graph apply_planned(const Planned& planned, const TargetInfo& target, const PlanFlags& flags) {
  const Legality legal = flags.plan_file.empty() ? Legality() : legality_on(target);  // the planner asked it already
  return apply(planned.prepared, planned.plan, flags.allow_stale, legal);
}

Compiled compile_fused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags, const EmitRequest& emit,
                       const std::vector<SymbolValues>& specialize) {
  const TargetInfo target = parse_target(flags.target);
  Planned planned = plan_model(model, dims, target, flags.plan);
  Compiled compiled;
  compiled.fused = apply_planned(planned, target, flags.plan);
  compiled.variants = make_variants(compiled.fused, target, {specialize, true, !flags.no_chains, lower_options(flags)});
  shape_for_target(compiled.fused, target, &planned.notes, !flags.no_chains);
  compiled.program = lower_to_program(compiled.fused, target, lower_options(flags));
  compiled.executable = finish(compiled, model.name, target, artifact_options(flags, emit, planned.plan));
  compiled.plan = std::move(planned.plan);
  compiled.notes = std::move(planned.notes);
  return compiled;
}

Compiled compile_unfused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                         const std::vector<SymbolValues>& specialize) {
  const TargetInfo target = parse_target(flags.target);
  Compiled compiled;
  compiled.fused = model.clone();
  PrepareOptions options;
  options.dims = dims;
  options.convert = false;
  prepare(compiled.fused, options, &compiled.notes);
  LowerOptions lowering = lower_options(flags);
  lowering.image_loop = false;
  compiled.variants = make_variants(compiled.fused, target, {specialize, false, false, lowering});
  compiled.program = lower_to_program(compiled.fused, target, lowering);
  compiled.executable = finish(compiled, model.name, target, artifact_options(flags, {}, {}));
  return compiled;
}

void show_limits(const Compiled& compiled) {
  for (const std::string& text : grouped_notes(compiled.program.notes)) note(text);
}

void show_limits(const Executable& loaded) {
  for (const std::string& text : grouped_notes(loaded.artifact().notes)) note(text);
}

void warn_emulated(const Executable& executable) {
  if (executable.artifact().target == "cuda:emulated")
    warn("cuda:emulated runs the kernels on this CPU: these times say nothing about a GPU");
}

}  // namespace opfuse::cli
