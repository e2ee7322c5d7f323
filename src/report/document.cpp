// The parts of a model's entry. What was not measured is null, with the reason beside it.
#include "report/document.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "report/arena_use.hpp"
#include "report/missed_rows.hpp"
#include "runtime/prepared_constants.hpp"

namespace opfuse::report {
namespace {

Json limits_json(const MachineLimits& limits) {
  Json reads = Json::array();
  for (const ReadRate& level : limits.reads) reads.push_back({{"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}});
  Json products = Json::array();
  for (const ProductRate& rate : limits.products)
    products.push_back({{"products", rate.products}, {"instruction", rate.instruction}, {"gop_per_s", rate.gops}});
  return {{"threads", limits.threads},
          {"vector_bytes", limits.vector_bytes},
          {"fma_gflop_per_s", limits.fma_gflops > 0 ? Json(limits.fma_gflops) : Json()},
          {"products", std::move(products)},
          {"reads", std::move(reads)}};
}

Json units_json(const std::vector<Unit>& units) {
  Json rows = Json::array();
  for (const Unit& unit : units)
    rows.push_back({{"label", unit.label},
                    {"pattern", unit.pattern},
                    {"nodes", unit.sources},
                    {"launches", unit.launches},
                    {"bytes_saved", unit.bytes_saved}});
  return rows;
}

Json work_json(const Work& work) {
  return {{"source_nodes", work.source_nodes},
          {"flop", work.flops},
          {"weight_bytes", work.weight_bytes},
          {"activation_bytes", {{"before", work.traffic_before}, {"after", work.traffic_after}}}};
}

Json profile_json(const LaunchProfile& p) {
  return {{"runs", p.runs},
          {"sum_ms", p.sum_ms},
          {"recorded_ms", p.recorded_ms},
          {"latency_ms", p.plain_ms > 0 ? Json(p.plain_ms) : Json()},
          {"variant", p.variant},
          {"limits", limits_json(p.limits)}};
}

std::vector<std::string> notes_of(const Subject& s) {
  std::vector<std::string> notes;
  if (s.compilation) notes = s.compilation->notes();
  const std::vector<std::string>& own = s.program ? s.program->notes : s.artifact->notes;
  notes.insert(notes.end(), own.begin(), own.end());
  return notes;
}

}  // namespace

Json missed_json(const Subject& s) {
  Json rows = Json::array();
  if (!s.compilation) return nullptr;
  for (const MissedRow& row : missed_rows(*s.compilation, s.remarks, s.views)) {
    Json time = nullptr;
    if (s.profile)
      if (const double rate = s.profile->limits.read_gb_per_s(static_cast<double>(row.bytes)); rate > 0)
        time = static_cast<double>(row.bytes) / rate * 1e-6;
    rows.push_back({{"kind", row.kind},
                    {"what", row.what},
                    {"nodes", row.nodes},
                    {"code", row.code},
                    {"message", row.message},
                    {"evidence", row.evidence},
                    {"bytes", row.bytes},
                    {"ms_at_read_limit", std::move(time)},
                    {"command", row.command},
                    {"changes", row.changes}});
  }
  return rows;
}

Json memory_json(const Subject& s) {
  const ArenaUse use = arena_use(*s.runs, s.dims);
  Json blocks = Json::array();
  for (const ArenaBlock& b : use.blocks)
    blocks.push_back(
        {{"name", b.name}, {"offset", b.offset}, {"bytes", b.bytes}, {"first", b.first}, {"last", b.last}});
  return {{"arena_bytes", use.bytes},
          {"intermediate_bytes", s.runs->intermediate_bytes.evaluate(s.dims)},
          {"constant_bytes", s.artifact->constants.size()},
          {"stored_constant_bytes", stored_constant_bytes(*s.artifact)},
          {"code_bytes", s.artifact->code.size()},
          {"live", use.live},
          {"blocks", std::move(blocks)}};
}

Json timeline_json(const Subject& s, const DocumentOptions& options) {
  if (!s.trace) return nullptr;
  const RunTrace& trace = *s.trace;
  std::vector<PartTime> parts = trace.parts;
  const bool merged = parts.size() > options.timeline_parts;
  std::vector<int64_t> busy;  // of merged parts
  if (merged) {
    std::map<std::pair<int, int>, size_t> at;
    std::vector<PartTime> whole;
    for (const PartTime& p : parts) {
      const auto [i, fresh] = at.emplace(std::pair(p.launch, p.worker), whole.size());
      if (fresh) whole.push_back(p), busy.push_back(0);
      whole[i->second].end_ns = std::max(whole[i->second].end_ns, p.end_ns);
      busy[i->second] += p.end_ns - p.begin_ns;
    }
    parts = std::move(whole);
  }
  Json rows = Json::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartTime& p = parts[i];
    Json row{p.launch, p.worker, p.part, p.begin_ns, p.end_ns};
    if (merged) row.push_back(busy[i]);
    rows.push_back(std::move(row));
  }
  return {{"total_ns", trace.total_ns},           {"threads", trace.threads}, {"merged", merged},
          {"recorded_parts", trace.parts.size()}, {"parts", std::move(rows)}, {"launch_ns", trace.launch_ns}};
}

Json proof_json(const Comparison& proof) {
  Json outputs = Json::array();
  for (const OutputComparison& o : proof.outputs)
    outputs.push_back({{"name", o.name},
                       {"max_abs", o.difference.max_abs},
                       {"relative", o.difference.relative()},
                       {"conditioning", o.conditioning},
                       {"same_as_groups", o.same_as_groups},
                       {"change_by_other_input", o.change},
                       {"ok", o.ok}});
  return {{"ok", proof.ok()}, {"groups", proof.groups.size()}, {"outputs", std::move(outputs)}};
}

Json model_json(const Subject& s, const DocumentOptions& options) {
  Json out{{"name", s.name},
           {"kind", s.compilation ? "model" : "opf"},
           {"source",
            {{"name", s.artifact->model_name}, {"hash", s.artifact->model_hash}, {"producer", s.artifact->producer}}},
           {"target", s.artifact->target},
           {"dims", s.dims},
           {"seed", s.seed},
           {"fused", s.compilation ? Json(s.compilation->options.fused) : Json()},
           {"work", s.work ? work_json(*s.work) : Json()},
           {"notes", notes_of(s)},
           {"not_measured", s.not_measured},
           {"no_texts", s.no_texts},
           {"no_graph", s.views.missing},
           {"units", units_json(s.views.units)}};
  out["before"] = s.views.before.nodes.empty() ? Json() : graph_json(s.views.before, s.views.units);
  out["after"] = s.views.after.nodes.empty() ? Json() : graph_json(s.views.after, s.views.units);
  Json texts = Json::array();
  out["launches"] = launches_json(s, texts);
  out["texts"] = std::move(texts);
  out["profile"] = s.profile ? profile_json(*s.profile) : Json();
  out["missed"] = missed_json(s);
  out["memory"] = memory_json(s);
  out["timeline"] = timeline_json(s, options);
  out["proof"] = s.proof ? proof_json(*s.proof) : Json();
  return out;
}

}  // namespace opfuse::report
