// The table of compounds, and how they lie in a plan. Pictures (L: Linear; x read by both where it stands twice):
//   LinearAdd       L -- [reshape, transpose]* -- + residual       GatedMLP        x -- L -- act -- * -- y
//   AddLayerNorm    a + b -- LayerNorm                                             x -- L ----------'
//   LayerScaleAdd   x * gamma[c] -- + residual                     SiblingLinears  x -- L, x -- L, ...
//   NormLinear      LayerNorm -- L                                 ConvElementwise conv -- [bn] -- elementwise ...
//   SqueezeExcite   x -- mean -- conv -- act -- conv -- sigmoid -- * x
#include "fusion/compounds.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fusion/names.hpp"
#include "fusion/node_kind.hpp"
#include "ir/outline.hpp"
#include "match/activation.hpp"
#include "ops/registry.hpp"

namespace opfuse {

namespace {

Pattern moved() { return repeat(any_op({"reshape", "transpose", "flatten", "squeeze", "unsqueeze"}), 0, 4); }

/// A Linear of `x`.
Pattern linear_of(const Pattern& x) {
  return one_of({x >> op("gemm").with(constant(), maybe(constant())),
                 x >> op("matmul").with(constant()) >> maybe(op("add").with(constant()))});
}

/// A 1x1 convolution or a Linear, as squeeze-and-excitation has them.
Pattern squeezed(const Pattern& x) {
  return one_of({x >> op("conv").with(constant(), maybe(constant())) >> maybe(op("batch_norm")), linear_of(x)});
}

std::vector<std::string> elementwise_names() {
  std::vector<std::string> names{"relu6",      "gelu",         "silu", "mish",      "quick_gelu",
                                 "hard_swish", "hard_sigmoid", "elu",  "leaky_relu"};
  for (const OpInfo* info : ops().all())
    if (info->kind == OpKind::elementwise && std::find(names.begin(), names.end(), info->name) == names.end())
      names.push_back(info->name);
  return names;
}

MatchPredicate per_channel() {
  return {"one factor per channel", [](const Match& m) -> std::optional<Decline> {
            const Tensor& gamma = *m.value("gamma")->constant;
            const auto wide =
                std::count_if(gamma.sizes().begin(), gamma.sizes().end(), [](int64_t d) { return d > 1; });
            if (wide == 1) return std::nullopt;
            return Decline{
                "constant_mismatch", "the factor is no vector", {fmt::format("{} axes are longer than 1", wide)}};
          }};
}

}  // namespace

const std::vector<CompoundPattern>& compound_patterns() {
  static const std::vector<CompoundPattern> kAll = [] {
    const Pattern x = any("x");
    const Pattern gate = any_op({"sigmoid", "hard_sigmoid"});
    return std::vector<CompoundPattern>{
        {"LinearAdd", "A Linear and the residual added to it.",
         linear_of(tensor()) >> moved() >> op("add", "sum").with(tensor("residual"))},
        {"AddLayerNorm", "A residual addition and the norm of the sum; others may read the sum.",
         tensor() >> op("add", "sum").with(tensor("residual")).shared() >> any_op({"layer_norm", "rms_norm"}, "norm")},
        {"LayerScaleAdd",
         "A factor per channel and the residual added to the product.",
         tensor() >> op("mul", "scale").with(constant("gamma")) >> op("add", "sum").with(tensor("residual")),
         {per_channel()}},
        {"SqueezeExcite", "Channels weighted by a gate computed from their means.",
         squeezed(squeezed(x >> any_op({"global_average_pool", "reduce_mean"}) >> moved()) >> activation()) >> gate >>
             moved() >> op("mul", "weighted").with(x)},
        {"NormLinear", "A norm and the Linear that reads it; others may read the norm.",
         linear_of(tensor() >> any_op({"layer_norm", "rms_norm"}, "norm").shared())},
        {"GatedMLP", "Two Linears of one value, one through an activation, multiplied (SwiGLU, GEGLU).",
         linear_of(x) >> one_of({activation(), op("sigmoid")}) >> op("mul", "gated").with(linear_of(x))},
        {"ConvElementwise", "A convolution and every elementwise operator behind it.",
         conv_block() >> repeat(any_op(elementwise_names()), 1, 16)}};
  }();
  return kAll;
}

namespace {

using Nodes = std::vector<Node*>;

bool is_linear(const Node& node) {
  const Value* weight = node.is("gemm") || node.is("matmul") ? node.input(1) : nullptr;
  return weight && weight->is_constant() && weight->constant->rank() == 2;
}

/// Two or more Linears that read one value, each with its bias.
std::vector<Nodes> sibling_linears(const Graph& graph) {
  std::vector<Nodes> found;
  std::map<int, size_t> by_source;  // value id -> index
  for (Node* node : graph.nodes()) {
    if (!is_linear(*node)) continue;
    const auto [at, fresh] = by_source.emplace(node->input(0)->id, found.size());
    if (fresh) found.emplace_back();
    found[at->second].push_back(node);
    const Value* y = node->output();
    Node* reader = graph.read_count(y) == 1 && !y->uses.empty() ? y->uses.front().node : nullptr;
    if (reader && reader->is("add") && reader->inputs[1 - y->uses.front().index]->is_constant())
      found[at->second].push_back(reader);
  }
  std::erase_if(found, [](const Nodes& nodes) {
    return std::count_if(nodes.begin(), nodes.end(), [](const Node* n) { return is_linear(*n); }) < 2;
  });
  return found;
}

/// Those that are not part of another one.
std::vector<Nodes> largest(std::vector<Nodes> all) {
  const auto within = [](const Nodes& a, const Nodes& b) {
    return a.size() < b.size() &&
           std::all_of(a.begin(), a.end(), [&](const Node* n) { return std::find(b.begin(), b.end(), n) != b.end(); });
  };
  std::vector<Nodes> kept;
  for (const Nodes& nodes : all)
    if (std::none_of(all.begin(), all.end(), [&](const Nodes& other) { return within(nodes, other); }))
      kept.push_back(nodes);
  return kept;
}

std::vector<Nodes> matches(const Graph& graph, const Matcher& matcher, const CompoundPattern& pattern) {
  std::vector<Nodes> found;
  for (Node* node : graph.nodes())
    if (MatchResult r = matcher.match(pattern.topology, node, pattern.where)) found.push_back(r.match->nodes);
  return largest(std::move(found));
}

/// Where nodes lie in a plan.
class Places {
 public:
  Places(const Graph& graph, const FusionPlan& plan) : names_(graph), plan_(plan) {
    for (const Candidate* c : plan.applied())
      for (const std::string& node : c->nodes) group_[node] = c->id;
  }

