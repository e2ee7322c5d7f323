// The public API over the pipeline.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.hpp"
#include "driver/pipeline.hpp"
#include "driver/variants.hpp"
#include "fusion/compounds.hpp"
#include "fusion/explain.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {

// ---- Model ------------------------------------------------------------------------------------------------------

Model::Model() : graph_(std::make_unique<Graph>()) {}
Model::Model(const Model& other) : graph_(std::make_unique<Graph>(other.graph_->clone())) {}
Model& Model::operator=(const Model& other) {
  if (this != &other) graph_ = std::make_unique<Graph>(other.graph_->clone());
  return *this;
}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::from_graph(Graph graph) {
  Model model;
  *model.graph_ = std::move(graph);
  return model;
}
Model Model::load(const std::string& path) { return from_graph(read_onnx(path)); }
Model Model::zoo(const std::string& name) { return from_graph(build_zoo(name)); }
void Model::save(const std::string& path, bool flatten) const { write_onnx(*graph_, path, {.functions = !flatten}); }
std::string Model::text() const { return print(*graph_); }
const Graph& Model::graph() const { return *graph_; }
Graph& Model::graph() { return *graph_; }

namespace {
std::vector<TensorInfo> infos_of(const std::vector<Value*>& values) {
  std::vector<TensorInfo> infos;
  for (const Value* value : values) {
    TensorInfo info{value->name, value->type.dtype, {}};
    for (const Dim& dim : value->type.shape.dims) info.shape.push_back(dim.text());
    infos.push_back(std::move(info));
  }
  return infos;
}
}  // namespace

std::vector<TensorInfo> Model::inputs() const { return infos_of(graph_->inputs()); }
std::vector<TensorInfo> Model::outputs() const { return infos_of(graph_->outputs()); }

std::map<std::string, int> Model::modules() const {
  const std::vector<std::string>& rules = rule_names();
  std::map<std::string, int> counts;
  for (const Node* node : graph_->nodes())
    if (node->op == fused_op() && std::find(rules.begin(), rules.end(), node->pattern) == rules.end())
      ++counts[node->label.substr(0, node->label.find("__"))];
  return counts;
}

// ---- Target -----------------------------------------------------------------------------------------------------

Target Target::host() { return named("host"); }
Target Target::named(const std::string& name) {
  Target target;
  target.info_ = std::make_shared<const TargetInfo>(parse_target(name));
  return target;
}
const std::string& Target::name() const { return info_->name; }

// ---- Plan -------------------------------------------------------------------------------------------------------

struct PlanAccess {
  static Plan make(FusionPlan value) {
    Plan plan;
    for (const Candidate& c : value.candidates) {
      const std::string anchor = c.id.substr(c.id.find('@') + 1);
      const std::string reason = c.apply ? "" : c.decline ? c.decline->code + ": " + c.decline->message : "disabled";
      plan.entries_.push_back(
          {c.id, c.pattern, c.module, anchor, c.nodes, c.apply, reason, static_cast<double>(c.bytes_saved)});
    }
    plan.value_ = std::make_shared<FusionPlan>(std::move(value));
    return plan;
  }
  /// The plan's value with the entries' `apply` flags.
  static FusionPlan edited(const Plan& plan) {
    FusionPlan value = *plan.value_;
    for (const PlanEntry& entry : plan.entries_) value.at(entry.id).apply = entry.apply;
    return value;
  }
};

std::vector<PlanEntry> Plan::missed() const {
  std::vector<PlanEntry> missed;
  for (const Candidate* c : value_->missed())
    for (const PlanEntry& entry : entries_)
      if (entry.id == c->id) missed.push_back(entry);
  return missed;
}

PlanEntry& Plan::at(const std::string& id) {
  value_->at(id);  // throws unknown_name with a suggestion
  return *std::find_if(entries_.begin(), entries_.end(), [&](const PlanEntry& entry) { return entry.id == id; });
}

std::map<std::string, int> Plan::modules() const { return PlanAccess::edited(*this).module_counts(); }
std::string Plan::json() const { return to_json(PlanAccess::edited(*this)); }

namespace {
Graph prepared_copy(const Model& model, std::vector<std::string>* notes) {
  Graph graph = model.graph().clone();
  prepare(graph, {}, notes);
  return graph;
}
}  // namespace

