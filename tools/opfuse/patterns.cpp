// opfuse patterns: the catalogue of named fusion patterns.
#include "fusion/patterns.hpp"

#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
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

std::vector<const FusionPattern*> chosen(const std::string& name) {
  std::vector<const FusionPattern*> list;
  std::vector<std::string> names;
  for (const FusionPattern& pattern : fusion_patterns()) {
    names.push_back(pattern.name);
    if (name.empty() || pattern.name == name) list.push_back(&pattern);
  }
  if (list.empty()) throw fail(E::unknown_name, "there is no pattern '{}'", name).hint(did_you_mean(name, names));
  return list;
}

}  // namespace

std::function<int()> add_patterns(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "one pattern");
  app.add_flag("--json", *json, "as JSON");
  return [name, json] {
    const auto patterns = chosen(*name);
    if (*json) {
      Json rows = Json::array();
      for (const FusionPattern* pattern : patterns) rows.push_back(json_of(*pattern));
      Json out = document("opfuse.patterns/1");
      out["patterns"] = std::move(rows);
      print_json(out);
      return kOk;
    }
    for (const FusionPattern* pattern : patterns) {
      fmt::print("{}   -> {}\n  {}\n  topology    {}\n", pattern->name, pattern->module, pattern->doc,
                 pattern->topology.text());
      std::vector<std::string> words;
      for (const MatchPredicate& predicate : pattern->where) words.push_back(predicate.name);
      if (!words.empty()) fmt::print("  where       {}\n", fmt::join(words, "; "));
      words.clear();
      for (const PointRule& rule : pattern->points)
        words.push_back(fmt::format("{} at {}", rule.point, rule.binding.empty() ? "the result" : rule.binding));
      fmt::print("  Q/DQ        {}\n", fmt::join(words, ", "));
    }
    return kOk;
  };
}

}  // namespace opfuse::cli
