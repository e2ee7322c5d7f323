// opfuse patterns: the catalogue of named fusion patterns, and files of one's own: listed, explained, tested.
#include "fusion/patterns.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
#include "driver/pipeline.hpp"
#include "fusion/explain/compounds.hpp"
#include "fusion/user/pattern_file.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

Json json_of(const FusionPattern& pattern) {
  Json points = Json::array(), conditions = Json::array();
  for (const PointRule& rule : pattern.points) points.push_back({{"point", rule.point}, {"binding", rule.binding}});
  for (const MatchPredicate& predicate : pattern.where) conditions.push_back(predicate.name);
  return {{"name", pattern.name},
          {"module", pattern.module},
          {"topology", pattern.topology.text()},
          {"conditions", std::move(conditions)},
          {"qdq_points", std::move(points)},
          {"priority", pattern.priority},
          {"doc", pattern.doc}};
}

/// What is recognised beyond the catalogue; it makes no modules.
Json compounds_json() {
  Json rows = Json::array();
  for (const CompoundPattern& c : compound_patterns())
    rows.push_back({{"name", c.name}, {"topology", c.topology.text()}, {"doc", c.doc}});
  rows.push_back({{"name", kSiblingLinears}, {"topology", ""}, {"doc", kSiblingLinearsDoc}});
  return rows;
}

void print_compounds() {
  fmt::print("\nbeyond the catalogue (no modules; `opfuse explain` tells which groups they lie in):\n");
  for (const CompoundPattern& c : compound_patterns())
    fmt::print("{}\n  {}\n  topology    {}\n", c.name, c.doc, c.topology.text());
  fmt::print("{}\n  {}\n", kSiblingLinears, kSiblingLinearsDoc);
}

struct Flags {
  std::vector<std::string> words;
  std::string model;
  bool json = false;
};

std::vector<FusionPattern> chosen(const std::vector<FusionPattern>& all, const std::string& name) {
  std::vector<FusionPattern> list;
  std::vector<std::string> names{"list", "explain", "test"};
  for (const FusionPattern& pattern : all) {
    names.push_back(pattern.name);
    if (name.empty() || pattern.name == name) list.push_back(pattern);
  }
  if (list.empty()) throw fail(E::unknown_name, "there is no pattern '{}'", name).hint(did_you_mean(name, names));
  return list;
}

int list(const std::vector<FusionPattern>& patterns, bool compounds, bool json) {
  if (json) {
    Json rows = Json::array();
    for (const FusionPattern& pattern : patterns) rows.push_back(json_of(pattern));
    Json out = document("opfuse.patterns/1");
    out["patterns"] = std::move(rows);
    if (compounds) out["compounds"] = compounds_json();
    print_json(out);
    return kOk;
  }
  for (const FusionPattern& pattern : patterns) {
    fmt::print("{}   -> {}\n  {}\n  topology    {}\n", pattern.name, pattern.module, pattern.doc,
               pattern.topology.text());
    std::vector<std::string> words;
    for (const MatchPredicate& predicate : pattern.where) words.push_back(predicate.name);
    if (!words.empty()) fmt::print("  where       {}\n", fmt::join(words, "; "));
    words.clear();
    for (const PointRule& rule : pattern.points)
      words.push_back(fmt::format("{} at {}", rule.point, rule.binding.empty() ? "the result" : rule.binding));
    fmt::print("  Q/DQ        {}\n", words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", ")));
  }
  if (compounds) print_compounds();
  return kOk;
}

/// Where a pattern fires in a model and, of the other places, the nearest ones with their reason.
size_t on_model(const FusionPattern& pattern, const Graph& graph, bool explain) {
  const Matcher matcher(graph);
  size_t fires = 0;
  for (Node* node : graph.nodes()) {
    const MatchResult r = matcher.match(pattern.topology, node, pattern.where);
    fires += r ? 1 : 0;
    if (r && explain) fmt::print("  fires at {}\n", describe(*node));
    if (!r && explain && r.partial.matched >= 1 && r.partial.decline.code != "op_mismatch")
      fmt::print("  {} of {} nodes at {}: {}\n", std::min(r.partial.matched, r.partial.of), r.partial.of,
                 describe(*node), r.partial.decline.message);
  }
  return fires;
}

std::optional<Graph> prepared_model(const std::string& argument) {
  if (argument.empty()) return std::nullopt;
  Graph graph = open_graph(argument, "patterns").graph->clone();
  prepare(graph, {}, nullptr);
  return graph;
}

/// Examples of the file as tests; with a model, how often each pattern fires there.
int test(const std::vector<UserPattern>& users, const std::optional<Graph>& model) {
  size_t failed = 0;
  for (const UserPattern& user : users) {
    for (size_t i = 0; i < user.examples.size(); ++i) {
      const PatternExample& example = user.examples[i];
      const std::string problem = check_example(user.pattern, example);
      failed += problem.empty() ? 0 : 1;
      fmt::print("{} {} example {}: {}\n", user.pattern.name, example.fires ? "fires" : "spares", i + 1,
                 problem.empty() ? "ok" : "FAILED, " + problem);
    }
    if (user.examples.empty()) fmt::print("{} has no examples (fires, spares)\n", user.pattern.name);
    if (model)
      fmt::print("{} fires at {} places of the model\n", user.pattern.name, on_model(user.pattern, *model, false));
  }
  return failed == 0 ? kOk : kCheckFailed;
}

int run(const Flags& flags) {
  static const std::vector<std::string> kVerbs{"list", "explain", "test"};
  const std::string first = flags.words.empty() ? "" : flags.words[0];
  const bool verb = std::find(kVerbs.begin(), kVerbs.end(), first) != kVerbs.end();
  const std::string file = verb && flags.words.size() > 1 ? flags.words[1] : "";
  if (flags.words.size() > (verb ? 2u : 1u))
    throw fail(E::bad_option, "one file or pattern, not {}", flags.words.size());
  if (!verb || first == "list")
    return list(chosen(file.empty() ? fusion_patterns() : patterns_with({file}), verb ? "" : first),
                verb || first.empty(), flags.json);
  if (file.empty()) throw fail(E::bad_option, "patterns {} needs a file: opfuse patterns {} my.toml", first, first);
  patterns_with({file});  // refuses names of the catalogue
  const std::vector<UserPattern> users = read_patterns(file);
  const std::optional<Graph> model = prepared_model(flags.model);
  if (first == "test") return test(users, model);
  if (!model) throw fail(E::bad_option, "patterns explain needs --model");
  for (const UserPattern& user : users) {
    fmt::print("{}   {}\n", user.pattern.name, user.pattern.topology.text());
    if (on_model(user.pattern, *model, true) == 0) fmt::print("  fires nowhere\n");
  }
  return kOk;
}

}  // namespace

std::function<int()> add_patterns(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("WHAT", flags->words,
                 "a pattern; or list [FILE.toml], test FILE.toml, explain FILE.toml --model MODEL");
  app.add_option("--model", flags->model, "test: count where patterns fire; explain: why they do or do not")
      ->type_name("MODEL");
  app.add_flag("--json", flags->json, "the list as JSON");
  return [flags] { return run(*flags); };
}

}  // namespace opfuse::cli
