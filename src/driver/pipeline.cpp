// prepare -> plan -> apply -> lower: the order of the compiler, and why.
//   prepare    the passes of preparing_passes(): clean, recompose and convert, clean
//   plan       sees the operators a person would name; legality asks lowering and the generator, nothing else
#include "driver/pipeline.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/group_cost.hpp"
#include "cpu/input_copy.hpp"
#include "cpu/intrinsic/intrinsic.hpp"
#include "cpu/winograd/winograd.hpp"
#include "driver/known_groups.hpp"
#include "driver/ledger_questions.hpp"
#include "driver/measure_launches.hpp"
#include "driver/measured_schedules.hpp"
#include "driver/settings.hpp"
#include "fusion/precision.hpp"
#include "fusion/user/capability_rules.hpp"
#include "fusion/user/pattern_file.hpp"
#include "interp/random_inputs.hpp"
#include "ir/dim_constraints.hpp"
#include "ir/fix_input.hpp"
#include "ir/outline.hpp"
#include "link/generators.hpp"
#include "onnx/read_again.hpp"
#include "passes/expand_recurrent.hpp"
#include "passes/fold_dequantized.hpp"
#include "passes/name_values.hpp"
#include "passes/pass_manager.hpp"
#include "passes/passes.hpp"
#include "program/build.hpp"
#include "program/image_loop.hpp"
#include "program/origins.hpp"
#include "program/work_list.hpp"
#include "region/lower.hpp"
#include "region/single_stage.hpp"
#include "runtime/check_devices.hpp"
#include "tune/activation_tables.hpp"
#include "tune/digits.hpp"
#include "tune/pair_codes.hpp"

