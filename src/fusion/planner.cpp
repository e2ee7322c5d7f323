// Choosing among matches. Anchors are visited last first, so the longest suffix is seen; at one anchor the match with
// most nodes wins, then list order. Explicit priorities come before all of that. A match that may not be applied is
// kept with its reason: overlap (nodes and reads), legality for the target, or a cycle with groups already chosen.
#include "fusion/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/neighbours.hpp"
#include "ir/outline.hpp"

namespace opfuse {

namespace {

const std::vector<FusionPattern>& patterns_of(const PlanOptions& options) {
  return options.patterns ? *options.patterns : fusion_patterns();
}

std::string pattern_part(const std::string& selector) { return selector.substr(0, selector.find('@')); }

bool selects(const std::string& selector, const std::string& pattern, const std::string& node) {
  const size_t at = selector.find('@');
  return pattern_part(selector) == pattern && (at == std::string::npos || selector.substr(at + 1) == node);
}

bool any_selects(const std::vector<std::string>& list, const std::string& pattern, const std::string& node) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& s) { return selects(s, pattern, node); });
}

struct Choice {
  const FusionPattern* pattern;
  Match match;
};

}  // namespace

Planner::Planner(const Graph& graph, const PlanOptions& opts) : grouping(graph), options(opts) {
  plan.model = model_hash(graph);
  plan.target = opts.target;
}

void Planner::check_selectors() const {
  std::vector<std::string> known = rule_names();
  for (const FusionPattern& p : patterns_of(options)) known.push_back(p.name);
  for (const auto* list : {&options.only, &options.skip})
    for (const std::string& selector : *list) {
      const std::string name = pattern_part(selector);
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw fail(E::unknown_name, "there is no pattern \"{}\"", name).hint(did_you_mean(name, known));
      const size_t at = selector.find('@');
      if (at != std::string::npos && !grouping.names().find(selector.substr(at + 1)))
        throw fail(E::unknown_name, "there is no node \"{}\" for \"{}\"", selector.substr(at + 1), selector)
            .hint("nodes are named as `opfuse explain` prints them, after recomposition and conversion");
    }
  for (const NodePairs* pairs : {&options.no_fuse, &options.fuse})
    for (const auto& [a, b] : *pairs)
      for (const std::string& name : {a, b}) check_node(name);
}

void Planner::check_node(const std::string& name) const {
  if (grouping.names().find(name)) return;
  std::vector<std::string> known;
  for (const Node* node : grouping.graph().nodes()) known.push_back(grouping.names().of(node));
  throw fail(E::unknown_name, "there is no node \"{}\"", name).hint(did_you_mean(name, known));
}

bool Planner::enabled(const std::string& pattern, const std::string& node) const {
  if (any_selects(options.skip, pattern, node)) return false;
  return options.only.empty() || any_selects(options.only, pattern, node);
}

std::optional<Decline> Planner::refuse(const std::vector<Node*>& nodes, const std::string& label,
                                       const std::string& pattern, const std::vector<int>& ignoring) const {
  if (auto decline = refuse_place(nodes, ignoring)) return decline;
  return refuse_lowering(nodes, label, pattern);
}

std::optional<Decline> Planner::too_large(size_t nodes) const {
  if (nodes <= options.max_nodes) return std::nullopt;
  return Decline{
      "too_large", fmt::format("the group would have {} nodes, the limit is {}", nodes, options.max_nodes), {}};
}

std::optional<Decline> Planner::refuse_place(const std::vector<Node*>& nodes, const std::vector<int>& ignoring,
                                             bool convex) const {
  if (auto decline = too_large(nodes.size())) return decline;
  if (const size_t reads = external_reads(nodes).size(); reads > limit(&Limits::group_operands) && nodes.size() > 1)
    return Decline{"group_operands", fmt::format("the group would have {} operands", reads), {}};
  if (auto decline = grouping.overlap(nodes, ignoring)) return decline;
  if (auto decline = convex ? std::nullopt : grouping.convexity(nodes)) return decline;
  for (const auto& [a, b] : options.no_fuse) {
    const auto has = [&](const std::string& name) {
      return std::find(nodes.begin(), nodes.end(), grouping.names().find(name)) != nodes.end();
    };
    if (has(a) && has(b)) return Decline{"no_fuse", fmt::format("\"{}\" and \"{}\" are to stay apart", a, b), {a, b}};
  }
  return std::nullopt;
}

