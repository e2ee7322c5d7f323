// The table of compounds, and how they lie in a plan. Pictures (L: Linear; x read by both where it stands twice):
//   LinearAdd       L -- [reshape, transpose]* -- + residual       GatedMLP        x -- L -- act -- * -- y
//   AddLayerNorm    a + b -- LayerNorm                                             x -- L ----------'
//   LayerScaleAdd   x * gamma[c] -- + residual                     SiblingLinears  x -- L, x -- L, ...
//   NormLinear      LayerNorm -- L                                 ConvElementwise conv -- [bn] -- elementwise ...
//   SqueezeExcite   x -- mean -- conv -- act -- conv -- sigmoid -- * x
#include "fusion/explain/compounds.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "fusion/grouping.hpp"
#include "fusion/names.hpp"
#include "fusion/node_kind.hpp"
#include "ir/outline.hpp"
#include "match/activation.hpp"
#include "match/attention.hpp"
#include "ops/gemm.hpp"
#include "ops/reduce.hpp"
#include "ops/registry.hpp"
#include "passes/linear_product.hpp"

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

/// The axes a mean is taken over: those behind the channels, of images with the channels second or last.
std::optional<Decline> over_pixels(const Node& mean) {
  const Shape& x = mean.input(0)->type.shape;
  if (!x.ranked || x.rank() < 3 || (mean.input(1) && !mean.input(1)->is_constant()))
    return Decline{"axes", "no constant axes of images", {mean.name()}};
  std::vector<int64_t> operand;
  if (mean.input(1)) operand = mean.input(1)->constant->to_i64();
  const std::vector<int64_t> axes = reduced_axes(mean.as<ReduceMean>(), mean.input(1) ? &operand : nullptr, x.rank());
  bool pixels = axes.size() == x.rank() - 2 && (axes.front() == 1 || axes.front() == 2);
  for (size_t i = 0; pixels && i < axes.size(); ++i) pixels = axes[i] == axes.front() + static_cast<int64_t>(i);
  if (pixels) return std::nullopt;
  return Decline{"axes", fmt::format("it reduces axes {} of {}", text_of(AttrValue(axes)), x.text()), {mean.name()}};
}

MatchPredicate per_channel() {
  return {"one factor per channel", [](const Match& m) -> std::optional<Decline> {
            const Tensor& gamma = *m.value("gamma")->constant;
            const auto wide =
                std::count_if(gamma.sizes().begin(), gamma.sizes().end(), [](int64_t d) { return d > 1; });
            if (wide == 1) return std::nullopt;
            return Decline{
                "constant_mismatch", "the factor is not a vector", {fmt::format("{} axes are longer than 1", wide)}};
          }};
}

}  // namespace

