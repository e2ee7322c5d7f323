// read -> prepared -> planned -> fused -> shaped -> lowered -> built. Each stage is a few calls of driver/pipeline.hpp;
// what decides between them (a model that came fused, no fusion at all, a plan that was given) is decided here alone.
#include "driver/compilation.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "cpu/intrinsic/intrinsic.hpp"
#include "driver/both_branches.hpp"
#include "driver/ledger_questions.hpp"
#include "driver/measure_groups.hpp"
#include "driver/model_hints.hpp"
#include "driver/placement.hpp"
#include "driver/settle_ledger.hpp"
#include "fusion/precision.hpp"
#include "fusion/reasons.hpp"
#include "ir/body.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/dim_constraints.hpp"
#include "ir/for_parts.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "link/placed_launch.hpp"
#include "opfuse/opfuse.hpp"
#include "program/routine_launches.hpp"

namespace opfuse {
namespace {

bool is_group(const Node* node) { return node->op == fused_op(); }

bool has_groups(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    return is_group(node) || (node->body && !stands_for_body(*node) && has_groups(*node->body));
  });
}

}  // namespace

Compilation::Compilation(const Graph& model, TargetInfo to, CompilationOptions with)
    : target(std::move(to)), options(std::move(with)), prepared(model.clone()), has_groups_(has_groups(model)) {
  check_shaping_names(options.no_pass);
  const int threads = options.algorithms.threads;
  target.launch.threads = threads > 0 ? threads : available_threads();
  target.launch.workspace = options.algorithms.workspace;
  if (const int64_t nodes = unrolled_nodes(prepared); nodes > options.limits.unrolled_nodes)
    throw fail(E::unsupported_op, "the parts of for_parts may become {} nodes, at most {} are unrolled", nodes,
               options.limits.unrolled_nodes)
        .hint(how_to_raise("unrolled_nodes"));
  name_bodies_apart(prepared);
}

void Compilation::run_to(Milestone last) {
  const LimitScope scope(options.limits);
  struct Step {
    Milestone stage;
    const char* progress;  ///< empty: over in no time, or reports for itself
    void (Compilation::*run)();
  };
  static constexpr Step kSteps[] = {{Milestone::prepared, "prepare", &Compilation::prepare_model},
                                    {Milestone::planned, "plan", &Compilation::make_plan},
                                    {Milestone::fused, "", &Compilation::apply_plan},
                                    {Milestone::shaped, "", &Compilation::shape},
                                    {Milestone::lowered, "lower", &Compilation::lower},
                                    {Milestone::built, "", &Compilation::build}};
  for (const Step& step : kSteps) {
    if (step.stage <= reached || step.stage > last) continue;
    if (*step.progress && options.artifact.progress) options.artifact.progress(step.progress, 0, 0);
    (this->*step.run)();
    reached = step.stage;
  }
}

/// A plan fits the model with the sizes it was made with; all others are bound once it is applied.
static SymbolValues sizes_of_plan(const FusionPlan& plan, const SymbolValues& given) {
  for (const auto& [name, size] : plan.dims)
    if (const auto at = given.find(name); at != given.end() && at->second != size)
      throw fail(E::stale_plan, "the plan was made for {} = {}, not for {}", name, size, at->second)
          .hint("make a plan for this size, or one that leaves the dimension open");
  return plan.dims;
}

void Compilation::prepare_model() {
  if (has_groups_) {
    bind_fused(prepared, options.dims);
    constraints = dim_constraints(prepared);
    return;
  }
  const bool planned_before = options.given_plan && options.fused && !options.allow_stale;
  const SymbolValues first = planned_before ? sizes_of_plan(*options.given_plan, options.dims) : options.dims;
  for (const auto& [name, size] : options.dims)
    if (!first.contains(name)) later_[name] = size;
  bind_sizes(prepared, first, &conversions, options.limits);
  constraints = dim_constraints(prepared);
  for (std::string& note : notes_on_branches(prepared, constraints)) conversions.push_back(std::move(note));
  dumps_ = prepare(prepared, {{}, options.dump_dir, options.fused}, &conversions).next_dump;
  if (options.fused) take_model_hints(prepared, options.plan, conversions);
}

