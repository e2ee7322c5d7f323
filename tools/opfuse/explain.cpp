// opfuse explain: why each node is, or is not, fused.
#include "fusion/explain/explain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "compile_model.hpp"
#include "driver/remarks.hpp"
#include "fusion/explain/edge_groups.hpp"
#include "fusion/explain/shaping_text.hpp"
#include "fusion/names.hpp"
#include "fusion/user/pattern_file.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, node, target = "host";
  DimensionFlags dimensions;
  std::vector<std::string> fixed;
  PlanFlags plan;
  AlgorithmFlags algorithms;
  PassFlags passes;
  size_t top = 0;
  int threads = 0;
  bool missed = false, passed = false, json = false, jsonl = false;
  std::pair<std::string, std::string> edge;  ///< of two nodes; empty: all
};

std::vector<Remark> remarks_of(const Compilation& compilation, const Flags& flags) {
  std::vector<Remark> remarks = remarks_on(
      compilation,
      {.node = flags.node, .passed = !flags.missed, .missed = !flags.passed, .pattern_files = flags.plan.patterns});
  if (flags.top > 0 && remarks.size() > flags.top) {
    note(fmt::format("{} of {} remarks shown (--top)", flags.top, remarks.size()));
    remarks.resize(flags.top);
  }
  return remarks;
}

/// Convolutions that are not direct, and those that a bound on memory or on the error kept so; all of them in JSON.
struct AlgorithmLine {
  std::string name, node, reason;
  const Algorithm* algorithm;
};

std::vector<AlgorithmLine> algorithm_lines(const Program& program, const Flags& flags) {
  const std::string& node = flags.node;
  std::vector<AlgorithmLine> lines;
  for (const Algorithm& a : program.algorithms) {
    const Launch& launch = program.launches[static_cast<size_t>(a.launch)];
    const bool asked = std::find(launch.sources.begin(), launch.sources.end(), node) != launch.sources.end();
    const bool notable = flags.json || flags.jsonl || a.name != "direct" || a.bounded || a.inexact;
    if (!asked && (!node.empty() || !notable)) continue;
    lines.push_back({a.name, launch.sources.empty() ? launch.name : launch.sources[0], a.reason, &a});
  }
  return lines;
}

Json json_of(const std::vector<AlgorithmLine>& lines) {
  Json all = Json::array();
  for (const AlgorithmLine& line : lines) {
    Json costs = Json::array();
    for (const AlgorithmCost& c : line.algorithm->costs)
      costs.push_back({{"algorithm", c.name}, {"cost", c.cost}, {"weight_growth", c.weight_growth}});
    all.push_back({{"algorithm", line.name},
                   {"node", line.node},
                   {"reason", line.reason},
                   {"bounded", line.algorithm->bounded},
                   {"inexact", line.algorithm->inexact},
                   {"predicted_of_direct", line.algorithm->predicted},
                   {"error_of_max", line.algorithm->error},
                   {"error_of_sum", line.algorithm->error_of_sum},
                   {"weight_growth", line.algorithm->weight_growth},
                   {"costs", std::move(costs)}});
  }
  return all;
}

