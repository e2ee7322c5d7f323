// Plans as JSON, schema opfuse.plan/2. Written with a fixed field order, so equal plans are equal files. Schema 1,
// which lacks "since" (the first release that reads the schema), is read as well.
//   {"schema", "since", "model", "target", "dims", "matches": [{"id", "pattern", "module", "label", "named", "apply",
//   "nodes", "reads",
//    "results", "epilogue"?, "bindings", "points": [{"point", "tensor"}], "est": {"bytes_saved"}, "reason"?,
//    "precision"? (absent: "f32"), "notes"?}], "precisions"? (of products outside of groups): {node: precision},
//    "edges": [{"tensor", "producer", "consumer", "group" | "reason"}]}
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "fusion/plan.hpp"
#include "fusion/precision.hpp"

namespace opfuse {

using Json = nlohmann::ordered_json;

static constexpr std::string_view kPreviousSchema = "opfuse.plan/1";
static constexpr const char* kSince = "0.1.0";  ///< the first release that reads kPlanSchema

static Json json_of(const Decline& d) { return {{"code", d.code}, {"message", d.message}, {"evidence", d.evidence}}; }

static Decline decline_of(const Json& j) {
  return {j.at("code").get<std::string>(), j.at("message").get<std::string>(),
          j.at("evidence").get<std::vector<std::string>>()};
}

static Json json_of(const Candidate& c) {
  Json j{{"id", c.id},       {"pattern", c.pattern}, {"module", c.module}, {"label", c.label},    {"named", c.named},
         {"apply", c.apply}, {"nodes", c.nodes},     {"reads", c.reads},   {"results", c.results}};
  if (!c.epilogue.empty()) j["epilogue"] = c.epilogue;
  if (c.precision != kFullPrecision) j["precision"] = c.precision;
  j["bindings"] = Json::object();
  for (const auto& [name, what] : c.bindings) j["bindings"][name] = what;
  j["points"] = Json::array();
  for (const QdqPoint& p : c.points) j["points"].push_back({{"point", p.point}, {"tensor", p.tensor}});
  j["est"] = {{"bytes_saved", c.bytes_saved}};
  if (c.decline) j["reason"] = json_of(*c.decline);
  if (!c.notes.empty()) j["notes"] = c.notes;
  return j;
}

static std::vector<std::string> strings(const Json& j, const char* key) {
  return j.contains(key) ? j.at(key).get<std::vector<std::string>>() : std::vector<std::string>{};
}

static Candidate candidate_of(const Json& j) {
  Candidate c;
  c.id = j.at("id").get<std::string>();
  c.pattern = j.contains("pattern") ? j.at("pattern").get<std::string>() : c.id.substr(0, c.id.find('@'));
  c.module = j.contains("module") ? j.at("module").get<std::string>() : "Fused" + c.pattern;
  c.label = j.value("label", "");
  c.named = j.value("named", true);
  c.apply = j.at("apply").get<bool>();
  c.nodes = j.at("nodes").get<std::vector<std::string>>();
  c.precision = j.value("precision", kFullPrecision);
  check_precision(c.precision);
  c.epilogue = strings(j, "epilogue");
  c.reads = strings(j, "reads");
  c.results = strings(j, "results");
  if (j.contains("bindings"))
    for (const auto& [name, what] : j.at("bindings").items()) c.bindings.emplace_back(name, what.get<std::string>());
  if (j.contains("points"))
    for (const Json& p : j.at("points"))
      c.points.push_back({p.at("point").get<std::string>(), p.at("tensor").get<std::string>()});
  if (j.contains("est")) c.bytes_saved = j.at("est").value("bytes_saved", int64_t{0});
  if (j.contains("reason")) c.decline = decline_of(j.at("reason"));
  c.notes = strings(j, "notes");
  return c;
}

std::string to_json(const FusionPlan& plan) {
  Json j{{"schema", kPlanSchema}, {"since", kSince},          {"model", plan.model},   {"target", plan.target},
         {"dims", plan.dims},     {"matches", Json::array()}, {"edges", Json::array()}};
  for (const Candidate& c : plan.candidates) j["matches"].push_back(json_of(c));
  for (const EdgeVerdict& e : plan.edges) {
    Json edge{{"tensor", e.tensor}, {"producer", e.producer}, {"consumer", e.consumer}};
    if (e.group.empty())
      edge["reason"] = json_of(e.decline);
    else
      edge["group"] = e.group;
    j["edges"].push_back(std::move(edge));
  }
  if (!plan.precisions.empty()) j["precisions"] = plan.precisions;
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A schema that this release reads, else E::bad_file with the release that does.
static void check_schema(const Json& j) {
  const std::string schema = j.at("schema").get<std::string>();
  if (schema == kPlanSchema || schema == kPreviousSchema) return;
  const std::string since = j.value("since", "");
  throw fail(E::bad_file, "the plan has schema \"{}\"; this opfuse reads \"{}\" and \"{}\"", schema, kPreviousSchema,
             kPlanSchema)
      .hint(fmt::format("{}`opfuse fuse MODEL --plan-out plan.json` writes one that this opfuse reads",
                        since.empty() ? "" : fmt::format("opfuse {} or later reads it; ", since)));
}

FusionPlan plan_from_json(std::string_view text) try {
  const Json j = Json::parse(text);
  check_schema(j);
  FusionPlan plan;
  plan.model = j.at("model").get<std::string>();
  plan.target = j.value("target", "");
  plan.dims = j.value("dims", SymbolValues());
  for (const Json& m : j.at("matches")) plan.candidates.push_back(candidate_of(m));
  plan.precisions = j.value("precisions", std::map<std::string, std::string>());
  for (const auto& [node, precision] : plan.precisions) check_precision(precision);
  if (j.contains("edges"))
    for (const Json& e : j.at("edges")) {
      EdgeVerdict edge{e.at("tensor").get<std::string>(),
                       e.at("producer").get<std::string>(),
                       e.at("consumer").get<std::string>(),
                       e.value("group", ""),
                       {}};
      if (e.contains("reason")) edge.decline = decline_of(e.at("reason"));
      plan.edges.push_back(std::move(edge));
    }
  return plan;
} catch (const Json::exception& e) {
  throw fail(E::bad_file, "the plan is not readable: {}", e.what())
      .hint("`opfuse fuse MODEL --plan-out plan.json` writes a valid one");
}

}  // namespace opfuse
