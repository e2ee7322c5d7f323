// opfuse explain: why each node is, or is not, fused.
#include "fusion/explain/explain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "compile_model.hpp"
#include "driver/conversion_tax.hpp"
#include "driver/placement.hpp"
#include "driver/remarks.hpp"
#include "fusion/explain/edge_groups.hpp"
#include "fusion/explain/shaping_text.hpp"
#include "fusion/names.hpp"
#include "fusion/user/pattern_file.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "quantize/int8_support.hpp"
#include "quantize/record.hpp"
#include "report.hpp"
#include "verb.hpp"
#include "why_slow.hpp"

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
  bool missed = false, passed = false, why_slow = false, json = false, jsonl = false;
  std::pair<std::string, std::string> edge;  ///< of two nodes; empty: all
};

/// What --top leaves of everything that is said.
class Budget {
 public:
  explicit Budget(size_t top) : left_(top == 0 ? SIZE_MAX : top) {}
  /// Cuts a list to what is left.
  template <class T>
  void cut(std::vector<T>& list) {
    const size_t most = std::min(list.size(), left_);
    hidden_ += list.size() - most;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(most), list.end());
    if (left_ != SIZE_MAX) left_ -= most;
  }
  void say() const {
    if (hidden_ > 0) note(fmt::format("{} more not shown (--top)", hidden_));
  }

 private:
  size_t left_, hidden_ = 0;
};

