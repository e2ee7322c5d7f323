// A tensor between two units costs its store and a load per reader; the reason is the ledger's for that edge. Edges
// whose ends came together after planning (chains, siblings) cost nothing and are left out. Declined candidates and
// near matches name what they would save, pairs that stayed two launches the map between them.
#include "report/missed_rows.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fusion/grouping.hpp"

namespace opfuse::report {
namespace {

/// Verdicts that an option of the command line changes.
struct Remedy {
  const char* code;
  const char* command;
};
constexpr Remedy kRemedies[] = {
    {"too_large", "opfuse fuse MODEL --max-group-nodes 256 -o fused.onnx"},
    {"switched_off", "opfuse fuse MODEL --plan-out plan.json --dry-run"},
};

std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void add_command(MissedRow& row) {
  for (const Remedy& remedy : kRemedies)
    if (row.code == remedy.code) {
      row.command = remedy.command, row.changes = true;
      return;
    }
  if (!row.nodes.empty()) row.command = "opfuse explain MODEL --node " + shell_quoted(row.nodes.back());
}

std::map<std::string, int> unit_by_name(const Views& views) {
  std::map<std::string, int> units;
  for (size_t u = 0; u < views.units.size(); ++u)
    for (const std::string& source : views.units[u].sources) units.emplace(source, static_cast<int>(u));
  return units;
}

std::vector<MissedRow> tensor_rows(const Compilation& c, const Views& views) {
  const std::map<std::string, int> units = unit_by_name(views);
  std::map<std::string, const Value*> values;
  for (const Value* value : c.prepared.values()) values.emplace(value->name, value);
  const auto unit = [&](const std::string& node) {
    const auto at = units.find(node);
    return at == units.end() ? -1 : at->second;
  };
  std::vector<MissedRow> rows;
  std::map<std::string, size_t> row_of;
  std::map<std::string, std::set<int>> readers;
  for (const EdgeVerdict& edge : c.plan.edges) {
    const int from = unit(edge.producer), to = unit(edge.consumer);
    if (!edge.group.empty() || (from == to && from >= 0)) continue;
    const bool moves = from >= 0 && to >= 0 && !views.units[static_cast<size_t>(from)].launches.empty() &&
                       !views.units[static_cast<size_t>(to)].launches.empty();
    const auto value = values.find(edge.tensor);
    const int64_t bytes = value == values.end() || !moves ? 0 : value_bytes(*value->second, {});
    const auto [at, fresh] = row_of.emplace(edge.tensor, rows.size());
    if (fresh)
      rows.push_back({"tensor",
                      edge.tensor,
                      {edge.producer},
                      edge.decline.code,
                      edge.decline.message,
                      edge.decline.evidence,
                      bytes,
                      "",
                      false});
    MissedRow& row = rows[at->second];
    row.nodes.push_back(edge.consumer);
    if (readers[edge.tensor].insert(to).second) row.bytes += bytes;
    if (!fresh)
      row.evidence.push_back(fmt::format("{}: {}: {}", edge.consumer, edge.decline.code, edge.decline.message));
  }
  return rows;
}

}  // namespace

std::vector<MissedRow> missed_rows(const Compilation& c, const std::vector<Remark>& remarks, const Views& views) {
  std::vector<MissedRow> rows = tensor_rows(c, views);
  for (const Remark& r : remarks)
    if (r.kind == "missed")
      rows.push_back({r.of > r.matched ? "near" : "candidate", r.rule + " at " + r.anchor, r.nodes, r.code, r.message,
                      r.evidence, r.bytes_saved, "", false});
  for (const ShapeVerdict& v : c.verdicts)
    if (v.refused)
      rows.push_back({"launches", fmt::format("{}: {}", v.pass, fmt::join(v.nodes, ", ")), v.sources, v.refused->code,
                      v.refused->message, v.refused->evidence, 2 * v.number("bytes"), "", false});
  for (MissedRow& row : rows) add_command(row);
  std::stable_sort(rows.begin(), rows.end(), [](const MissedRow& a, const MissedRow& b) { return a.bytes > b.bytes; });
  return rows;
}

}  // namespace opfuse::report