/// Pairs with the asked node, or all; what was not asked for (--missed, --passed) is left out.
std::vector<ShapeVerdict> pairs_at(const Compilation& compilation, const Flags& flags) {
  std::vector<ShapeVerdict> pairs = pairs_of(compilation.verdicts);
  std::erase_if(pairs, [&](const ShapeVerdict& pair) {
    const auto& sources = pair.sources;
    const bool asked = flags.node.empty() || std::find(sources.begin(), sources.end(), flags.node) != sources.end();
    return !asked || (pair.refused ? flags.passed : flags.missed);
  });
  return pairs;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

Json json_of(const std::vector<ShapeVerdict>& pairs) {
  Json all = Json::array();
  for (const ShapeVerdict& pair : pairs) {
    Json line{
        {"kind", kind_of(pair)}, {"chain", pair.nodes}, {"joined", !pair.refused}, {"bytes", pair.number("bytes")}};
    if (pair.refused) line["reason"] = {{"code", pair.refused->code}, {"message", pair.refused->message}};
    all.push_back(std::move(line));
  }
  return all;
}

/// Algorithms are chosen when kernels are made; a plan has its reasons without them.
const Program* program_of(Compilation& compilation) {
  try {
    compilation.run_to(Milestone::lowered);
    return &compilation.program;
  } catch (const Error& error) {
    if (error.diagnostic().name != "uncompilable") throw;
    note(fmt::format("no algorithms are listed, since the model does not compile: {}", error.diagnostic().message));
    return nullptr;
  }
}

CompilationOptions options_of(const Graph& model, const Flags& flags) {
  CompilationOptions options = compilation_options(given_dimensions(model, flags.dimensions), flags.plan);
  options.no_pass = flags.passes.off();
  options.allow_reference = true;  // a reason for every node, also where one does not compile
  options.algorithms = algorithm_request(flags.algorithms, flags.threads);
  return options;
}

/// Edges that are not one launch, alike ones together.
void print_edge_groups(const Compilation& compilation, const Flags& flags, size_t shown) {
  std::vector<EdgeGroup> groups = edge_groups(compilation.prepared, compilation.plan);
  const size_t most = flags.top == 0 ? groups.size() : flags.top - std::min(flags.top, shown);
  if (groups.size() > most) note(fmt::format("{} of {} kinds of edges shown (--top)", most, groups.size()));
  groups.resize(std::min(groups.size(), most));
  for (const EdgeGroup& group : groups) fmt::print("{}", text_of(group));
}

int explain_edge(const Compilation& compilation, const Flags& flags) {
  const auto& [a, b] = flags.edge;
  std::vector<std::string> known;
  const NodeNames names(compilation.prepared);
  for (const Node* node : compilation.prepared.nodes()) known.push_back(names.of(node));
  for (const std::string& name : {a, b})
    if (!names.find(name)) throw fail(E::unknown_name, "there is no node \"{}\"", name).hint(did_you_mean(name, known));
  const std::string text = text_of_edges(compilation.prepared, compilation.plan, a, b);
  fmt::print("{}", text.empty() ? fmt::format("no value goes from \"{}\" to \"{}\", or back\n", a, b) : text);
  return kOk;
}

int run(const Flags& flags) {
  if (flags.missed && flags.passed) throw fail(E::bad_option, "--missed and --passed exclude each other");
  const GivenModel model = open_graph(flags.model, "explain", {.inputs = flags.fixed, .fix = Fix::all});
  Compilation compilation(*model.graph, parse_target(flags.target), options_of(*model.graph, flags));
  compilation.run_to(Milestone::shaped);
  const Program* program = program_of(compilation);  // before remarks: the ledger says what is executed
  if (!flags.edge.first.empty()) return explain_edge(compilation, flags);
  std::vector<Remark> remarks = remarks_of(compilation, flags);
  const std::vector<ShapeVerdict> pairs = pairs_at(compilation, flags);
  const std::vector<AlgorithmLine> algorithms =
      program ? algorithm_lines(*program, flags) : std::vector<AlgorithmLine>{};
  if (flags.jsonl) {
    const Json all = Json::parse(remarks_json(remarks));
    for (const Json& remark : all.at("remarks")) fmt::print("{}\n", remark.dump());
    for (const Json& line : json_of(pairs)) fmt::print("{}\n", line.dump());
    for (const Json& line : json_of(algorithms)) fmt::print("{}\n", line.dump());
  } else if (flags.json) {
    Json out = Json::parse(remarks_json(remarks));
    out["chains"] = json_of(pairs);
    out["algorithms"] = json_of(algorithms);
    out["notes"] = program ? program->notes : std::vector<std::string>{};
    out["edges"] = Json::parse(to_json(compilation.plan)).at("edges");
    out["launches"] = Json::array();
    for (size_t i = 0; program && i < program->launches.size(); ++i)
      out["launches"].push_back({{"name", program->launches[i].name}, {"sources", program->launches[i].sources}});
    fmt::print("{}\n", out.dump(2));
  } else {
    for (const std::string& text : grouped_notes(compilation.conversions)) fmt::print("CONVERSION {}\n", text);
    if (flags.node.empty()) std::erase_if(remarks, [](const Remark& r) { return r.rule == "edge"; });
    fmt::print("{}", remarks_text(remarks));
    if (!flags.passed && flags.node.empty()) print_edge_groups(compilation, flags, remarks.size());
    for (const ShapeVerdict& pair : pairs)
      fmt::print("{} {} -> {}: {}\n", upper(kind_of(pair)), pair.nodes[0], pair.nodes[1], sentence_of(pair));
    for (const AlgorithmLine& line : algorithms)
      fmt::print("ALGORITHM {} at {}{}: {}\n", line.name, line.node, line.algorithm->bounded ? ", bounded" : "",
                 line.reason);
    if (program && flags.node.empty())
      for (const std::string& text : grouped_notes(program->notes)) fmt::print("NOTE {}\n", text);
    if (!flags.node.empty())
      fmt::print("\n{}", explain_node(compilation.prepared, flags.node, patterns_with(flags.plan.patterns)));
    if (remarks.empty()) fmt::print("nothing to say: no candidate was missed\n");
  }
  return kOk;
}

}  // namespace

std::function<int()> add_explain(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_flag("--missed", flags->missed, "only what was not fused, most bytes first");
  app.add_flag("--passed", flags->passed, "only what was fused");
  app.add_option("--node", flags->node, "everything about one node: all patterns tried there, best partial match first")
      ->type_name("NAME");
  app.add_option("--edge", flags->edge, "what became of the edge between two nodes, and why")->type_name("A B");
  app.add_option("--top", flags->top, "at most so many remarks");
  add_plan_flags(app, flags->plan);
  add_pass_flags(app, flags->passes);
  add_algorithm_flags(app, flags->algorithms);
  app.add_option("--threads", flags->threads, "threads of a run, for the choice of algorithms; 0: all available");
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  add_fixed_input_flag(app, flags->fixed);
  app.add_flag("--json", flags->json, "one JSON document");
  app.add_flag("--jsonl", flags->jsonl, "one JSON object per line");
  return [flags] {
    take_plan(flags->dimensions, flags->plan);
    return run(*flags);
  };
}

}  // namespace opfuse::cli