/// The hash of the model that a plan is for; one that came fused has its own nodes again.
static std::string source_hash(const Graph& prepared) {
  if (!has_groups(prepared)) return model_hash(prepared);
  Graph flat = prepared.clone();
  const std::vector<Node*> nodes = flat.nodes();
  for (Node* node : nodes) {
    if (!is_group(node)) continue;
    const std::vector<Value*> results = inline_body(flat, *node->body, node->inputs, node);
    for (size_t i = 0; i < results.size(); ++i) flat.replace_uses(node->outputs[i], results[i]);
    flat.erase(node);
  }
  return model_hash(flat);
}

/// Nothing is silent: where a limit of planning decided edges, a note says so.
static std::vector<std::string> planning_limit_notes(const Graph& prepared, const FusionPlan& plan,
                                                     const CompilationOptions& options) {
  const Limits& limits = options.limits;
  const struct {
    std::string_view code;  ///< of the edges
    std::string what, setter;
  } kLimits[] = {
      {"too_large", fmt::format("groups of rules end with {} nodes", options.plan.max_group_nodes),
       "--max-group-nodes sets it"},
      {"grown_nodes", fmt::format("rules grow groups of up to {} nodes node by node", limits.grown_nodes),
       how_to_raise("grown_nodes")},
      {"group_operands", fmt::format("groups have at most {} operands", limits.group_operands),
       how_to_raise("group_operands")},
      {"many_operands", fmt::format("nodes of more than {} operands are not priced", limits.priced_operands),
       how_to_raise("priced_operands")},
      {"many_readers", fmt::format("values of more than {} readers are not priced with each", limits.priced_operands),
       how_to_raise("priced_operands")},
      {"prices_spent", fmt::format("planning prices {} operands by node", limits.priced_per_node),
       how_to_raise("priced_per_node")}};
  std::vector<std::string> notes;
  for (const auto& [code, what, setter] : kLimits) {
    const auto bound = std::count_if(plan.edges.begin(), plan.edges.end(),
                                     [&](const EdgeVerdict& edge) { return edge.decline.code == code; });
    if (bound > 0)
      notes.push_back(
          fmt::format("{}: so on {} edge{}, {} in explain; {}", what, bound, bound == 1 ? "" : "s", code, setter));
  }
  if (const size_t far = plan.too_far.nodes.size(); far > 0)
    notes.push_back(
        fmt::format("groups with more than {} reshapes and the like between them are not tried with each "
                    "other: so at {} node{}; {}",
                    limits.between_nodes, far, far == 1 ? "" : "s", how_to_raise("between_nodes")));
  const std::vector<Value*> values = prepared.values();
  const auto read_often = std::count_if(values.begin(), values.end(), [&](const Value* v) {
    return !v->is_constant() && static_cast<int64_t>(v->uses.size()) > limits.sibling_readers;
  });
  if (read_often > 0 && options.plan.rules)
    notes.push_back(fmt::format("{} value{} more than {} readers, which are tried with each other in batches; {}",
                                read_often, read_often == 1 ? " has" : "s have", limits.sibling_readers,
                                how_to_raise("sibling_readers")));
  return notes;
}

void Compilation::open_devices() {
  if (options.accelerators.empty()) return;
  if (has_groups_ || !options.fused)
    throw fail(E::bad_option, "accelerators run groups of a plan that is made for them")
        .hint("leave out --unfused, and give the model as it was before fusion");
  if (!options.specialize.empty())
    throw fail(E::bad_option, "variants for given sizes run on the cpu target alone").hint("leave out --specialize");
  placed = open_accelerators({options.accelerators, options.place, options.fallback});
  conversions.insert(conversions.end(), placed->notes.begin(), placed->notes.end());
  if (placed->none()) placed.reset();
}