namespace {
void check_made_for(const FusionPlan& plan, const Graph& prepared) {
  const std::string hash = model_hash(prepared);
  if (plan.model != hash)
    throw fail(E::stale_plan, "the plan was made for another model ({}, this one is {})", plan.model, hash)
        .hint("make a new plan: opfuse fuse MODEL --plan-out plan.json");
}
}  // namespace

Plan Plan::from_json(const std::string& text, const Model& model) {
  FusionPlan value = plan_from_json(text);
  check_made_for(value, prepared_copy(model, nullptr));
  return PlanAccess::make(std::move(value));
}

Plan plan(const Model& model, const Target& target, const PlanRequest& request) {
  const Graph graph = prepared_copy(model, nullptr);
  return PlanAccess::make(plan_graph(graph, target.info(), request));
}

Fused apply(const Model& model, const Plan& plan) {
  std::vector<std::string> notes;
  Graph graph = prepared_copy(model, &notes);
  const FusionPlan edited = PlanAccess::edited(plan);
  return {Model::from_graph(apply(graph, edited, false, legality_on(parse_target(edited.target)))), std::move(notes)};
}

std::vector<Remark> explain(const Model& model, const Plan& plan, const ExplainRequest& request) {
  const Graph graph = prepared_copy(model, nullptr);
  const FusionPlan edited = PlanAccess::edited(plan);
  check_made_for(edited, graph);
  const std::vector<FusionPattern> patterns =
      patterns_of({.patterns = request.patterns, .pattern_files = request.pattern_files});
  if (!request.node.empty()) return about_node(graph, edited, request.node, patterns);
  std::vector<Remark> remarks;
  if (request.passed) remarks = passed(edited);
  if (request.passed && request.missed)
    for (Remark& remark : compounds_on(graph, edited, parse_target(edited.target)))
      remarks.push_back(std::move(remark));
  if (request.missed)
    for (Remark& remark : missed(graph, edited, patterns)) remarks.push_back(std::move(remark));
  return remarks;
}

std::vector<std::string> pattern_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const FusionPattern& pattern : patterns_of({.pattern_files = files})) names.push_back(pattern.name);
  return names;
}

// ---- compile ----------------------------------------------------------------------------------------------------

namespace {
bool has_fused_nodes(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node* node) { return node->op == fused_op(); });
}
}  // namespace

Executable compile(const Model& model, const Target& target, const CompileOptions& options) {
  Graph graph = model.graph().clone();
  if (!options.dims.empty()) graph.bind_dimensions(options.dims);
  std::vector<std::string> notes;
  ArtifactOptions artifact_options{.threads = options.threads,
                                   .cache = options.cache,
                                   .emit_dir = options.emit_dir,
                                   .emit_llvm = options.emit_llvm,
                                   .emit_assembly = options.emit_assembly,
                                   .emit_cuda = options.emit_cuda,
                                   .progress = options.progress};
  if (!has_fused_nodes(graph)) {
    if (options.progress) options.progress("prepare", 0, 0);
    prepare(graph, {}, &notes);
    if (options.fused) {
      if (options.progress) options.progress("plan", 0, 0);
      const FusionPlan plan = plan_graph(graph, target.info(), {});
      artifact_options.plan_json = to_json(plan);
      graph = apply(graph, plan);
    }
  }
  const LowerOptions lowering = {
      options.allow_reference,
      {options.exact, {}, {}, options.max_weight_growth, options.workspace, options.run_threads},
      options.chains && has_fused_nodes(graph)};
  const bool groups = has_fused_nodes(graph);
  if (options.progress) options.progress("lower", 0, 0);
  const std::vector<Variant> variants =
      make_variants(graph, target.info(), {options.specialize, groups, options.chains, lowering});
  if (groups) shape_for_target(graph, target.info(), &notes, options.chains);
  Program program = lower_to_program(graph, target.info(), lowering);
  if (options.allow_reference) artifact_options.reference_graph = std::make_shared<Graph>(graph.clone());
  program.notes.insert(program.notes.begin(), notes.begin(), notes.end());
  Artifact artifact = build_artifact(program, variants, target.info(), artifact_options);
  note_indexed_tables(artifact, graph);
  artifact.model_name = graph.name;
  artifact.producer = "opfuse " + version();
  return Executable::from_artifact(std::move(artifact));
}

std::string version() { return OPFUSE_VERSION; }

}  // namespace opfuse