namespace opfuse {

PassRun prepare(Graph& graph, const PrepareOptions& options, std::vector<std::string>* notes) {
  bind_sizes(graph, options.dims, notes);
  graph.remove_dead_nodes();  // what only had its shape read is nothing to plan for
  RewriteReport report;
  PassRun run = run_passes(graph, options.convert ? preparing_passes() : cleaning_passes(),
                           {.dump_dir = options.dump_dir, .report = &report});
  name_values(graph);
  if (!notes) return run;
  notes->insert(notes->end(), run.notes.begin(), run.notes.end());
  for (const RewriteNote& note : report.notes)
    notes->push_back(note.applied ? fmt::format("{} at {}: {}", note.rule, note.node, note.reason.message)
                                  : fmt::format("{} at {} declined, {}: {}", note.rule, note.node, note.reason.code,
                                                note.reason.message));
  return run;
}

void bind_sizes(Graph& graph, const SymbolValues& dims, std::vector<std::string>* notes, const Limits& limits) {
  if (dims.empty()) return;
  if (auto sized = read_again(graph, dims, limits)) {
    graph = std::move(*sized);
    if (notes) notes->emplace_back("the model was read again with the sizes given: more of it folds");
  } else {
    graph.bind_dimensions(dims);
  }
}

void bind_fused(Graph& graph, const SymbolValues& dims) {
  if (dims.empty()) return;
  graph.bind_dimensions(dims);
  run_passes(graph, cleaning_passes());
}

std::optional<Decline> illegal_on(const Node& node, const TargetInfo& target) {
  auto lowered = lower_group(node);
  if (auto* decline = std::get_if<Decline>(&lowered)) return *decline;
  return refusal_of(std::get<LoweredGroup>(lowered).region, node.name(), target);
}

/// Why the function of the group's composite is none for it.
static std::optional<Decline> misfit_of_tile(const Node& node, const TargetInfo& target) {
  if (!intrinsic_of(target, node.pattern)) return std::nullopt;
  auto lowered = lower_group(node);
  if (auto* decline = std::get_if<Decline>(&lowered)) return *decline;
  if (const auto why = intrinsic_misfit(std::get<LoweredGroup>(lowered).region))
    return Decline{"instruction", *why, {node.pattern}};
  return std::nullopt;
}

Legality legality_on(const TargetInfo& target) {
  using Refusal = std::optional<Decline>;
  return [target, rules = capability_rules(target), tiles = has_intrinsics(target),
          known = KnownGroups<Refusal>()](const Node& node) -> Refusal {
    if (rules)
      if (auto decline = rules->refuse(node)) return decline;
    if (tiles)
      if (auto decline = misfit_of_tile(node, target)) return decline;
    if (!has_generator(target)) return std::nullopt;
    return known(
        node, [&] { return illegal_on(node, target); }, [](const Refusal& why) { return !why; });
  };
}

std::vector<FusionPattern> patterns_of(const PlanRequest& request) {
  std::vector<PatternText> own;
  for (const PatternSpec& spec : request.patterns) {
    PatternText text{spec.name, spec.module, spec.doc,     spec.root, {spec.topology, {spec.name, 1, 1}},
                     {},        {},          spec.priority};
    for (const std::string& condition : spec.where) text.where.push_back({condition, {spec.name, 1, 1}});
    text.points.assign(spec.points.begin(), spec.points.end());
    own.push_back(std::move(text));
  }
  return patterns_with(request.pattern_files, own);
}

PlanOptions plan_options(const TargetInfo& target, const PlanRequest& request, const Limits& limits) {
  PlanOptions options;
  options.target = target.name;
  options.legal = legality_on(target);
  if (has_generator(target)) options.price = pricing_within(request, pricing_on(target));
  options.margins = target.margins;
  options.reads = [known = KnownGroups<OperandReads>()](const Node& node) {
    return known(
        node, [&] { return reads_of_operands(node); }, [](const OperandReads&) { return true; });
  };
  if (has_generator(target)) options.traffic = traffic_on(target);
  options.only = request.only;
  options.skip = request.skip;
  options.rules = request.rules;
  options.max_nodes = request.max_group_nodes;
  options.limits = limits;
  options.no_fuse = request.no_fuse;
  options.fuse = request.fuse;
  return options;
}

FusionPlan plan_graph(const Graph& prepared, const TargetInfo& target, const PlanRequest& request,
                      const Limits& limits) {
  PlanOptions options = plan_options(target, request, limits);
  std::vector<FusionPattern> patterns = patterns_of(request);
  const auto rules = capability_rules(target);
  if (rules) patterns.insert(patterns.begin(), rules->composites().begin(), rules->composites().end());
  options.patterns = &patterns;
  FusionPlan plan = make_plan(prepared, options);
  if (rules) rules->settle_points(prepared, plan);
  set_precisions(plan, prepared, request.precision);
  return plan;
}

/// What one kernel cannot do is planned again as smaller groups; modules that may be divided are not tried again.
static Graph divided(const Node& fused, const TargetInfo& target) {
  Graph body = fused.body->clone();
  expand_bodies(body);
  static const std::vector<FusionPattern> kWhole = [] {
    std::vector<FusionPattern> patterns = fusion_patterns();
    std::erase_if(patterns, [](const FusionPattern& p) { return p.divisible; });
    return patterns;
  }();
  PlanOptions options;
  options.legal = legality_on(target);
  options.patterns = &kWhole;
  const FusionPlan plan = make_plan(body, options);
  const bool same = plan.applied().size() == 1 && plan.applied()[0]->nodes.size() == body.nodes().size();
  return same ? std::move(body) : apply(body, plan);
}

namespace {

/// The byte offset of a view in its root's memory is known and a multiple of 16; roots themselves are aligned.
bool aligned(const Program& program, int buffer, const Dim& origin) {
  const auto bytes = static_cast<int64_t>(byte_size(program.buffers[static_cast<size_t>(buffer)].type.dtype));
  return origin.is_constant() && origin.value() * bytes % 16 == 0;
}

/// Kernels of a GPU that access 16 bytes at a time need operands that start at a multiple of 16.
void drop_unaligned_vectors(Program& program) {
  const std::vector<Dim> origins = origins_in_roots(program);
  for (Launch& launch : program.launches) {
    const bool all = std::all_of(launch.buffers.begin(), launch.buffers.end(), [&](int buffer) {
      return aligned(program, buffer, origins[static_cast<size_t>(buffer)]);
    });
    if (all) continue;
    if (launch.schedule.skeleton == "depthwise")
      launch.schedule = parse_schedule("rows block=256");  // all its accesses
    for (const char* knob :
         {"vector", "copy_a", "copy_b", "copy_q", "copy_k", "copy_v", "eights", "map_a", "map_b", "map_y"}) {
      if (launch.schedule.get(knob, 0) != 0) launch.schedule.set(knob, knob == std::string_view("vector"));
    }
  }
}

/// One note for each limit that kernels met, with the first of them by name.
void note_limits(Program& program, const Generator& generator, const TargetInfo& target) {
  std::map<std::string, std::vector<std::string>> met;
  for (const Launch& launch : program.launches) {
    if (launch.reference) continue;
    std::string limit = generator.limit_of(kernel_spec(program, launch), target);
    const std::string& skeleton = launch.schedule.skeleton;
    if (limit.empty() && target.traits.on_host && skeleton != "contraction" && skeleton != "window" &&
        skeleton != kWinogradName && sums_codes(launch.region))
      limit = "codes are summed one by one: its operands do not lie as register tiles need them";
    if (!limit.empty()) met[limit].push_back(launch.name);
  }
  for (const auto& [limit, names] : met)
    program.notes.push_back(fmt::format("{}{}: {}", names[0],
                                        names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", limit));
}

}  // namespace

void note_inputs(Artifact& artifact, const Graph& graph, const std::vector<DimConstraint>& constraints) {
  for (ArtifactTensor& input : artifact.inputs)
    if (const Value* value = graph.find_value(input.name)) input.indexes = indexed_rows(*value, {}).value_or(0);
  artifact.fixed_inputs = fixed_inputs(graph);
  artifact.constraints = constraints;
  add_constraints(artifact.constraints, dim_constraints(graph));
  const std::set<std::string> known = known_symbols(artifact, artifact);
  std::erase_if(artifact.constraints, [&](const DimConstraint& c) {  // of sizes that no output needs
    return !std::ranges::includes(known, symbols_of(c.relation));
  });
}

namespace {

void refuse_algorithms(const AlgorithmRequest& r, const TargetInfo& target) {
  if (r.only.empty() && r.skip.empty() && !r.measure && !r.workspace && !r.max_weight_growth && !r.least_memory) return;
  throw fail(E::bad_option, "algorithms are chosen on cpu targets, not on {}", target.name)
      .hint("leave out --algorithm, --no-algorithm, --measure, --workspace, --max-weight-growth and --memory");
}

}  // namespace

namespace {

/// `target` must outlive the options.
BuildOptions build_options(const TargetInfo& target, const LowerOptions& request) {
  const Generator& generator = generator_for(target);
  BuildOptions options;
  options.allow_reference = request.allow_reference;
  options.arena_comparisons = request.limits.arena_comparisons;
  options.outputs_in_blocks = request.outputs_in_blocks;
  options.stretches = request.stretches || target.traits.stretches_itself;
  options.loops = target.traits.loops;
  options.routines = target.traits.on_host;
  options.divide = [&target](const Node& node) { return divided(node, target); };
  options.cannot_generate = [&generator, &target](const Region& region) {
    return generator.cannot_generate(region, target);
  };
  options.wish_layouts = [&generator, &target](const Region& region) { return generator.wish_layouts(region, target); };
  options.choose_schedule = [&generator, &target](const Region& region, const std::vector<Layout>& layouts,
                                                  const std::vector<std::vector<Dim>>& strides) {
    std::vector<ParamLayout> params;
    for (size_t i = 0; i < layouts.size(); ++i) params.push_back({layouts[i], strides[i]});
    return generator.choose_schedule(region, params, target);
  };
  if (has_intrinsics(target)) {
    options.wish_of_pattern = [&target](const std::string& pattern, const Region& region) {
      const auto composite = intrinsic_of(target, pattern);
      return composite ? std::optional(wish_intrinsic(region, intrinsic_at(target, *composite))) : std::nullopt;
    };
    options.schedule_of_pattern = [&target](const std::string& pattern, const Region& region) {
      const auto composite = intrinsic_of(target, pattern);
      return composite ? std::optional(schedule_intrinsic(region, *composite, target)) : std::nullopt;
    };
  }
  return options;
}

}  // namespace

std::vector<Obstacle> obstacles_on(const Graph& fused, const TargetInfo& target, const LowerOptions& options) {
  Graph lowered = fused.clone();
  fold_dequantized(lowered);
  expand_recurrent(lowered);
  return find_obstacles(lowered, build_options(target, options));
}

namespace {

/// What cannot be compiled may only lack the value of an input.
bool may_lack_a_value(const Diagnostic& d) {
  return d.code.starts_with("E03") || d.name == "unknown_dimension" || d.name == "uncompilable";
}

/// Algorithms by prediction, or by times: known ones, and new ones that are kept where the known ones are.
void choose_measured(Program& program, const TargetInfo& target, const LowerOptions& request) {
  const std::string generator = generator_for(target).fingerprint();
  TimingCache fresh;
  LaunchTimes times;
  times.measure = [&](const std::vector<Program>& programs, int threads) {
    return sample_launches(programs, target, threads);
  };
  if (request.times) {
    times.known = [&](const Launch& launch, const std::string& algorithm) -> std::optional<double> {
      const Timing* t = request.times->cache.find(launch_key(program, launch, request.times->machine),
                                                  "algorithm " + algorithm, generator);
      return t ? std::optional(1e3 * t->median) : std::nullopt;
    };
    times.learn = [&](const Launch& launch, const std::string& algorithm, const std::vector<double>& nanoseconds) {
      fresh.add(launch_key(program, launch, request.times->machine),
                timing_of("algorithm " + algorithm, nanoseconds, generator));
    };
  }
  choose_algorithms(program, target, request.algorithms, times);
  pair_codes(program, target, request.algorithms);
  if (fresh.size() > 0) fresh.write(request.times->file);
}

Program lower(const Graph& graph, const TargetInfo& target, const LowerOptions& request) {
  if (!target.traits.chooses_algorithms) refuse_algorithms(request.algorithms, target);
  Graph lowered = graph.clone();
  BuildOptions options = build_options(target, request);
  options.quantised = fold_dequantized(lowered);
  const AlgorithmRequest& algorithms = request.algorithms;
  if (target.traits.chooses_algorithms && !algorithms.exact && algorithms.only.empty() && algorithms.skip.empty())
    options.copy_of_input_pays = [&](const Region& region, size_t data, const std::vector<Layout>& layouts) {
      const int threads = algorithms.threads > 0 ? algorithms.threads : available_threads();
      return copy_of_input_pays(region, data, layouts, target, threads);
    };
  expand_recurrent(lowered);
  Program program = build_program(lowered, target, options);
  if (request.algorithms.exact) forbid_activation_tables(program);
  if (!target.traits.chooses_algorithms)
    drop_unaligned_vectors(program);
  else
    choose_measured(program, target, request);
  if (request.times) take_measured_schedules(program, target, *request.times);
  if (request.algorithms.exact) forbid_digits(program);
  if (request.image_loop && target.traits.loops)
    loop_over_images(program, image_caches(target), request.limits.arena_comparisons);
  note_activation_tables(program, target);
  note_digits(program);
  note_limits(program, generator_for(target), target);
  return program;
}

}  // namespace

Program lower_to_program(const Graph& graph, const TargetInfo& target, const LowerOptions& request) {
  if (!has_generator(target))
    throw fail(E::uncompilable, "opfuse generates no code for {}: it is a target for plans", target.name)
        .hint("opfuse fuse, explain and targets advise take it; fuse -o writes the model it fuses");
  try {
    return lower(graph, target, request);
  } catch (const Error& error) {
    const std::string hint = shape_input_hint(graph);
    if (hint.empty() || !may_lack_a_value(error.diagnostic())) throw;
    Diagnostic better = error.diagnostic();
    better.hint = hint;
    throw Error(std::move(better));
  }
}

}  // namespace opfuse