std::vector<Remark> remarks_of(const Compilation& compilation, const Flags& flags) {
  return remarks_on(
      compilation,
      {.node = flags.node, .passed = !flags.missed, .missed = !flags.passed, .pattern_files = flags.plan.patterns});
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

CompilationOptions options_of(const Graph& model, const Flags& flags) {
  CompilationOptions options = compilation_options(given_dimensions(model, flags.dimensions), flags.plan);
  options.no_pass = flags.passes.off();
  options.allow_reference = true;  // a reason for every node, also where one does not compile
  options.algorithms = algorithm_request(flags.algorithms, flags.threads);
  options.timings = flags.algorithms.timings;
  return options;
}

/// Where groups run, of targets with accelerators.
std::vector<Placement> placements_of(const Compilation& compilation, const Flags& flags) {
  std::vector<Placement> all = compilation.placed ? compilation.placed->placements : std::vector<Placement>{};
  const auto ends_at = [&](const Placement& p) { return p.group == flags.node || p.group.ends_with("@" + flags.node); };
  if (!flags.node.empty()) std::erase_if(all, [&](const Placement& p) { return !ends_at(p); });
  return all;
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

/// Everything that is said of a model.
struct Said {
  std::vector<std::string> conversions, notes;
  std::vector<EdgeGroup> apart;
  std::vector<Remark> remarks;
  std::vector<ShapeVerdict> pairs;
  std::vector<AlgorithmLine> algorithms;
  ConversionTax tax;
};

/// What is not fused first, by predicted gain: --top keeps that.
void cut(Said& said, const Flags& flags) {
  Budget budget(flags.top);
  budget.cut(said.apart);
  budget.cut(said.remarks);
  budget.cut(said.pairs);
  budget.cut(said.algorithms);
  budget.cut(said.notes);
  budget.cut(said.conversions);
  budget.say();
}

void print_text(const Said& said, const Compilation& compilation, const Flags& flags) {
  for (const std::string& text : said.conversions) fmt::print("CONVERSION {}\n", text);
  for (const EdgeGroup& group : said.apart) fmt::print("{}", text_of(group));
  fmt::print("{}", remarks_text(said.remarks));
  for (const ShapeVerdict& pair : said.pairs)
    fmt::print("{} {} -> {}: {}\n", upper(kind_of(pair)), pair.nodes[0], pair.nodes[1], sentence_of(pair));
  for (const AlgorithmLine& line : said.algorithms)
    fmt::print("ALGORITHM {} at {}{}: {}\n", line.name, line.node, line.algorithm->bounded ? ", bounded" : "",
               line.reason);
  if (!said.tax.launches.empty()) fmt::print("TAX      {}\n", said.tax.text());
  for (const std::string& text : said.notes) fmt::print("NOTE {}\n", text);
  if (!flags.node.empty())
    fmt::print("\n{}", explain_node(compilation.prepared, flags.node, patterns_with(flags.plan.patterns)));
  if (said.remarks.empty() && said.apart.empty() && flags.top == 0) fmt::print("nothing was missed\n");
}

void print_lines(const Said& said) {
  const Json all = Json::parse(remarks_json(said.remarks));
  for (const Json& remark : all.at("remarks")) fmt::print("{}\n", json_text(remark, -1));
  for (const Json& line : json_of(said.pairs)) fmt::print("{}\n", json_text(line, -1));
  for (const Json& line : json_of(said.algorithms)) fmt::print("{}\n", json_text(line, -1));
}

Json document_of(const Said& said, const Compilation& compilation, bool lowered) {
  const Json remarks = Json::parse(remarks_json(said.remarks));
  Json out = document(remarks.at("schema").get<std::string>());
  out.update(remarks);
  out["chains"] = json_of(said.pairs);
  out["algorithms"] = json_of(said.algorithms);
  out["notes"] = said.notes;
  out["edges"] = Json::parse(to_json(compilation.plan)).at("edges");
  out["launches"] = lowered ? launches_json(compilation) : Json::array();
  out["conversions"] = {{"launches", said.tax.launches},
                        {"predicted_us", said.tax.microseconds},
                        {"of_us", said.tax.all},
                        {"bytes", said.tax.bytes}};
  return out;
}

Said said_of(const Compilation& compilation, const Program* program, const Flags& flags) {
  Said said;
  const bool text = !flags.json && !flags.jsonl;
  said.remarks = remarks_of(compilation, flags);
  said.pairs = pairs_at(compilation, flags);
  if (program) said.algorithms = algorithm_lines(*program, flags);
  if (program && flags.node.empty()) said.tax = conversion_tax(*program, compilation.target);
  if (program && flags.node.empty()) said.notes = text ? grouped_notes(program->notes) : program->notes;
  if (!text) return said;
  std::vector<std::string> conversions = compilation.conversions;
  if (!flags.node.empty()) {  // the traces below say what did not match at all; the rest is about other nodes
    std::erase_if(conversions, [&](const std::string& c) { return c.find(" at " + flags.node) == std::string::npos; });
    std::erase_if(said.remarks, [](const Remark& r) { return r.kind == "missed" && r.matched == 0; });
  }
  said.conversions = grouped_notes(conversions);
  if (flags.node.empty()) std::erase_if(said.remarks, [](const Remark& r) { return r.rule == "edge"; });
  if (!flags.passed && flags.node.empty()) said.apart = edge_groups(compilation.prepared, compilation.plan);
  return said;
}

/// Where time goes, and how threads are filled: of the program, so both end without one.
int explain_time(Compilation& compilation, const Program* program, const Flags& flags) {
  if (!program) return kCheckFailed;
  constexpr size_t kShown = 10;
  const size_t most = flags.top > 0 ? flags.top : kShown;
  std::optional<Balance> balance;
  if (flags.threads > 0) balance = balance_on(compilation, flags.threads);
  if (flags.json) {
    Json out = document("opfuse.why-slow/1");
    out["launches"] = launches_json(compilation);
    if (balance) out["balance"] = json_of(*balance, flags.threads);
    print_json(out);
    return kOk;
  }
  fmt::print("{}", why_slow_text(compilation, most));
  if (balance) fmt::print("{}", text_of(*balance, flags.threads, most));
  return kOk;
}

/// Of a quantised model: in whom each product is computed in codes. Of opfuse what was decided here counts.
std::vector<quantization::ModuleSupport> modules_of(const Graph& given, const Compilation& compilation) {
  std::vector<quantization::CompilerRules> rules;
  for (const std::string& name : quantization::compiler_names()) rules.push_back(quantization::rules_of(name));
  auto modules = quantization::int8_support(given, compilation.plan, rules);
  if (!compilation.target.traits.on_host) return modules;
  std::map<std::string, const ShapeVerdict*> decided;
  for (const ShapeVerdict& v : compilation.verdicts)
    for (const std::string& node : v.sources)
      if (v.pass == "sum-codes") decided.emplace(node, &v);
  for (quantization::ModuleSupport& m : modules)
    if (const auto at = decided.find(m.node); at != decided.end())
      for (auto& [compiler, why] : m.compilers)
        if (compiler == "cpu") why = at->second->refused;
  return modules;
}

void check_flags(const FlagSet& app, const Flags& flags) {
  if (flags.missed && flags.passed) throw fail(E::bad_option, "--missed and --passed exclude each other");
  if (flags.json && flags.jsonl) throw fail(E::bad_option, "--json and --jsonl exclude each other");
  if (app.given("--edge"))
    refuse_flags(app, {"--missed", "--passed", "--node", "--why-slow", "--top", "--threads", "--json", "--jsonl"},
                 "--edge tells one edge's sentences", "leave it out; --json without --edge lists every edge");
  if (flags.why_slow)
    refuse_flags(app, {"--missed", "--passed", "--node", "--jsonl"}, "--why-slow lists launches", "leave it out");
}

int run(const FlagSet& app, const Flags& flags) {
  check_flags(app, flags);
  const GivenModel model = open_graph(flags.model, "explain", {.inputs = flags.fixed, .fix = Fix::all});
  CompilationOptions options = options_of(*model.graph, flags);
  const TargetInfo target = take_target(flags.target, options);
  Compilation compilation(*model.graph, target, options);
  compilation.run_to(Milestone::shaped);
  // before remarks: the ledger says what is executed
  const Program* program = lower_or_note(compilation, "algorithms and what is executed are not listed");
  if (!flags.edge.first.empty()) return explain_edge(compilation, flags);
  if (flags.why_slow) return explain_time(compilation, program, flags);
  Said said = said_of(compilation, program, flags);
  cut(said, flags);
  if (flags.jsonl) {
    print_lines(said);
  } else if (flags.json) {
    Json out = document_of(said, compilation, program != nullptr);
    for (const Placement& p : placements_of(compilation, flags))
      out["placements"].push_back({{"group", p.group},
                                   {"device", p.device},
                                   {"code", p.code},
                                   {"reason", p.reason},
                                   {"device_us", p.device_microseconds},
                                   {"host_us", p.host_microseconds},
                                   {"copies_us", p.copy_microseconds}});
    out["quantised_float"] = quantization::recorded_lines(*model.graph);
    for (const quantization::ModuleSupport& m : modules_of(*model.graph, compilation)) {
      Json row{{"module", m.module}, {"node", m.node}, {"int8_in", Json::array()}, {"float_in", Json::array()}};
      for (const auto& [compiler, why] : m.compilers)
        if (why)
          row["float_in"].push_back({{"compiler", compiler}, {"code", why->code}, {"message", why->message}});
        else
          row["int8_in"].push_back(compiler);
      if (!m.may_saturate.empty()) row["may_saturate_in"] = m.may_saturate;
      out["quantised_modules"].push_back(std::move(row));
    }
    if (program && flags.threads > 0) out["balance"] = json_of(balance_on(compilation, flags.threads), flags.threads);
    print_json(out);
  } else {
    print_text(said, compilation, flags);
    for (const Placement& placement : placements_of(compilation, flags)) fmt::print("PLACED {}\n", text_of(placement));
    if (!flags.passed && flags.node.empty()) {
      for (const quantization::ModuleSupport& m : modules_of(*model.graph, compilation))
        fmt::print("{}\n", quantization::text_of(m));
      for (const std::string& line : quantization::recorded_lines(*model.graph)) fmt::print("{}\n", line);
    }
    if (program && flags.threads > 0 && flags.node.empty())
      fmt::print("{}", text_of(balance_on(compilation, flags.threads), flags.threads, flags.top > 0 ? flags.top : 5));
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
  app.add_flag(
      "--why-slow", flags->why_slow,
      "the launches with the longest predicted times, what bounds each, and why it is not fused with its neighbours");
  app.add_option("--top", flags->top, "at most this many entries of each kind, largest gain first");
  add_plan_flags(app, flags->plan);
  add_pass_flags(app, flags->passes);
  add_algorithm_flags(app, flags->algorithms);
  app.add_option(
      "--threads", flags->threads,
      "threads of a run, for the choice of algorithms and the predicted balance; 0: all available, no balance");
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  add_fixed_input_flag(app, flags->fixed);
  app.add_flag("--json", flags->json, "one JSON document");
  app.add_flag("--jsonl", flags->jsonl, "one JSON object per line");
  return [flags, &app] {
    take_plan(flags->dimensions, flags->plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
