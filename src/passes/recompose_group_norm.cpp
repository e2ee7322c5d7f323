// How exporters write group norm where an opset has none:
//   x [N, C, ..] -- Reshape [N, 1, -1] -- InstanceNormalization -- Reshape [N, C, ..] [-- Mul (per channel)] [-- Add]
// The instance norm's own scale and bias are one value; with the constants behind they become one per channel,
//   (n s + b) m + a = n (s m) + (b m + a)
// so group_norm is one row stage instead of two copies, a norm and a map. Several groups stay as they are: group_norm's
// row stage would sum the statistics of a group once for each of its channels. ONNX has it since opset 21: a model with
// operators that opfuse does not know, which must keep its opset, stays as it is.
#include "ir/outline.hpp"
#include "ops/norm.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "recompose-group-norm";

struct GroupNormSite {
  Node *split = nullptr, *norm = nullptr, *join = nullptr;
  int64_t channels = 0;
};

std::optional<GroupNormSite> find_site(Node* norm) {
  Node* split = norm->input(0)->producer;
  if (!norm->is("instance_norm") || !split || !split->is("reshape") || split->output()->only_reader() != norm)
    return std::nullopt;
  Node* join = norm->output()->only_reader();
  if (!join || !join->is("reshape") || join->input(0) != norm->output()) return std::nullopt;
  const Value *x = split->input(0), *scale = norm->input(1), *bias = norm->input(2);
  const Shape &from = x->type.shape, &groups = split->output()->type.shape;
  if (!from.ranked || !groups.ranked || from.rank() < 3 || groups.rank() < 3 || !(join->output()->type == x->type))
    return std::nullopt;
  const auto channels = from[1].constant();
  if (!channels || !(groups[1] == Dim(1)) || !(from[0] == groups[0])) return std::nullopt;
  if (!scale || !bias || !scale->is_constant() || !bias->is_constant()) return std::nullopt;
  return GroupNormSite{split, norm, join, *channels};
}

Tensor for_all_channels(const Tensor& one, int64_t channels) {
  Tensor result(one.dtype(), {channels});
  for (int64_t c = 0; c < channels; ++c) result.set_real(c, one.real(0));
  return result;
}

/// `value` behind `node`, an operator of the value and a constant per channel: that constant.
std::optional<Tensor> constant_behind(const Node* node, std::string_view op, const Value* value, int64_t channels) {
  if (!node || node->op->name != op || node->inputs.size() != 2 || !(node->output()->type == value->type))
    return std::nullopt;
  const Value* other = node->input(node->input(0) == value ? 1 : 0);
  if (!other->is_constant()) return std::nullopt;
  return per_channel(*other, value->type.shape.rank(), channels);
}

void rewrite(Graph& graph, const GroupNormSite& site, RewriteReport* report) {
  Tensor scale = for_all_channels(*site.norm->input(1)->constant, site.channels);
  Tensor bias = for_all_channels(*site.norm->input(2)->constant, site.channels);
  std::vector<Node*> replaced{site.split, site.norm, site.join};
  const auto behind = [&](std::string_view op) {
    Node* reader = replaced.back()->output()->only_reader();
    auto constant = constant_behind(reader, op, replaced.back()->output(), site.channels);
    if (constant) replaced.push_back(reader);
    return constant;
  };
  if (const auto factor = behind("mul"))
    for (int64_t c = 0; c < site.channels; ++c) {
      scale.set_real(c, scale.real(c) * factor->real(c));
      bias.set_real(c, bias.real(c) * factor->real(c));
    }
  if (const auto shift = behind("add"))
    for (int64_t c = 0; c < site.channels; ++c) bias.set_real(c, bias.real(c) + shift->real(c));
  AttrMap attrs{{"epsilon", site.norm->as<InstanceNorm>().epsilon}, {"num_groups", int64_t{1}}};
  Node* made = graph.add_node(op_named("group_norm"), attrs,
                              {site.split->input(0), graph.add_constant(scale), graph.add_constant(bias)}, 1,
                              united_sources(replaced), replaced.back());
  const std::string where = site.norm->name();
  take_over(graph, replaced.back()->output(), made->output());
  for (auto it = replaced.rbegin(); it != replaced.rend(); ++it) graph.erase(*it);
  if (report) report->applied(kPass, "Reshape, InstanceNorm, Reshape is GroupNorm", where, describe(*made));
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  std::vector<Node*> norms;  // each rewrite erases only its own nodes
  for (Node* node : graph.nodes()) {
    if (node->op == opaque_op()) return false;
    if (node->is("instance_norm")) norms.push_back(node);
  }
  bool changed = false;
  for (Node* norm : norms)
    if (const auto site = find_site(norm)) {
      rewrite(graph, *site, context.report);
      changed = true;
    }
  return changed;
}

Pass recompose_group_norm() {
  return {"recompose-group-norm", "Name group norms where an instance norm between reshapes spells them.", run, {}};
}

}  // namespace opfuse
