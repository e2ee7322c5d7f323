// opfuse inspect: what a model contains; what an .opf will run.
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "facts.hpp"
#include "inputs.hpp"
#include "ir/located.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "runtime/prepared_constants.hpp"
#include "tensor/dim_flag.hpp"
#include "variant_flags.hpp"
#include "verb.hpp"
#include "words.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model;
  DimensionFlags dimensions;
  std::vector<std::string> show;
  bool json = false;
  bool shows(const std::string& what) const { return std::find(show.begin(), show.end(), what) != show.end(); }
};

Json json_of(const std::vector<Value*>& values) {
  Json rows = Json::array();
  for (const Value* value : values) {
    Json shape = Json::array();
    for (const Dim& dim : value->type.shape.dims)
      shape.push_back(dim.is_constant() ? Json(dim.value()) : Json(dim.text()));
    rows.push_back({{"name", value->name}, {"dtype", name_of(value->type.dtype)}, {"shape", std::move(shape)}});
  }
  return rows;
}

std::string listed_types(const std::vector<Value*>& values) {
  std::vector<std::string> words;
  for (const Value* value : values) words.push_back(fmt::format("{}", value ? value->type.text() : "-"));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<Value*> activations(const Node& node) {
  std::vector<Value*> values;
  for (Value* value : node.inputs)
    if (value && !value->is_constant()) values.push_back(value);
  return values;
}

const std::string& reason_of(const Node& opaque) { return static_cast<const OpaqueAttrs*>(opaque.attrs())->reason; }

std::vector<const Node*> opaque_nodes(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const Node* node : graph.nodes())
    if (node->op->kind == OpKind::opaque) nodes.push_back(node);
  return nodes;
}

void print_layers(const Graph& graph, const SymbolValues& dims) {
  Table table({">#", "operator", "node", "in -> out", ">flop", ">bytes", ">flop/byte"});
  int index = 0;
  for (const Node* node : graph.nodes()) {
    double bytes = 0;
    for (const Value* value : node->inputs)
      if (value) bytes += value_bytes(*value, dims);
    for (const Value* value : node->outputs) bytes += value_bytes(*value, dims);
    const double flops = node_flops(*node, dims);
    table.row({std::to_string(index++), source_operator(*node), node->name(),
               listed_types(activations(*node)) + " -> " + listed_types(node->outputs), human_flops(flops),
               human_bytes(bytes), bytes > 0 ? fmt::format("{:.1f}", flops / bytes) : "-"});
  }
  fmt::print("{}", table.text());
}

void print_weights(const Graph& graph) {
  Table table({"constant", "type", ">bytes", "read by"});
  for (const Value* value : graph.constants())
    table.row({value->name, value->type.text(), human_bytes(static_cast<double>(value->constant->bytes())),
               value->uses.empty() ? "-" : value->uses[0].node->name()});
  fmt::print("{}", table.text());
}

int inspect_graph(const GivenModel& model, const Flags& flags) {
  const SymbolValues dims = given_dimensions(*model.graph, flags.dimensions);
  std::optional<Graph> bound;
  if (!dims.empty()) bound.emplace(model.graph->clone()).bind_dimensions(dims);
  const Graph& graph = bound ? *bound : *model.graph;
  const std::vector<const Node*> opaque = opaque_nodes(graph);
  const std::set<std::string> open = graph.symbols();
  const std::vector<std::string> symbols(open.begin(), open.end());
  const double flops = graph_flops(graph, dims), weights = constant_bytes(graph);
  if (flags.json) {
    Json out = document("opfuse.inspect/1");
    out["model"] = model.name;
    out["inputs"] = json_of(graph.inputs());
    out["outputs"] = json_of(graph.outputs());
    out["dynamic_dims"] = symbols;
    out["nodes"] = graph.nodes().size();
    Json counts = Json::object();
    for (const auto& [name, count] : operator_counts(graph)) counts[name] = count;
    out["operators"] = std::move(counts);
    Json unknown = Json::array();
    for (const Node* node : opaque)
      unknown.push_back({{"node", node->name()}, {"operator", source_operator(*node)}, {"reason", reason_of(*node)}});
    out["opaque"] = std::move(unknown);
    out["weight_bytes"] = weights;
    out["flop"] = flops;
    out["activation_bytes"] = activation_bytes(graph, dims);
    Json layers = Json::array();
    for (const Node* node : graph.nodes())
      layers.push_back(
          {{"node", node->name()}, {"operator", source_operator(*node)}, {"flop", node_flops(*node, dims)}});
    if (flags.shows("layers")) out["layers"] = std::move(layers);
    out["hash"] = structural_hash(graph, false).hex();
    print_json(out);
    return kOk;
  }
  fmt::print("{}{}   {}   {} weights   structure {}\n", model.name,
             model.file_bytes ? "   " + human_bytes(static_cast<double>(model.file_bytes)) : "",
             counted(graph.nodes().size(), "node"), human_bytes(weights),
             structural_hash(graph, false).hex().substr(0, 8));
  for (const Value* value : graph.inputs()) fmt::print("  input   {} : {}\n", value->name, value->type.text());
  for (const Value* value : graph.outputs()) fmt::print("  output  {} : {}\n", value->name, value->type.text());
  std::vector<std::string> counts;
  for (const auto& [name, count] : operator_counts(graph)) counts.push_back(fmt::format("{} {}", count, name));
  fmt::print("  operators     {}\n", fmt::join(counts, ", "));
  fmt::print("  work          {}, {} of activations read and written node by node{}\n", human_flops(flops),
             human_bytes(activation_bytes(graph, dims)), symbols.empty() ? "" : " (open dimensions as 1)");
  if (symbols.empty())
    fmt::print("  dynamic dims  none\n");
  else
    fmt::print("  dynamic dims  {} (fix with {})\n", fmt::join(symbols, ", "), dim_flag(symbols[0]));
  for (const Node* node : opaque)
    fmt::print("  not understood  {} \"{}\": {}\n", source_operator(*node), node->name(), reason_of(*node));
  if (flags.shows("layers")) print_layers(graph, dims);
  if (flags.shows("weights")) print_weights(graph);
  if (flags.shows("text")) fmt::print("{}", print(graph));
  return kOk;
}