  Compound compound(std::string name, const Nodes& nodes) const {
    Compound c{std::move(name), {}, {}, std::nullopt};
    for (const Node* node : nodes) c.nodes.push_back(names_.of(node));
    for (const std::string& node : c.nodes)
      if (const std::string& group = group_of(node);
          std::find(c.groups.begin(), c.groups.end(), group) == c.groups.end())
        c.groups.push_back(group);
    if (c.groups.size() > 1) c.reason = between(c);
    return c;
  }

 private:
  const std::string& group_of(const std::string& node) const {
    const auto at = group_.find(node);
    return at == group_.end() ? node : at->second;
  }
  Decline between(const Compound& c) const {
    const auto inside = [&](const std::string& node) {
      return std::find(c.nodes.begin(), c.nodes.end(), node) != c.nodes.end();
    };
    for (const EdgeVerdict& edge : plan_.edges)
      if (inside(edge.producer) && inside(edge.consumer) && group_of(edge.producer) != group_of(edge.consumer))
        return edge.decline;
    return {"no_edge", "no value goes from one to the other", {}};
  }
  NodeNames names_;
  const FusionPlan& plan_;
  std::map<std::string, std::string> group_;
};

}  // namespace

std::vector<Compound> compounds(const Graph& graph, const FusionPlan& plan) {
  const Matcher matcher(graph);
  const Places places(graph, plan);
  std::vector<std::pair<size_t, Compound>> found;
  const auto add = [&](const std::string& name, const std::vector<Nodes>& all) {
    for (const Nodes& nodes : all) found.emplace_back(matcher.position(nodes.back()), places.compound(name, nodes));
  };
  for (const CompoundPattern& pattern : compound_patterns()) add(pattern.name, matches(graph, matcher, pattern));
  add(kSiblingLinears, sibling_linears(graph));
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Compound> result;
  for (auto& [position, compound] : found) result.push_back(std::move(compound));
  return result;
}

std::vector<Remark> compound_remarks(const Graph& graph, const FusionPlan& plan) {
  std::vector<Remark> remarks;
  for (const Compound& c : compounds(graph, plan)) {
    Remark r;
    r.kind = "compound";
    r.rule = c.name;
    r.anchor = c.nodes.back();
    r.code = c.reason ? c.reason->code : "one_group";
    r.message = c.reason ? fmt::format("{} groups: {}", c.groups.size(), c.reason->message) : "one group";
    r.nodes = c.nodes;
    r.evidence = c.groups;
    remarks.push_back(std::move(r));
  }
  return remarks;
}

}  // namespace opfuse