const std::vector<CompoundPattern>& compound_patterns() {
  static const std::vector<CompoundPattern> kAll = [] {
    const Pattern x = any("x");
    const Pattern gate = any_op({"sigmoid", "hard_sigmoid"});
    const Pattern mean = one_of({op("global_average_pool"), op("reduce_mean").where({"over pixels", over_pixels})});
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
         squeezed(squeezed(x >> mean >> moved()) >> activation()) >> gate >> moved() >> op("mul", "weighted").with(x)},
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

/// The addition of a constant to each row of a product, if that alone reads it.
Node* bias_of(const Node& product, int64_t out) {
  const Value* y = product.output();
  Node* add = y->only_reader();
  return add && row_bias(*add, y, out) ? add : nullptr;
}

/// The Linears of q, k and v in one module.
bool several_projections(const Node& node) { return operator_name(node) == kInProjection && node.outputs.size() > 1; }

/// Two or more Linears that read one value, each with its bias.
std::vector<Nodes> sibling_linears(const Graph& graph) {
  std::map<int, size_t> by_source;  // value id -> index
  std::vector<Nodes> found, products;
  for (Node* node : graph.nodes()) {
    if (several_projections(*node)) products.push_back({node}), found.push_back({node});
    if (!is_matrix_product(*node)) continue;
    const auto read = linear_product(*node, Weights::constant_or_dequantized);
    const auto* linear = std::get_if<LinearProduct>(&read);
    if (!linear || linear->x->is_constant()) continue;
    const auto [at, fresh] = by_source.emplace(linear->x->id, found.size());
    if (fresh) products.emplace_back(), found.emplace_back();
    products[at->second].push_back(node);
    found[at->second].push_back(node);
    if (Node* bias = linear->bias ? nullptr : bias_of(*node, linear->out)) found[at->second].push_back(bias);
  }
  std::vector<Nodes> siblings;
  for (size_t i = 0; i < found.size(); ++i) {
    if (products[i].size() < 2 && !several_projections(*products[i].front())) continue;
    std::sort(found[i].begin(), found[i].end(),
              [&](const Node* a, const Node* b) { return graph.position(a) < graph.position(b); });
    siblings.push_back(std::move(found[i]));
  }
  return siblings;
}

/// Those that are not part of another one.
std::vector<Nodes> largest(std::vector<Nodes> all) {
  const auto within = [](const Nodes& a, const Nodes& b) {
    return a.size() < b.size() &&
           std::all_of(a.begin(), a.end(), [&](const Node* n) { return std::find(b.begin(), b.end(), n) != b.end(); });
  };
  std::unordered_map<const Node*, std::vector<const Nodes*>> holders;
  for (const Nodes& nodes : all)
    for (const Node* n : nodes) holders[n].push_back(&nodes);
  std::vector<Nodes> kept;
  for (const Nodes& nodes : all) {
    const auto& others = holders[nodes.front()];
    if (std::none_of(others.begin(), others.end(), [&](const Nodes* other) { return within(nodes, *other); }))
      kept.push_back(nodes);
  }
  return kept;
}

std::vector<Nodes> matches(const Graph& graph, const Matcher& matcher, const CompoundPattern& pattern) {
  std::vector<Nodes> found;
  for (Node* node : graph.nodes())
    if (MatchResult r = matcher.match(pattern.topology, node, pattern.where, Detail::codes))
      found.push_back(r.match->nodes);
  return largest(std::move(found));
}

/// Where nodes lie in a plan.
class Places {
 public:
  Places(const Graph& graph, const FusionPlan& plan) : names_(graph), plan_(plan) {
    for (const Candidate* c : plan.applied())
      for (const std::string& node : c->nodes) group_[node] = c->id;
    for (size_t i = 0; i < plan.edges.size(); ++i) edges_from_.emplace(plan.edges[i].producer, i);
  }

  Compound compound(std::string name, const Nodes& nodes) const {
    Compound c{std::move(name), {}, {}, std::nullopt};
    for (const Node* node : nodes) c.nodes.push_back(names_.of(node));
    std::unordered_set<std::string_view> groups;
    for (const std::string& node : c.nodes)
      if (const std::string& group = group_of(node); groups.insert(group).second) c.groups.push_back(group);
    if (c.groups.size() > 1) c.reason = between(c);
    return c;
  }

 private:
  const std::string& group_of(const std::string& node) const {
    const auto at = group_.find(node);
    return at == group_.end() ? node : at->second;
  }
  Decline between(const Compound& c) const {
    const std::unordered_set<std::string_view> inside(c.nodes.begin(), c.nodes.end());
    size_t first = plan_.edges.size();
    for (const std::string& node : c.nodes) {
      const auto [from, to] = edges_from_.equal_range(node);
      for (auto it = from; it != to; ++it)
        if (const EdgeVerdict& edge = plan_.edges[it->second];
            inside.contains(edge.consumer) && group_of(node) != group_of(edge.consumer))
          first = std::min(first, it->second);
    }
    if (first < plan_.edges.size()) return plan_.edges[first].decline;
    return {"no_edge", "no value goes from one to the other", {}};
  }
  NodeNames names_;
  const FusionPlan& plan_;
  std::map<std::string, std::string> group_;
  std::multimap<std::string, size_t> edges_from_;  // producer -> numbers of the plan's edges
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

namespace {

/// What became of the Linears whose results these nodes have: merged, or the reasons why not.
void tell_siblings(Remark& remark, const std::vector<Node*>& nodes, const std::vector<ShapeVerdict>& shaping) {
  std::unordered_set<std::string> results;
  for (const Node* node : nodes)
    for (const Value* v : node->outputs) results.insert(value_name(*v));
  const auto among = [&](const std::string& result) { return results.contains(result); };
  std::vector<std::string> parts;
  for (const ShapeVerdict& s : of_pass(shaping, "merge-siblings")) {
    if (!std::all_of(s.nodes.begin(), s.nodes.end(), among)) continue;
    if (parts.empty() || !s.refused) remark.code = s.refused ? s.refused->code : "one_product";
    parts.push_back(s.refused
                        ? fmt::format("{} apart, {}: {}", fmt::join(s.nodes, ", "), s.refused->code, s.refused->message)
                        : fmt::format("{} Linears run as one product", s.nodes.size()));
  }
  if (!parts.empty()) remark.message = fmt::format("{}", fmt::join(parts, "; "));
}

/// Two groups of a gated MLP that become one launch, or why not.
void tell_gate(Remark& remark, const std::vector<Node*>& nodes, const std::vector<ShapeVerdict>& shaping) {
  for (const ShapeVerdict& gate : of_pass(shaping, "join-gates")) {
    const bool here = std::any_of(nodes.begin(), nodes.end(),
                                  [&](const Node* node) { return value_name(*node->output()) == gate.value; });
    if (!here) continue;
    remark.code = gate.refused ? gate.refused->code : "one_launch";
    remark.message = gate.refused ? fmt::format("2 groups, two launches: {}", gate.refused->message)
                                  : "2 groups run as one launch: a product of two sums";
  }
}

/// What one kernel of both would save and repeat.
std::string prologue_cost(const std::vector<Node*>& nodes, const TargetInfo& target) {
  const auto product = std::find_if(nodes.begin(), nodes.end(), [](const Node* n) { return is_matrix_product(*n); });
  const auto read =
      product == nodes.end() ? std::variant<LinearProduct, Decline>(Decline{}) : linear_product(**product);
  if (!std::holds_alternative<LinearProduct>(read)) return {};
  const LinearProduct& linear = std::get<LinearProduct>(read);
  const auto bytes = static_cast<double>(value_bytes(*linear.x, {}));
  const auto products = static_cast<double>(target.fma_units * target.lanes_f32()) / (target.fma ? 1 : 2);  // a cycle
  const double share = 2 * sizeof(float) / target.rates.maps / (static_cast<double>(linear.out) / products);
  return fmt::format(
      "; one kernel would spare {:.2f} MB of stores and loads, at most {:.1f} % of the product's time with vectors of "
      "{}, and normalise rows of {} again for each tile of the {} columns",
      2e-6 * bytes, 100 * share, target.lanes_f32(), linear.in, linear.out);
}

}  // namespace

std::vector<Remark> compound_remarks(const Graph& graph, const FusionPlan& plan,
                                     const std::vector<ShapeVerdict>* shaping, const TargetInfo* cpu) {
  const NodeNames names(graph);
  std::vector<Remark> remarks;
  for (const Compound& c : compounds(graph, plan)) {
    std::vector<Node*> nodes;
    for (const std::string& name : c.nodes) nodes.push_back(names.find(name));
    Remark r;
    r.kind = "compound";
    r.rule = c.name;
    r.anchor = c.nodes.back();
    r.code = c.reason ? c.reason->code : "one_group";
    r.message = c.reason ? fmt::format("{} groups: {}", c.groups.size(), c.reason->message) : "one group";
    if (c.name == "NormLinear" && c.reason && cpu) r.message += prologue_cost(nodes, *cpu);
    if (c.name == kSiblingLinears && shaping) tell_siblings(r, nodes, *shaping);
    if (c.name == kSiblingLinears && !shaping) {
      r.code = "cpu_only";
      r.message = "each runs by itself; Linears of one value become one product on CPUs only";
    }
    if (c.name == "GatedMLP" && shaping) tell_gate(r, nodes, *shaping);
    if (c.name == "GatedMLP" && !shaping && c.reason) {
      r.code = "cpu_only";
      r.message = "2 groups, a kernel each; the two products become one launch on CPUs only";
    }
    r.nodes = c.nodes;
    r.evidence = c.groups;
    remarks.push_back(std::move(r));
  }
  return remarks;
}

}  // namespace opfuse