std::optional<Decline> Planner::refuse_lowering(const std::vector<Node*>& nodes, const std::string& label,
                                                const std::string& pattern) const {
  if (!options.legal) return std::nullopt;
  const OutlinedCopy copy = outline_copy(grouping.graph(), nodes, {fused_op(), label, pattern});
  return options.legal(*copy.node);
}

std::string Planner::unique_label(const std::string& module, const Node* root) {
  const std::string label = module + "__" + identifier(grouping.names().of(root));
  const int copy = ++labels_[label];
  return copy == 1 ? label : fmt::format("{}_{}", label, copy);
}

void Planner::describe_nodes(Candidate& c, const std::vector<Node*>& nodes) const {
  c.nodes.clear(), c.reads.clear(), c.results.clear();
  for (const Node* node : nodes) c.nodes.push_back(grouping.names().of(node));
  for (const Value* v : external_reads(nodes)) c.reads.push_back(value_name(*v));
  for (const Value* v : external_results(grouping.graph(), nodes)) c.results.push_back(value_name(*v));
  c.bytes_saved = grouping.bytes_saved(nodes, options.dims);
}

std::optional<Decline> Planner::closed(const Node* node) const {
  const int group = grouping.group_of(node);
  if (group < 0) return std::nullopt;
  const Candidate& c = plan.candidates[owner.at(group)];
  if (!c.named) return std::nullopt;
  for (const FusionPattern& p : patterns_of(options))
    if (p.closed && p.name == c.pattern)
      return Decline{
          "instruction",
          fmt::format("{} belongs to {}, an instruction that does this and nothing more", describe(*node), c.id),
          {c.id, "an instruction that does more than " + c.pattern}};
  return std::nullopt;
}

std::vector<Node*> Planner::nodes_named(const std::vector<std::string>& names) const {
  std::vector<Node*> nodes;
  for (const std::string& name : names) nodes.push_back(grouping.names().find(name));
  return nodes;
}

// Points resolve to tensors. Only real tensors carry Q/DQ, and a graph's own outputs do not.
static std::vector<QdqPoint> resolve_points(const Graph& graph, const FusionPattern& pattern, const Match& match) {
  std::vector<QdqPoint> points;
  for (const PointRule& rule : pattern.points) {
    const Value* v = match.anchor->output();
    if (const Node* node = match.node(rule.binding))
      v = rule.operand ? rule.operand(*node) : node->input(0);
    else if (!rule.binding.empty())
      v = match.value(rule.binding);
    if (!v || !is_float(v->type.dtype) || (rule.binding.empty() && graph.is_output(v))) continue;
    points.push_back({rule.point, value_name(*v)});
  }
  return points;
}

void Planner::enter(const FusionPattern& pattern, const Match& match, std::optional<Decline> decline) {
  Candidate c;
  c.id = pattern.name + "@" + grouping.names().of(match.anchor);
  c.pattern = pattern.name;
  c.module = pattern.module;
  describe_nodes(c, match.nodes);
  for (const auto& [name, bound] : match.bindings)
    c.bindings.emplace_back(name, bound.node ? grouping.names().of(bound.node) : value_name(*bound.value));
  c.points = resolve_points(grouping.graph(), pattern, match);
  c.notes = match.notes;
  c.apply = !decline;
  c.decline = std::move(decline);
  c.label = c.apply ? unique_label(pattern.module, match.node(pattern.root)) : "";
  if (c.apply) owner[grouping.accept(match.nodes)] = plan.candidates.size();
  plan.candidates.push_back(std::move(c));
}