void Compilation::make_plan() {
  open_devices();
  plan.model = source_hash(prepared);
  plan.target = target.name;
  if (has_groups_ || !options.fused) return set_precisions(plan, prepared, options.plan.precision);
  const PlaceRequest where{options.accelerators, options.place, options.fallback};
  plan = options.given_plan ? *options.given_plan
         : placed           ? plan_placed(prepared, target, options.plan, where, *placed, options.limits)
                            : plan_graph(prepared, target, options.plan, options.limits);
  if (options.given_plan && placed) note_placements(prepared, plan, target, where, *placed);
  if (options.given_plan) return set_precisions(plan, prepared, options.plan.precision);
  plan.dims = options.dims;
  for (std::string& note : planning_limit_notes(prepared, plan, options)) conversions.push_back(std::move(note));
  if (options.algorithms.measure && target.traits.on_host) measure_plan();
}

/// Groups that were measured slower are apart, and their edges say so.
void Compilation::measure_plan() {
  const ShapeOptions shaping{.no_pass = options.no_pass,
                             .precisions = precision_of_nodes(plan),
                             .no_fuse = options.plan.no_fuse,
                             .least_memory = options.algorithms.least_memory};
  const LowerOptions lowering{options.allow_reference, options.algorithms, options.limits, false};
  conversions.push_back(measure_groups(prepared, plan, {target, shaping, lowering, later_, options.timings}));
  refill_ledger(prepared, plan, plan_options(target, options.plan, options.limits));
  for (EdgeVerdict& edge : plan.edges)
    for (const Candidate& c : plan.candidates) {
      const auto has = [&](const std::string& node) {
        return std::find(c.nodes.begin(), c.nodes.end(), node) != c.nodes.end();
      };
      if (c.apply || !c.decline || c.decline->code != "measured_slower" || !has(edge.producer) || !has(edge.consumer))
        continue;
      edge.decline = *c.decline;
      edge.decline.message = fmt::format("\"{}\" with \"{}\": {}", edge.producer, edge.consumer, c.decline->message);
    }
}

/// Modules that run as several launches are applied all the same: those of them that a setting divides.
static std::map<std::string, Decline> refused_by_settings(const Graph& fused, const FusionPlan& plan,
                                                          const TargetInfo& target) {
  std::map<std::string, Decline> refused;
  if (!target.launch.workspace || !has_generator(target)) return refused;
  std::map<std::string, std::string> id_of;  // by label
  for (const Candidate* c : plan.applied()) id_of.emplace(c->label, c->id);
  for (const Node* node : fused.nodes()) {
    const auto at = is_group(node) ? id_of.find(node->label) : id_of.end();
    if (at == id_of.end()) continue;
    if (const auto why = illegal_on(*node, target); why && is_of_setting(why->code)) refused[at->second] = *why;
  }
  return refused;
}

void Compilation::apply_plan() {
  if (has_groups_ || !options.fused) {
    fused = prepared.clone();
    return;
  }
  Legality legal = options.given_plan ? legality_on(target) : Legality();  // the planner asked it already
  if (legal && placed) legal = legality_with(*placed, legal);
  fused = apply(prepared, plan, options.allow_stale, legal);
  if (options.given_plan)
    refill_ledger(prepared, plan, plan_options(target, {}, options.limits));  // of what was edited too
  bind_fused(fused, later_);
  refused_ = refused_by_settings(fused, plan, target);
}

/// A folder of its own: variants are graphs beside the model's.
static std::string dumps_of_variant(const std::string& dumps, size_t index) {
  return dumps.empty() ? "" : fmt::format("{}/variant-{:02}", dumps, index);
}

/// Groups whose tile the target's file brings along are what their composite says: no pass joins or divides them.
class TilesApart {
 public:
  TilesApart(Graph& graph, const TargetInfo& target) {
    if (!has_intrinsics(target)) return;
    for (Node* node : graph.nodes())
      if (is_group(node) && intrinsic_of(target, node->pattern)) node->op = placed_op(), nodes_.push_back(node);
  }
  ~TilesApart() {
    for (Node* node : nodes_) node->op = fused_op();
  }
  TilesApart(const TilesApart&) = delete;
  TilesApart& operator=(const TilesApart&) = delete;

 private:
  std::vector<Node*> nodes_;
};