Json json_of(const ArtifactLaunch& launch) {
  Json device = nullptr;
  if (const DeviceLaunch& d = launch.device; d.block > 0)
    device = {{"blocks", d.grid.text()},
              {"threads", d.block},
              {"registers", d.registers},
              {"shared_bytes", d.shared_bytes},
              {"launch_shared_bytes", d.launch_shared.text()},
              {"spill_bytes", d.spill_bytes}};
  return {{"kernel", launch.name},
          {"device", std::move(device)},
          {"symbol", launch.symbol},
          {"pattern", launch.pattern},
          {"schedule", launch.schedule},
          {"parts", launch.parts.text()},
          {"flop", launch.flops.text()},
          {"bytes_read", launch.bytes_read.text()},
          {"bytes_written", launch.bytes_written.text()},
          {"nodes", launch.sources}};
}

Json json_of(const std::vector<ArtifactTensor>& tensors) {
  Json rows = Json::array();
  for (const ArtifactTensor& tensor : tensors) rows.push_back({{"name", tensor.name}, {"type", tensor.type.text()}});
  return rows;
}

Table launch_table(const ArtifactProgram& a, bool device) {
  Table table(device ? std::vector<std::string>{">#", "kernel", "schedule", ">blocks", ">threads", ">registers",
                                                ">shared", ">spilled", ">flop", "nodes"}
                     : std::vector<std::string>{">#", "kernel", "schedule", ">parts", ">flop", "nodes"});
  int index = 0;
  for (const ArtifactLaunch& launch : a.launches) {
    const DeviceLaunch& d = launch.device;
    const std::string number = std::to_string(index++), nodes = listed(launch.sources, 3);
    if (device)
      table.row({number, launch.name, launch.schedule, d.grid.text(), std::to_string(d.block),
                 std::to_string(d.registers), (Dim(d.shared_bytes) + d.launch_shared).text(),
                 std::to_string(d.spill_bytes), launch.flops.text(), nodes});
    else
      table.row({number, launch.name, launch.schedule, launch.parts.text(), launch.flops.text(), nodes});
  }
  return table;
}

/// "N = M or one of them 1 (node "sum": axis 0 of the operands broadcasts)"
std::vector<std::string> constraints_of(const Artifact& artifact) {
  std::vector<std::string> lines;
  for (const DimConstraint& c : artifact.constraints)
    lines.push_back(fmt::format("{} (node \"{}\": {})", text_of(c.relation), c.node, c.relation.what));
  return lines;
}

/// In units people read where the size is known, else the expression.
std::string bytes_text(const Dim& bytes) {
  const auto known = bytes.constant();
  return known ? human_bytes(static_cast<double>(*known)) : bytes.text() + " bytes";
}

std::set<std::string> kernels_of(const Artifact& a) {
  std::set<std::string> distinct;
  for (const ArtifactLaunch& launch : a.launches) distinct.insert(launch.symbol);
  return distinct;
}