static std::optional<Decline> unmet_need(const FusionPattern& pattern, const Match& match) {
  for (const MatchPredicate& need : pattern.needs)
    if (auto decline = need.test(match)) return Decline{"precondition", decline->message, decline->evidence};
  return std::nullopt;
}

void Planner::try_anchor(Node* anchor, int priority) {
  std::vector<Choice> choices;
  const std::vector<FusionPattern>& patterns = patterns_of(options);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const FusionPattern& p = patterns[i];
    if (p.priority != priority || !may_end_at(anchors_[i], *anchor)) continue;
    if (MatchResult r = grouping.matcher().match(p.topology, anchor, p.where, Detail::codes))
      choices.push_back({&p, std::move(*r.match)});
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.match.nodes.size() > b.match.nodes.size(); });
  for (const Choice& choice : choices) {
    const std::string& node = grouping.names().of(anchor);
    std::optional<Decline> decline;
    if (!enabled(choice.pattern->name, node))
      decline = Decline{"disabled", "switched off by --only or --skip", {}};
    else if (!(decline = unmet_need(*choice.pattern, choice.match)))
      decline = refuse_place(choice.match.nodes, {});
    std::optional<Decline> several;  // kernels
    if (!decline) several = refuse_lowering(choice.match.nodes, choice.pattern->module, choice.pattern->name);
    if (several && !choice.pattern->divisible) decline = several;
    if (decline && decline->code == "overlap")
      for (const Node* n : choice.match.nodes)
        if (const int g = grouping.group_of(n); g >= 0) {
          decline->message = fmt::format("{} belongs to {}", describe(*n), candidate_of(g));
          decline->evidence = {candidate_of(g)};
          break;
        }
    Match match = choice.match;
    if (several && !decline) match.notes.push_back("runs as several kernels: " + several->message);
    enter(*choice.pattern, match, std::move(decline));
  }
}

void Planner::match_named() {
  std::set<int, std::greater<>> priorities;
  for (const FusionPattern& p : patterns_of(options)) {
    priorities.insert(p.priority);
    anchors_.push_back(anchor_ops(p.topology));
  }
  for (int priority : priorities) {
    const auto& nodes = grouping.graph().nodes();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) try_anchor(*it, priority);
  }
}

FusionPlan Planner::run() {
  check_selectors();
  match_named();
  RuleEngine rules(*this);
  std::optional<Neighbours> neighbours;
  if (options.rules) rules.run();
  if (options.price) neighbours.emplace(*this, rules);
  if (options.rules && neighbours) neighbours->run();
  if (neighbours)
    for (const auto& [a, b] : options.fuse) neighbours->force(a, b);
  rules.label_groups();
  fill_ledger(*this, options.rules ? &rules : nullptr, options.rules && neighbours ? &*neighbours : nullptr);
  std::erase_if(plan.candidates, [](const Candidate& c) { return c.id.empty(); });  // merged into others
  auto position = [&](const Candidate& c) {
    return grouping.matcher().position(grouping.names().find(c.id.substr(c.id.find('@') + 1)));
  };
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return position(a) < position(b); });
  return std::move(plan);
}

void refill_ledger(const Graph& graph, FusionPlan& plan, const PlanOptions& options) {
  Planner planner(graph, options);
  planner.plan.candidates = plan.candidates;
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    if (!plan.candidates[i].apply) continue;
    std::vector<Node*> nodes = planner.nodes_named(plan.candidates[i].nodes);
    if (std::find(nodes.begin(), nodes.end(), nullptr) != nodes.end()) return;  // a stale plan: apply() says so
    planner.owner[planner.grouping.accept(nodes)] = i;
  }
  RuleEngine rules(planner);
  std::optional<Neighbours> neighbours;
  if (options.price) neighbours.emplace(planner, rules);
  fill_ledger(planner, &rules, neighbours ? &*neighbours : nullptr);
  plan.edges = std::move(planner.plan.edges);
}

FusionPlan make_plan(const Graph& graph, const PlanOptions& options) { return Planner(graph, options).run(); }

}  // namespace opfuse
