// Plans as JSON, schema opfuse.plan/2. Written with a fixed field order, so equal plans are equal files. Schema 1,
// which lacks "since" (the first release that reads the schema), is read as well.
//   {"schema", "since", "model", "target", "dims", "matches": [{"id", "pattern", "module", "label", "named", "apply",
//   "nodes", "reads",
//    "results", "epilogue"?, "bindings", "points": [{"point", "tensor"}], "est": {"bytes_saved"}, "reason"?,
//    "precision"? (absent: "f32"), "notes"?}], "precisions"? (of products outside of groups): {node: precision},
//    "edges": [{"tensor", "producer", "consumer", "group" | "reason", "executed"?, "by"?, "bytes"?, "time_us"?,
//    "change"?}]}
// Files that people edit: a key that nothing reads is an error.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/json_fields.hpp"
#include "fusion/plan.hpp"
#include "fusion/precision.hpp"
#include "fusion/reasons.hpp"

namespace opfuse {

using Json = nlohmann::ordered_json;

static constexpr std::string_view kPreviousSchema = "opfuse.plan/1";
static constexpr const char* kSince = "0.2.0";  ///< the first release that reads kPlanSchema

static Json json_of(const Decline& d) { return {{"code", d.code}, {"message", d.message}, {"evidence", d.evidence}}; }

using Keys = std::vector<std::string>;

/// E::bad_file for a key that is none of `known`.
static void check_keys(const Json& j, const std::string& where, const Keys& known) {
  for (const auto& [key, value] : j.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw fail(E::bad_file, "unknown key \"{}\" in {}", key, where).hint(did_you_mean(key, known));
}

static Decline decline_of(const Json& j) {
  check_keys(j, "a reason", {"code", "message", "evidence"});
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

static Json json_of(const EdgeVerdict& e) {
  Json edge{{"tensor", e.tensor}, {"producer", e.producer}, {"consumer", e.consumer}};
  if (!e.group.empty()) edge["group"] = e.group;
  if (e.group.empty() && !e.decline.code.empty()) edge["reason"] = json_of(e.decline);
  if (!e.executed.empty()) edge["executed"] = e.executed;
  if (!e.by.empty()) edge["by"] = e.by;
  const auto add_price = [&](const std::string& form, const GroupPrice& price) {
    edge["bytes"][form] = price.bytes;
    edge["time_us"][form] = price.microseconds;
    if (price.blocked_microseconds != price.microseconds)
      edge["time_us"][form + "_in_blocks"] = price.blocked_microseconds;
  };
  if (e.price) add_price("apart", e.price->apart);
  if (e.price && e.price->joined) add_price("joined", *e.price->joined);
  if (e.price && e.price->at_best) add_price("at_best", *e.price->at_best);
  if (e.price) edge["growth"] = e.price->growth;
  if (e.price && e.price->recompute) edge["recompute"] = *e.price->recompute;
  if (e.group.empty() && !e.decline.code.empty()) edge["change"] = change_for(e);
  return edge;
}

static EdgeVerdict edge_of(const Json& j) {
  check_keys(j, "an edge",
             {"tensor", "producer", "consumer", "group", "reason", "executed", "by", "bytes", "time_us", "growth",
              "recompute", "change"});
  EdgeVerdict edge{j.at("tensor").get<std::string>(),
                   j.at("producer").get<std::string>(),
                   j.at("consumer").get<std::string>(),
                   j.value("group", ""),
                   {}};
  if (j.contains("reason")) edge.decline = decline_of(j.at("reason"));
  edge.executed = j.value("executed", "");
  edge.by = j.value("by", "");
  if (!j.contains("bytes") || !j.contains("time_us")) return edge;
  const auto price = [&](const std::string& form) {
    const Json& times = j.at("time_us");
    const auto time = times.at(form).get<double>();
    return GroupPrice{time, times.value(form + "_in_blocks", time), whole<int64_t>(j.at("bytes").at(form))};
  };
  edge.price = PricePair{price("apart"), std::nullopt};
  if (j.at("bytes").contains("joined")) edge.price->joined = price("joined");
  if (j.at("bytes").contains("at_best")) edge.price->at_best = price("at_best");
  edge.price->growth = j.value("growth", 1.0);
  if (j.contains("recompute")) edge.price->recompute = j.at("recompute").get<double>();
  return edge;
}

static std::vector<std::string> strings(const Json& j, const char* key) {
  return j.contains(key) ? j.at(key).get<std::vector<std::string>>() : std::vector<std::string>{};
}

static Candidate candidate_of(const Json& j) {
  Candidate c;
  c.id = j.at("id").get<std::string>();
  check_keys(j, c.id,
             {"id", "pattern", "module", "label", "named", "apply", "nodes", "reads", "results", "epilogue", "bindings",
              "points", "est", "reason", "notes", "precision"});
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
    for (const Json& p : j.at("points")) {
      check_keys(p, "a point of " + c.id, {"point", "tensor"});
      c.points.push_back({p.at("point").get<std::string>(), p.at("tensor").get<std::string>()});
    }
  if (j.contains("est")) check_keys(j.at("est"), "\"est\" of " + c.id, {"bytes_saved"});
  if (j.contains("est") && j.at("est").contains("bytes_saved"))
    c.bytes_saved = whole<int64_t>(j.at("est").at("bytes_saved"));
  if (j.contains("reason")) c.decline = decline_of(j.at("reason"));
  c.notes = strings(j, "notes");
  return c;
}

std::string to_json(const FusionPlan& plan) {
  Json j{{"schema", kPlanSchema}, {"since", kSince},          {"model", plan.model},   {"target", plan.target},
         {"dims", plan.dims},     {"matches", Json::array()}, {"edges", Json::array()}};
  for (const Candidate& c : plan.candidates) j["matches"].push_back(json_of(c));
  for (const EdgeVerdict& e : plan.edges) j["edges"].push_back(json_of(e));
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

/// The library's sentence without its own number in front: "[json.exception.type_error.302] type must be ...".
static std::string reason_of(const Json::exception& e) {
  const std::string text = e.what();
  const size_t end = text.starts_with("[") ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

/// What `read` makes of an entry; a type that is wrong in it is told with its place.
template <class Read>
static auto entry(const Json& j, const char* what, size_t index, Read read) -> decltype(read(j)) {
  try {
    return read(j);
  } catch (const Json::exception& e) {
    const bool named = j.is_object() && j.contains("id") && j.at("id").is_string();
    throw fail(E::bad_file, "the plan's {} {}{}: {}", what, index + 1,
               named ? fmt::format(" ({})", j.at("id").get<std::string>()) : "", reason_of(e))
        .hint("`opfuse fuse MODEL --plan-out plan.json` writes a valid one");
  }
}

FusionPlan plan_from_json(std::string_view text) try {
  const Json j = Json::parse(text);
  check_schema(j);
  check_keys(j, "the plan", {"schema", "since", "model", "target", "dims", "matches", "edges", "precisions"});
  FusionPlan plan;
  plan.model = j.at("model").get<std::string>();
  plan.target = j.value("target", "");
  const Json dims = j.value("dims", Json::object());
  if (!dims.is_object()) throw fail(E::bad_file, "its dims are {}, not sizes by name", dims.dump());
  for (const auto& [name, size] : dims.items()) plan.dims[name] = whole<int64_t>(size);
  for (const Json& m : j.at("matches"))
    plan.candidates.push_back(entry(m, "match", plan.candidates.size(), candidate_of));
  plan.precisions = j.value("precisions", std::map<std::string, std::string>());
  for (const auto& [node, precision] : plan.precisions) check_precision(precision);
  if (j.contains("edges"))
    for (const Json& e : j.at("edges")) plan.edges.push_back(entry(e, "edge", plan.edges.size(), edge_of));
  return plan;
} catch (const Json::exception& e) {
  throw fail(E::bad_file, "the plan is not readable: {}", reason_of(e))
      .hint("`opfuse fuse MODEL --plan-out plan.json` writes a valid one");
}

}  // namespace opfuse
