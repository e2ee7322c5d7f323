//     plan:  ConvBNAddReLU { INPUT x, RESIDUAL_INPUT r }          x --[Q DQ]-- Conv -- Add -- Relu
//                                                                 w --[Q DQ]---'      /
//                                                                 r --[Q DQ]----------
//
// One pair per tensor, shared by the readers that declared a point on it; other readers see the float tensor. A point
// on what a module gives (OUTPUT) is for all readers. A module is quantised as a whole or not at all.
#include "quantize/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "ir/value_name.hpp"
#include "match/pattern.hpp"
#include "match/qdq.hpp"
#include "ops/add.hpp"
#include "ops/clip.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/pool.hpp"
#include "ops/quantize.hpp"
#include "ops/relu.hpp"
#include "quantize/left_products.hpp"
#include "quantize/linear_size.hpp"
#include "quantize/presets.hpp"

namespace opfuse::quantization {
namespace {

bool contains(const std::vector<int>& list, int id) { return std::find(list.begin(), list.end(), id) != list.end(); }

/// Everything that --skip and --only may call a module by.
std::set<std::string> callable_by(const Candidate& c, const std::vector<const Node*>& nodes) {
  std::set<std::string> names{c.pattern, c.id, c.module, c.label};
  for (const std::string& node : c.nodes) names.insert({node, c.pattern + "@" + node});
  for (const Node* node : nodes) {
    names.emplace(operator_name(*node));
    for (const Source& source : node->sources) names.insert({source.name, source.op_type});
  }
  names.erase("");
  return names;
}

class Placer {
 public:
  Placer(const Graph& graph, const FusionPlan& plan, const PlacementRequest& request)
      : graph_(graph), plan_(plan), request_(request), grouping_(graph), names_(grouping_.names()) {
    for (const Value* value : graph.values()) values_[value_name(*value)] = value;
    for (const Node* node : graph.nodes())
      has_pairs_ = has_pairs_ || is_a<QuantizeLinear>(*node) || is_a<DequantizeLinear>(*node);
  }

  Placement run() {
    check_names();
    for (const Candidate* c : plan_.applied())
      if (!c->points.empty()) place_module(*c);
    for (LeftModule& left : left_products(graph_, plan_, names_)) placement_.left.push_back(std::move(left));
    if (request_.rules.results) place_results();
    sort();
    return std::move(placement_);
  }

 private:
  std::vector<const Node*> nodes_of(const Candidate& c) const {
    std::vector<const Node*> nodes;
    for (const std::string& name : c.nodes) {
      const bool appended = std::find(c.epilogue.begin(), c.epilogue.end(), name) != c.epilogue.end();
      if (appended) continue;
      if (const Node* node = names_.find(name)) nodes.push_back(node);
    }
    return nodes;
  }

  void check_names() const {
    std::set<std::string> known;
    for (const Candidate* c : plan_.applied())
      if (!c->points.empty()) known.merge(callable_by(*c, nodes_of(*c)));
    for (const auto* list : {&request_.skip, &request_.only})
      for (const std::string& name : *list)
        if (!known.contains(name))
          throw fail(E::unknown_name, "no module with Q/DQ points is called '{}'", name)
              .hint(did_you_mean(name, {known.begin(), known.end()}));
  }

  std::optional<Decline> left_by_request(const Candidate& c, const std::vector<const Node*>& nodes) const {
    const std::set<std::string> names = callable_by(c, nodes);
    const auto named = [&](const std::vector<std::string>& list) {
      return std::find_if(list.begin(), list.end(), [&](const std::string& name) { return names.contains(name); });
    };
    if (const auto at = named(request_.skip); at != request_.skip.end())
      return Decline{"skipped", fmt::format("left out by --skip {}", *at), {*at}};
    if (!request_.only.empty() && named(request_.only) == request_.only.end())
      return Decline{"skipped", "not among what --only names", {}};
    for (const std::string& name : request_.presets)
      if (preset_of(name).holds(c, nodes))
        return Decline{"preset", fmt::format("preset '{}': {}", name, preset_of(name).summary), {name}};
    return left_by_target(c);
  }