/// `runs`: the program whose launches are shown.
Json artifact_json(const GivenModel& model, const Artifact& a, const ArtifactProgram& runs) {
  Json out = document("opfuse.inspect-opf/1");
  out.update({{"model", model.name},
              {"format", a.format},
              {"codegen", a.codegen},
              {"target", a.target},
              {"cpu_features", a.cpu_features},
              {"producer", a.producer},
              {"source_model", a.model_name},
              {"source_hash", a.model_hash},
              {"inputs", json_of(a.inputs)},
              {"outputs", json_of(a.outputs)},
              {"dynamic_dims", a.symbols},
              {"code_bytes", a.code.size()},
              {"code_hash", hash_bytes(a.code.data(), a.code.size()).hex()},
              {"constant_bytes", a.constants.size()},
              {"stored_constant_bytes", stored_constant_bytes(a)},
              {"constant_hash", hash_bytes(a.constants.data(), a.constants.size()).hex()},
              {"arena_bytes", a.arena_bytes.text()},
              {"intermediate_bytes", a.intermediate_bytes.text()},
              {"distinct_kernels", kernels_of(a).size()},
              {"variants", variants_json(a)},
              {"fixed_inputs", fixed_inputs_json(a)},
              {"constraints", constraints_of(a)},
              {"notes", a.notes}});
  Json launches = Json::array(), layouts = Json::object();
  for (const ArtifactLaunch& launch : runs.launches) launches.push_back(json_of(launch));
  for (const auto& [buffer, layout] : runs.layouts) layouts[buffer] = layout;
  out["launches"] = std::move(launches);
  out["layouts"] = std::move(layouts);
  if (!a.skipped.empty()) out["skipped_sections"] = a.skipped;
  return out;
}

void print_artifact(const GivenModel& model, const Artifact& a, const ArtifactProgram& runs, const Flags& flags) {
  fmt::print("{}\n", fitted(fmt::format(
                         "{}   {}   format {}   codegen {}   target {}{}", model.name,
                         human_bytes(static_cast<double>(model.file_bytes)), a.format, a.codegen, a.target,
                         a.cpu_features.empty() ? "" : fmt::format(" (needs {})", fmt::join(a.cpu_features, ", ")))));
  fmt::print("  from    {} {}   by {}\n", a.model_name, a.model_hash, a.producer);
  for (const ArtifactTensor& tensor : a.inputs) fmt::print("  input   {} : {}\n", tensor.name, tensor.type.text());
  for (const ArtifactTensor& tensor : a.outputs) fmt::print("  output  {} : {}\n", tensor.name, tensor.type.text());
  fmt::print("  {} of {}, code {}, constants {}{}\n", counted(a.launches.size(), "launch"),
             counted(kernels_of(a).size(), "kernel"), human_bytes(static_cast<double>(a.code.size())),
             human_bytes(static_cast<double>(a.constants.size())),
             a.prepared.empty() ? ""
                                : fmt::format(", made by loading from {} in the file",
                                              human_bytes(static_cast<double>(stored_constant_bytes(a)))));
  fmt::print("  arena {} for intermediates of {}\n", bytes_text(a.arena_bytes), bytes_text(a.intermediate_bytes));
  print_fixed_inputs(a);
  for (const std::string& text : constraints_of(a)) fmt::print("  needs {}\n", text);
  print_variants(a);
  fmt::print("{}", launch_table(runs, a.on_device()).text());
  Table layouts({"buffer", "layout"});
  for (const auto& [buffer, layout] : runs.layouts) layouts.row({buffer, layout});
  if (flags.shows("layouts")) fmt::print("{}", layouts.text());
  for (const std::string& text : grouped_notes(a.notes)) fmt::print("  note: {}\n", text);
  for (const std::string& text : a.skipped) fmt::print("  skipped section {}\n", text);
}

int inspect_artifact(const GivenModel& model, const Flags& flags) {
  const Artifact& a = model.executable->artifact();
  const ArtifactProgram& runs = a.program_for(given_dimensions(model.interface(), flags.dimensions));
  if (flags.json)
    print_json(artifact_json(model, a, runs));
  else
    print_artifact(model, a, runs, flags);
  return kOk;
}

/// What only the other kind of file has.
void check_shown(const GivenModel& model, const Flags& flags) {
  for (const std::string& what : flags.show)
    if ((what == "layouts") != model.executable.has_value())
      throw fail(E::bad_option, "--show {} does not apply: '{}' is {}", what, model.name,
                 model.executable ? "an .opf, which has layouts" : "a model, which has layers, weights and text");
}

}  // namespace

std::function<int()> add_inspect(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelOrOpfHelp)->required();
  app.add_option("--show", flags->show, "more: layers, weights, text (of a model); layouts (of an .opf)")
      ->delimiter(',')
      ->one_of({"layers", "weights", "text", "layouts"});
  add_dimension_flags(app, flags->dimensions);
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] {
    const GivenModel model = open_model(flags->model);
    if (model.executable) refuse_reading_flags(app, flags->model);
    check_shown(model, *flags);
    return model.executable ? inspect_artifact(model, *flags) : inspect_graph(model, *flags);
  };
}

}  // namespace opfuse::cli
