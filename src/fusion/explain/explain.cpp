// Explanations. A near match is an attempt that stopped at a condition (readers, constants, predicates) rather than at
// another operator: there the user can do something.
#include "fusion/explain/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "match/anchor_ops.hpp"

namespace opfuse {

namespace {

Remark remark_of(const Candidate& c) {
  Remark r{.kind = c.apply ? "passed" : "missed",
           .rule = c.pattern,
           .anchor = c.id.substr(c.id.find('@') + 1),
           .nodes = c.nodes,
           .matched = c.nodes.size(),
           .of = c.nodes.size(),
           .bytes_saved = c.bytes_saved};
  if (c.apply) {
    r.code = "fused";
    r.message = fmt::format("{} of {} nodes", c.label, c.nodes.size());
    if (!c.epilogue.empty()) r.message += fmt::format(", {} appended as epilogue", fmt::join(c.epilogue, ", "));
    r.evidence = c.notes;
  } else if (c.decline) {
    r.code = c.decline->code, r.message = c.decline->message, r.evidence = c.decline->evidence;
  } else {
    r.code = "switched_off", r.message = "apply is false in the plan";
  }
  return r;
}

Remark remark_of(const FusionPattern& pattern, const PartialMatch& p, const std::string& anchor) {
  Remark r{.kind = "missed",
           .rule = pattern.name,
           .anchor = anchor,
           .code = p.decline.code,
           .message = p.decline.message,
           .evidence = p.decline.evidence,
           .matched = std::min(p.matched, p.of),
           .of = p.of};
  for (const TraceLine& line : p.trace)
    if (line.found != "-") r.nodes.push_back(line.found);
  return r;
}

Remark remark_of(const EdgeVerdict& e) {
  if (e.group.empty() && e.decline.code.empty())  // shaping joined the two, or one of them is a place in memory
    return {.kind = "passed",
            .rule = "edge",
            .anchor = e.producer + " -> " + e.consumer,
            .code = e.executed,
            .message = fmt::format("{}: {}", e.executed, e.by),
            .nodes = {e.producer, e.consumer}};
  return {.kind = e.group.empty() ? "analysis" : "passed",
          .rule = "edge",
          .anchor = e.producer + " -> " + e.consumer,
          .code = e.group.empty() ? e.decline.code : "fused",
          .message = e.group.empty() ? e.decline.message : "inside " + e.group,
          .nodes = {e.producer, e.consumer},
          .evidence = e.decline.evidence};
}

bool near_match(const PartialMatch& p) {
  return p.matched >= 2 && p.of >= 2 && p.decline.code != "op_mismatch" && p.decline.code != "not_a_stem" &&
         p.decline.code != "absent_operand" && p.decline.code != "constant_operand";
}

std::vector<Remark> near_matches(const Graph& graph, const FusionPlan& plan,
                                 const std::vector<FusionPattern>& patterns) {
  const Grouping grouping(graph);
  std::unordered_set<std::string> planned;
  std::unordered_map<std::string, size_t> grouped;  // node that a pattern took -> how many it took in that group
  for (const Candidate& c : plan.candidates) {
    planned.insert(c.id);
    if (!c.apply || !c.named) continue;
    const std::set<std::string> appended(c.epilogue.begin(), c.epilogue.end());
    for (const std::string& name : c.nodes)
      if (!appended.contains(name)) grouped[name] = c.nodes.size() - appended.size();
  }
  std::vector<AnchorOps> anchors;
  for (const FusionPattern& p : patterns) anchors.push_back(anchor_ops(p.topology));
  std::vector<Remark> list;
  for (Node* node : graph.nodes())
    for (size_t i = 0; i < patterns.size(); ++i) {
      const FusionPattern& p = patterns[i];
      const std::string& anchor = grouping.names().of(node);
      if (!may_end_at(anchors[i], *node) || planned.contains(p.name + "@" + anchor)) continue;
      const MatchResult scan = grouping.matcher().match(p.topology, node, p.where, Detail::codes);
      if (scan || !near_match(scan.partial)) continue;
      const auto held = grouped.find(anchor);  // a pattern took as many here: this one would save nothing
      if (held != grouped.end() && held->second >= scan.partial.of) continue;
      const MatchResult result = grouping.matcher().match(p.topology, node, p.where);
      list.push_back(remark_of(p, result.partial, anchor));
      if (result.partial.at) list.back().bytes_saved = 2 * value_bytes(*result.partial.at->output(), {});
    }
  return list;
}

void by_bytes(std::vector<Remark>& remarks) {
  std::stable_sort(remarks.begin(), remarks.end(),
                   [](const Remark& a, const Remark& b) { return a.bytes_saved > b.bytes_saved; });
}

Node* node_named(const Grouping& grouping, const std::string& name) {
  if (Node* node = grouping.names().find(name)) return node;
  std::vector<std::string> known;
  for (Node* node : grouping.graph().nodes()) {
    // A source name inside a composite or converted node is as good.
    for (const Source& s : node->sources)
      if (s.name == name) return node;
    known.push_back(grouping.names().of(node));
  }
  throw fail(E::unknown_name, "there is no node \"{}\"", name).hint(did_you_mean(name, known));
}

std::string bytes_text(int64_t bytes) {
  if (bytes >= 1000000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return bytes >= 1000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3) : fmt::format("{} B", bytes);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::vector<Remark> passed(const FusionPlan& plan) {
  std::vector<Remark> list;
  for (const Candidate* c : plan.applied()) list.push_back(remark_of(*c));
  return list;
}

std::vector<Remark> missed(const Graph& graph, const FusionPlan& plan, const std::vector<FusionPattern>& patterns) {
  std::vector<Remark> list;
  for (const Candidate* c : plan.missed()) list.push_back(remark_of(*c));
  by_bytes(list);
  std::vector<Remark> near = near_matches(graph, plan, patterns);
  by_bytes(near);
  list.insert(list.end(), near.begin(), near.end());
  for (const EdgeVerdict& e : plan.edges)
    if (e.group.empty() && !e.decline.code.empty()) list.push_back(remark_of(e));
  return list;
}

std::vector<Remark> about_node(const Graph& graph, const FusionPlan& plan, const std::string& name,
                               const std::vector<FusionPattern>& patterns) {
  const Grouping grouping(graph);
  Node* node = node_named(grouping, name);
  const std::string& unique = grouping.names().of(node);
  std::vector<Remark> list, tried;
  for (const Candidate& c : plan.candidates)
    if (std::find(c.nodes.begin(), c.nodes.end(), unique) != c.nodes.end()) list.push_back(remark_of(c));
  std::stable_sort(list.begin(), list.end(),
                   [](const Remark& a, const Remark& b) { return a.kind == "passed" && b.kind != "passed"; });
  for (const FusionPattern& p : patterns) {
    if (plan.find(p.name + "@" + unique)) continue;
    const MatchResult result = grouping.matcher().match(p.topology, node, p.where);
    if (!result) tried.push_back(remark_of(p, result.partial, unique));
  }
  std::stable_sort(tried.begin(), tried.end(), [](const Remark& a, const Remark& b) { return a.matched > b.matched; });
  list.insert(list.end(), tried.begin(), tried.end());
  for (const EdgeVerdict& e : plan.edges)
    if (e.producer == unique || e.consumer == unique) list.push_back(remark_of(e));
  return list;
}

std::string remarks_text(const std::vector<Remark>& remarks) {
  std::string text;
  for (const Remark& r : remarks) {
    const std::string saving = r.bytes_saved > 0 ? fmt::format("   {} {}", r.kind == "passed" ? "saves" : "would save",
                                                               bytes_text(r.bytes_saved))
                                                 : "";
    text += fmt::format("{:<8} {} at {}   {}{}\n", upper(r.kind), r.rule, r.anchor, r.code, saving);
    if (r.kind == "missed" && r.of > 0)
      text += fmt::format("  matched {} of {} nodes; {}\n", r.matched, r.of, r.message);
    else
      text += "  " + r.message + "\n";
    for (const std::string& e : r.evidence) text += "    " + e + "\n";
  }
  return text;
}

std::string remarks_json(const std::vector<Remark>& remarks) {
  nlohmann::ordered_json j{{"schema", "opfuse.explain/1"}, {"remarks", nlohmann::ordered_json::array()}};
  for (const Remark& r : remarks)
    j["remarks"].push_back({{"kind", r.kind},
                            {"rule", r.rule},
                            {"anchor", r.anchor},
                            {"nodes", r.nodes},
                            {"matched", r.matched},
                            {"of", r.of},
                            {"code", r.code},
                            {"message", r.message},
                            {"evidence", r.evidence},
                            {"est_bytes_saved", r.bytes_saved}});
  return j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string explain_node(const Graph& graph, const std::string& name, const std::vector<FusionPattern>& patterns) {
  const Grouping grouping(graph);
  Node* node = node_named(grouping, name);
  std::string text;
  for (const FusionPattern& p : patterns) {
    const MatchResult result = grouping.matcher().match(p.topology, node, p.where);
    text += p.name + "  " + explain(p.topology, result) + "\n";
  }
  return text;
}

}  // namespace opfuse
