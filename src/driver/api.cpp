// The public API over the pipeline.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/fail.hpp"
#include "driver/compilation_options.hpp"
#include "driver/remarks.hpp"
#include "fusion/explain/plan_diff.hpp"
#include "fusion/precision.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {

// ---- Model ------------------------------------------------------------------------------------------------------

Model::Model() : graph_(std::make_unique<Graph>()) {}
Model::Model(const Model& other) : graph_(std::make_unique<Graph>(other.graph().clone())) {}
Model& Model::operator=(const Model& other) {
  if (this != &other) graph_ = std::make_unique<Graph>(other.graph().clone());
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

Model Model::load(const std::string& path, const LoadOptions& options) {
  return from_graph(read_onnx(path, {.fixed_inputs = copies_of(options.fixed_inputs),
                                     .limits = limits_with(options.limits),
                                     .operators = options.operators}));
}
Model Model::zoo(const std::string& name) { return from_graph(build_zoo(name)); }

void Model::save(const std::string& path, bool flatten) const {
  const std::string& read = graph().model_file;
  std::error_code none;  // links and other spellings of a path are the same file
  if (!read.empty() && std::filesystem::equivalent(path, read, none))
    throw fail(E::bad_option, "{} would replace '{}', which the model was read from", path, read)
        .hint("name another file to write");
  write_onnx(graph(), path, {.functions = !flatten});
}

std::string Model::text() const { return print(graph()); }
const Graph& Model::graph() const {
  if (!graph_) throw fail(E::bad_option, "this model was moved from").hint("use the one that it was moved to");
  return *graph_;
}
Graph& Model::graph() { return const_cast<Graph&>(std::as_const(*this).graph()); }

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

std::vector<TensorInfo> Model::inputs() const { return infos_of(graph().inputs()); }
std::vector<TensorInfo> Model::outputs() const { return infos_of(graph().outputs()); }

std::map<std::string, int> Model::modules() const {
  const std::vector<std::string>& rules = rule_names();
  std::map<std::string, int> counts;
  for (const Node* node : graph().nodes())
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
      plan.entries_.push_back({c.id, c.pattern, c.module, anchor, c.nodes, c.apply, c.precision, reason,
                               static_cast<double>(c.bytes_saved)});
    }
    plan.value_ = std::make_shared<FusionPlan>(std::move(value));
    return plan;
  }
  /// The plan's value with the entries' `apply` and `precision`.
  static FusionPlan edited(const Plan& plan) {
    FusionPlan value = *plan.value_;
    for (const PlanEntry& entry : plan.entries_) {
      check_precision(entry.precision);
      Candidate& candidate = value.at(entry.id);
      candidate.apply = entry.apply;
      candidate.precision = entry.precision;
    }
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
Compilation compiled_to(Milestone last, const Model& model, const TargetInfo& target, CompilationOptions options = {}) {
  Compilation compilation(model.graph(), target, std::move(options));
  compilation.run_to(last);
  return compilation;
}

/// A plan as an option: it is applied instead of a new one.
CompilationOptions with_plan(const Plan& plan) {
  CompilationOptions options;
  options.given_plan = std::make_shared<const FusionPlan>(PlanAccess::edited(plan));
  return options;
}
}  // namespace

Plan Plan::from_json(const std::string& text, const Model& model) {
  FusionPlan value = plan_from_json(text);
  CompilationOptions options;
  options.dims = value.dims;
  const std::string hash =
      model_hash(compiled_to(Milestone::prepared, model, Target::host().info(), std::move(options)).prepared);
  if (value.model != hash)
    throw fail(E::stale_plan, "the plan was made for another model ({}, this one is {})", value.model, hash)
        .hint("make a new plan: opfuse fuse MODEL --plan-out plan.json");
  return PlanAccess::make(std::move(value));
}

Plan plan(const Model& model, const Target& target, const PlanRequest& request) {
  CompilationOptions options;
  options.plan = request;
  options.dims = request.dims;
  options.limits = limits_with(request.limits);
  return PlanAccess::make(compiled_to(Milestone::planned, model, target.info(), std::move(options)).plan);
}

Fused apply(const Model& model, const Plan& plan) {
  Compilation compilation = compiled_to(Milestone::fused, model, parse_target(plan.value().target), with_plan(plan));
  return {Model::from_graph(std::move(compilation.fused)), std::move(compilation.conversions)};
}

std::vector<Remark> explain(const Model& model, const Plan& plan, const ExplainRequest& request) {
  const bool whole = request.node.empty();
  const Compilation compilation = compiled_to(whole ? Milestone::shaped : Milestone::fused, model,
                                              parse_target(plan.value().target), with_plan(plan));
  return remarks_on(compilation, request);
}

PlanDiff diff(const Plan& first, const Plan& second) {
  return diff_plans(PlanAccess::edited(first), PlanAccess::edited(second));
}

std::vector<std::string> pattern_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const FusionPattern& pattern : patterns_of({.pattern_files = files})) names.push_back(pattern.name);
  return names;
}

// ---- compile ----------------------------------------------------------------------------------------------------

Executable compile(const Model& model, const Target& target, const CompileOptions& options) {
  const CompilationOptions with = compilation_options(options);
  Compilation compilation =
      options.fixed_inputs.empty()
          ? compile_graph(model.graph(), target.info(), with)
          : compile_graph(with_fixed(model.graph().clone(), options.fixed_inputs), target.info(), with);
  return Executable::from_artifact(std::move(compilation.artifact));
}

std::string version() { return OPFUSE_VERSION; }

}  // namespace opfuse
