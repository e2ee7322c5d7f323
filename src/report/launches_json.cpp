// Launches with everything that is known of each: work and layouts from the artifact, types and algorithms from the
// program, times from the profile, errors from the proof.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/document.hpp"

namespace opfuse::report {
namespace {

Json type_names(const Launch& launch, const Program& program, ParamRole role) {
  std::set<std::string> names;
  for (size_t p = 0; p < launch.region.params.size(); ++p)
    if (launch.region.params[p].role == role) names.insert(std::string(name_of(launch.region.params[p].type.dtype)));
  if (launch.reference && role != ParamRole::constant) {
    for (int b : launch.buffers)
      if (b >= 0) names.insert(std::string(name_of(program.buffers[static_cast<size_t>(b)].type.dtype)));
  }
  return names;
}

Json precision_json(const Launch& launch, const Program& program) {
  return {{"inputs", type_names(launch, program, ParamRole::input)},
          {"constants", type_names(launch, program, ParamRole::constant)},
          {"outputs", type_names(launch, program, ParamRole::output)}};
}

Json algorithm_json(const Program& program, size_t launch) {
  for (const Algorithm& a : program.algorithms)
    if (a.launch == static_cast<int>(launch))
      return {{"name", a.name},
              {"reason", a.reason},
              {"error_of_max", a.error},
              {"predicted_of_direct", a.predicted},
              {"weight_growth", a.weight_growth}};
  return nullptr;
}

Json error_json(const Comparison& proof, const std::string& launch) {
  for (const GroupComparison& g : proof.groups)
    if (g.name == launch)
      return {{"max_abs", g.difference.max_abs},
              {"relative", g.difference.relative()},
              {"of_bound", g.real.of_bound},
              {"drawn_elements", g.exact.elements},
              {"drawn_outside", g.exact.outside},
              {"problem", g.problem},
              {"ok", g.ok}};
  return nullptr;
}

void add_time(Json& row, const LaunchProfile& profile, size_t launch) {
  const ProfiledLaunch& p = profile.rows[launch];
  row["ms"] = p.ms;
  row["share"] = p.ms / profile.sum_ms;
  row["share_of_roof"] = p.point.share;
  row["floor_ms"] = p.point.floor_seconds * 1e3;
  row["bound"] = p.point.memory_bound ? "memory" : "fma";
}

}  // namespace

Json launches_json(const Subject& s, Json& texts) {
  std::map<std::string, size_t> text_of;
  for (const KernelText& text : s.texts)
    if (text_of.emplace(text.symbol, texts.size()).second)
      texts.push_back({{"kernel", text.symbol}, {"bytes", text.text.size()}, {"packed", packed_text(text.text)}});
  std::vector<int> unit_of(s.runs->launches.size(), -1);
  for (size_t u = 0; u < s.views.units.size(); ++u)
    for (int l : s.views.units[u].launches) unit_of[static_cast<size_t>(l)] = static_cast<int>(u);
  Json rows = Json::array();
  for (size_t l = 0; l < s.runs->launches.size(); ++l) {
    const ArtifactLaunch& launch = s.runs->launches[l];
    Json row{{"name", launch.name},
             {"kernel", launch.symbol},
             {"pattern", launch.pattern},
             {"schedule", launch.schedule},
             {"products", launch.products},
             {"parts", launch.parts.evaluate(s.dims)},
             {"flop", launch.flops.evaluate(s.dims)},
             {"bytes_read", launch.bytes_read.evaluate(s.dims)},
             {"bytes_written", launch.bytes_written.evaluate(s.dims)},
             {"scratch_bytes", launch.scratch_bytes},
             {"unit", unit_of[l]},
             {"nodes", launch.sources},
             {"ms", nullptr}};
    if (s.profile) add_time(row, *s.profile, l);
    row["precision"] = s.program ? precision_json(s.program->launches[l], *s.program) : Json();
    row["algorithm"] = s.program ? algorithm_json(*s.program, l) : Json();
    row["error"] = s.proof ? error_json(*s.proof, launch.name) : Json();
    auto text = text_of.find(launch.symbol);
    if (text == text_of.end()) text = text_of.find(launch.name);
    row["text"] = text == text_of.end() ? Json() : Json(text->second);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace opfuse::report