/// Variants have the groups of the plan, and what shaping makes of them at their sizes.
void Compilation::shape() {
  if (placed) insert_pieces(fused, *placed);
  variants = make_variants(fused, target, options.specialize);
  ShapeOptions how{.no_pass = options.no_pass,
                   .only_types = !options.fused || !has_groups(fused),
                   .precisions = precision_of_nodes(plan),
                   .no_fuse = options.plan.no_fuse,
                   .least_memory = options.algorithms.least_memory};
  for (size_t i = 0; i < variants.size(); ++i) {
    const TilesApart apart(*variants[i].graph, target);
    if (!how.only_types) how.dump_dir = dumps_of_variant(options.dump_dir, i);
    shape_for_target(*variants[i].graph, target, how);
  }
  if (!how.only_types) how.dump_dir = options.dump_dir;
  how.first_dump = dumps_;
  const TilesApart apart(fused, target);
  Shaping shaping = shape_for_target(fused, target, how);
  verdicts = std::move(shaping.verdicts);
  shapings = std::move(shaping.notes);
}

/// With --measure on a host; elsewhere nothing was timed.
std::optional<KnownTimes> Compilation::known_times() const {
  if (!options.algorithms.measure || !target.traits.on_host) return std::nullopt;
  return read_times(options.timings, target, options.algorithms.threads);
}

/// A size that the run finds may be 1 and stretch: no variant is taken for it, so the program itself does.
static bool stretches_found_sizes(const Graph& graph) {
  const std::set<std::string> found = defined_symbols(graph);
  if (found.empty()) return false;
  for (const DimConstraint& c : dim_constraints(graph)) {
    const bool by_data = std::ranges::any_of(symbols_of(c.relation), [&](const auto& s) { return found.contains(s); });
    if (by_data && any_stretches({c})) return true;
  }
  return false;
}

void Compilation::lower() {
  const auto& off = options.no_pass;
  const bool loop =
      options.fused && has_groups(fused) && std::find(off.begin(), off.end(), "loop-over-images") == off.end();
  const std::optional<KnownTimes> times = known_times();
  const LowerOptions request{options.allow_reference, options.algorithms, options.limits, loop,
                             times ? &*times : nullptr};
  const bool stretches = stretches_found_sizes(fused);
  for (Variant& variant : variants) {
    LowerOptions with = request;
    with.stretches = variant.stretches || stretches;
    variant.program = lower_to_program(*variant.graph, target, with);
  }
  LowerOptions own = request;
  own.stretches = stretches;
  own.outputs_in_blocks = options.outputs_in_blocks;
  program = lower_to_program(fused, target, own);
  if (plan.edges.empty()) return;
  LaunchPrices prices = launch_prices(target);
  prices.refused = refused_;
  settle_ledger(prepared, plan, fused, verdicts, program, prices);
}

void Compilation::build() {
  ArtifactOptions with = options.artifact;
  with.model_hash = plan.model;
  if (!plan.candidates.empty()) with.plan_json = to_json(plan);
  with.kernel_times = &kernel_times;
  const auto in_interpreter = [](const Launch& launch) { return launch.reference && !is_routine(launch); };
  if (std::any_of(program.launches.begin(), program.launches.end(), in_interpreter))
    with.reference_graph = std::make_shared<const Graph>(fused.clone());
  PlacedDevices devices;
  if (placed) devices = build_devices(fused, *placed, options);
  if (placed)
    with.placed_launch = [&](const Program& of, const Launch& launch) {
      for (const Node* node : fused.nodes())
        if (node->op == placed_op() && node->label == launch.name)
          return placed_launch(of, launch, *node, devices.number_of(placed_device(*node)), devices.pieces[launch.name]);
      OPFUSE_CHECK(false, "no piece is called {}", launch.name);
    };
  artifact = build_artifact(program, variants, target, with);
  artifact.devices = std::move(devices.devices);
  note_inputs(artifact, fused, constraints);
  artifact.model_name = prepared.name;
  artifact.producer = "opfuse " + version();
}

std::vector<std::string> Compilation::notes() const {
  std::vector<std::string> all = conversions;
  all.insert(all.end(), shapings.begin(), shapings.end());
  return all;
}

Compilation compile_graph(const Graph& model, const TargetInfo& target, const CompilationOptions& options) {
  Compilation compilation(model, target, options);
  compilation.run_to(Milestone::built);
  return compilation;
}

}  // namespace opfuse