  std::optional<Decline> left_by_target(const Candidate& c) const {
    if (!request_.rules.target) return std::nullopt;
    for (const LeftByTarget& row : request_.rules.target->left_by(grouping_, c)) {
      const bool small = row.name == kSmallProduct;
      if (small ? request_.min_linear.has_value() : !request_.target_leaves) continue;
      return Decline{
          small ? "small_linear" : "target", fmt::format("{} ({}: {})", row.why, row.place, row.name), {row.name}};
    }
    return std::nullopt;
  }

  /// Products of the module that read `tensor`.
  std::vector<const Node*> products_of(const std::vector<const Node*>& nodes, const Value* tensor) const {
    std::vector<const Node*> products;
    for (const Node* node : nodes) {
      const bool reads = std::find(node->inputs.begin(), node->inputs.end(), tensor) != node->inputs.end();
      if (reads && holds_product(*node)) products.push_back(node);
    }
    return products;
  }

  struct Point {
    const QdqPoint* declared;
    const Value* tensor;
  };

  static std::optional<Decline> left_by_types(const std::vector<Point>& points) {
    for (const Point& p : points)
      if (p.tensor->type.dtype != DType::f32)
        return Decline{
            "not_f32", fmt::format("'{}' is {}", p.declared->tensor, p.tensor->type.text()), {p.declared->tensor}};
    return std::nullopt;
  }

  std::optional<Decline> left_by_products(const std::vector<const Node*>& products) const {
    int64_t in = 0, out = 0;
    for (const Node* product : products) {
      if (auto why = unfit_weights(*product)) return why;
      for (const LinearSize& size : linear_sizes(*product)) in = size.in, out += size.out;
    }
    const int64_t least = request_.min_linear.value_or(request_.rules.min_linear);
    if (in == 0 || in * out / (in + out) >= least) return std::nullopt;
    return Decline{
        "small_linear",
        fmt::format("K N / (K + N) = {} of the Linear {} -> {} is below {}", in * out / (in + out), in, out, least),
        {}};
  }

  bool is_given(const Value* tensor) const { return tensor->producer && is_a<DequantizeLinear>(*tensor->producer); }

  std::vector<Point> points_of(const Candidate& c) const {
    std::vector<Point> points;
    for (const QdqPoint& point : c.points) {
      if (!request_.rules.uses_point(point.point)) continue;
      const auto at = values_.find(point.tensor);
      if (at == values_.end())
        throw fail(E::stale_plan, "{} has a point on '{}', which the model does not have", c.id, point.tensor)
            .hint("make the plan again for this model");
      points.push_back({&point, at->second});
    }
    return points;
  }

  void place_module(const Candidate& c) {
    const std::vector<const Node*> nodes = nodes_of(c);
    const std::vector<Point> points = points_of(c);
    const auto missing =
        std::count_if(points.begin(), points.end(), [&](const Point& p) { return !is_given(p.tensor); });
    if (missing == 0) {
      placement_.given.push_back({c.id, c.module, {"given", "the model brings its pairs", {}}});
      return;
    }
    std::vector<const Node*> products;
    for (const Point& p : points)
      for (const Node* product : products_of(nodes, p.tensor))
        if (std::find(products.begin(), products.end(), product) == products.end()) products.push_back(product);
    auto why = left_by_request(c, nodes);
    if (!why) why = left_by_types(points);
    if (!why) why = left_by_products(products);
    if (!why && has_pairs_ && !request_.add_missing) why = missing_points(points);
    if (why) {
      placement_.left.push_back({c.id, c.module, std::move(*why)});
      return;
    }
    for (const Point& p : points)
      if (!is_given(p.tensor)) place_point(c, nodes, p);
    for (const Node* product : products) placement_.products.push_back({product->id, names_.of(product), c.id});
  }

