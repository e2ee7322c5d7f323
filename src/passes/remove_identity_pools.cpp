// RemoveIdentityAdaptiveAvgPool: an average over one element is that element.
//   average_pool with 1x1 windows, stride 1, no padding        global_average_pool of a 1x1 map
// Exporters write AdaptiveAvgPool2d(7) over a 7x7 map this way (VGG). Needs known extents; else it says so.
#include <fmt/format.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "ops/global_pool.hpp"
#include "ops/pool.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "remove-identity-pools";
constexpr const char* kRule = "RemoveIdentityAdaptiveAvgPool";
constexpr const char* kNotIdentity = "not_identity";

bool all_are(const std::vector<int64_t>& values, int64_t want) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == want; });
}

std::optional<Decline> spatial_is_one(const Node& node) {
  const Shape& shape = node.input(0)->type.shape;
  if (!shape.ranked) return Decline{"unknown_dimension", "the rank of the pooled map is not known", {}};
  for (size_t i = 2; i < shape.rank(); ++i) {
    if (!shape[i].is_constant())
      return Decline{"unknown_dimension", fmt::format("the map is {}, its extents are not known", shape.text()), {}};
    if (shape[i].value() != 1)
      return Decline{kNotIdentity, fmt::format("the map is {}, larger than 1x1", shape.text()), {}};
  }
  return std::nullopt;
}

std::optional<Decline> why_not_identity(const Node& node) {
  if (node.is("global_average_pool")) return spatial_is_one(node);
  const AveragePool::Attrs& a = node.as<AveragePool>();
  if (all_are(a.kernel_shape, 1) && all_are(a.strides, 1) && all_are(a.pads, 0)) return std::nullopt;
  return Decline{kNotIdentity, fmt::format("the window is {}", text_of(AttrValue(a.kernel_shape))), {}};
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  for (Node* node : order) {
    if (!node->is("average_pool") && !node->is("global_average_pool")) continue;
    if (auto decline = why_not_identity(*node)) {
      // A pool that pools is no near miss: every model has some.
      if (report && decline->code != kNotIdentity) report->declined(kPass, kRule, node->name(), std::move(*decline));
      continue;
    }
    Value* x = node->input(0);
    if (graph.is_output(node->output()) && (!x->producer || graph.is_output(x))) {
      if (report)
        report->declined(kPass, kRule, node->name(),
                         {"graph_output", "it connects the graph's interface directly", {}});
      continue;
    }
    if (report) report->applied(kPass, kRule, node->name(), "removed");
    take_over(graph, node->output(), x);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

Pass remove_identity_pools() { return {"remove-identity-pools", "Remove averages over a single element.", run, {}}; }

}  // namespace opfuse