  Decline missing_points(const std::vector<Point>& points) const {
    Decline why{"missing_point", "the model has pairs already and none here:", {}};
    for (const Point& p : points)
      if (!is_given(p.tensor)) {
        why.message += fmt::format(" {} '{}'", p.declared->point, p.declared->tensor);
        why.evidence.push_back(p.declared->tensor);
      }
    return why;
  }

  void place_point(const Candidate& c, const std::vector<const Node*>& nodes, const Point& p) {
    ++placement_.points;
    PlacedTensor& placed = tensor_at(p.tensor);
    if (std::find(placed.modules.begin(), placed.modules.end(), c.id) == placed.modules.end())
      placed.modules.push_back(c.id);
    const bool given_out = p.declared->point == "OUTPUT";
    const bool by_product = p.declared->point == "INPUT" && !products_of(nodes, p.tensor).empty();
    for (const Use& use : p.tensor->uses) {
      const bool inside = std::find(nodes.begin(), nodes.end(), use.node) != nodes.end();
      if ((given_out || (inside && (!by_product || holds_product(*use.node)))) &&
          !contains(placed.readers, use.node->id))
        placed.readers.push_back(use.node->id);
    }
  }

  PlacedTensor& tensor_at(const Value* value) {
    for (PlacedTensor& placed : placement_.tensors)
      if (placed.value == value->id) return placed;
    placement_.tensors.push_back({.tensor = value_name(*value), .value = value->id});
    return placement_.tensors.back();
  }

  bool reads_pairs_only(const Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* input) {
      const PlacedTensor* placed = input ? placement_.find(input->id) : nullptr;
      return !input || (placed && contains(placed->readers, node.id));
    });
  }

  /// Pairs behind products, additions of quantised values and pools of them, for compilers that ask for these.
  void place_results() {
    for (const Node* node : graph_.nodes()) {
      const auto is_this = [&](const PlacedProduct& p) { return p.node == node->id; };
      const bool product =
          is_a<Conv>(*node) && std::any_of(placement_.products.begin(), placement_.products.end(), is_this);
      const bool pool = is_a<MaxPool>(*node) && node->outputs.size() == 1;
      if (!product && !((is_a<Add>(*node) || pool) && reads_pairs_only(*node))) continue;
      const Value* result = node->output();
      const auto clamps = [](const Node* n) { return n && (is_a<Relu>(*n) || is_a<Clip>(*n) || is_a<BatchNorm>(*n)); };
      while (!pool && clamps(result->only_reader())) result = result->only_reader()->output();
      if (result->uses.empty() || result->type.dtype != DType::f32) continue;
      PlacedTensor& placed = tensor_at(result);
      placed.result = placed.modules.empty();
      for (const Use& use : result->uses)
        if (!contains(placed.readers, use.node->id)) placed.readers.push_back(use.node->id);
    }
  }

  void sort() {
    std::erase_if(placement_.tensors, [](const PlacedTensor& t) { return t.readers.empty(); });
    std::map<int, size_t> order;
    size_t at = 0;
    for (const Value* input : graph_.inputs()) order[input->id] = at++;
    for (const Node* node : graph_.nodes())
      for (const Value* output : node->outputs) order[output->id] = at++;
    std::stable_sort(placement_.tensors.begin(), placement_.tensors.end(),
                     [&](const PlacedTensor& a, const PlacedTensor& b) { return order[a.value] < order[b.value]; });
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const PlacementRequest& request_;
  const Grouping grouping_;
  const NodeNames& names_;
  std::map<std::string, const Value*> values_;
  bool has_pairs_ = false;
  Placement placement_;
};

}  // namespace

const PlacedTensor* Placement::find(int value) const {
  for (const PlacedTensor& placed : tensors)
    if (placed.value == value) return &placed;
  return nullptr;
}

Placement place(const Graph& prepared, const FusionPlan& plan, const PlacementRequest& request) {
  return Placer(prepared, plan, request).run();
}

}  // namespace opfuse::quantization
