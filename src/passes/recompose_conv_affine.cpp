// Per-channel constants after a convolution.
//   conv(x, w, b) + c            = conv(x, w, b + c)
//   conv(x, w, b) * m [+ a]      = batch_norm(conv(x, w, b), scale m, bias a, mean 0, var 1, epsilon 0)
// The second is what FrozenBatchNorm2d and scale layers export as; BatchNorm then folds where kernels are made. A
// constant is never a residual: what is not per-channel stays an add, with the reason.
#include <fmt/format.h>

#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

std::optional<Tensor> per_channel(const Value& constant, size_t rank, int64_t channels) {
  const Tensor& t = *constant.constant;
  if (!is_float(t.dtype()) || t.rank() > rank) return std::nullopt;
  const size_t lead = rank - t.rank();
  for (size_t i = 0; i < t.rank(); ++i)
    if (t.dim(i) != 1 && (i + lead != 1 || t.dim(i) != channels)) return std::nullopt;
  Tensor result(t.dtype(), {channels});
  for (int64_t c = 0; c < channels; ++c) result.set_real(c, t.real(t.elements() == 1 ? 0 : c));
  return result;
}

namespace {

constexpr const char* kPass = "recompose-conv-affine";

// A node that combines `value` with a constant.
struct Step {
  Node* node = nullptr;
  Value* constant = nullptr;
  bool constant_first = false;
};

// The only reader of `value` if it is `op_name` with a constant; a Decline when it nearly is.
std::optional<Step> sole_reader(const Value* value, std::initializer_list<std::string_view> names) {
  const Use* use = value->only_use();
  if (!use) return std::nullopt;
  Node* node = use->node;
  if (node->inputs.size() != 2 || std::find(names.begin(), names.end(), node->op->name) == names.end())
    return std::nullopt;
  const size_t other = 1 - use->index;
  Value* c = node->inputs[other];
  if (!c || !c->is_constant()) return std::nullopt;
  return Step{node, c, other == 0};
}

Tensor filled(DType dtype, int64_t count, double value) {
  Tensor t(dtype, {count});
  for (int64_t i = 0; i < count; ++i) t.set_real(i, value);
  return t;
}

Tensor negated(const Tensor& t) {
  Tensor r(t.dtype(), t.sizes());
  for (int64_t i = 0; i < t.elements(); ++i) r.set_real(i, -t.real(i));
  return r;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor r(a.dtype(), a.sizes());
  for (int64_t i = 0; i < a.elements(); ++i) r.set_real(i, a.real(i) + b.real(i));
  return r;
}

Decline not_per_channel(const Step& s, const Node& conv) {
  return {"not_per_channel",
          fmt::format("the constant of {} has shape {}, which is not one value per channel of {}", describe(*s.node),
                      s.constant->type.shape.text(), describe(conv)),
          {value_name(*s.constant)}};
}

struct ConvSite {
  Graph& graph;
  Node* conv;
  size_t rank;
  int64_t channels;
  RewriteReport* report;

  bool refuse(const char* rule, const Step& s, Decline reason) const {
    if (report) report->declined(kPass, rule, s.node->name(), std::move(reason));
    return false;
  }

  // The addend of an add or sub step; empty (and reported) when it is none.
  std::optional<Tensor> addend(const char* rule, const Step& s) const {
    std::optional<Tensor> c = per_channel(*s.constant, rank, channels);
    if (c && s.node->is("sub") && s.constant_first) {
      refuse(rule, s, {"negated_value", describe(*s.node) + " subtracts the convolution from a constant", {}});
      return std::nullopt;
    }
    if (!c || s.node->output()->type != conv->output()->type) {
      refuse(rule, s, not_per_channel(s, *conv));
      return std::nullopt;
    }
    return s.node->is("sub") ? negated(*c) : *c;
  }

  bool to_batch_norm(const Step& mul) {
    const std::optional<Tensor> scale = per_channel(*mul.constant, rank, channels);
    if (!scale || mul.node->output()->type != conv->output()->type)
      return refuse("Conv -> Mul is BatchNorm", mul, not_per_channel(mul, *conv));
    std::vector<Node*> replaced{mul.node};
    const DType dtype = scale->dtype();
    Tensor shift = filled(dtype, channels, 0);
    if (auto add = sole_reader(mul.node->output(), {"add", "sub"}))
      if (auto c = addend("Conv -> Mul, Add is BatchNorm", *add)) {
        shift = *c;
        replaced.push_back(add->node);
      }
    Node* bn =
        graph.add_node(op_named("batch_norm"), AttrMap{{"epsilon", 0.0}},
                       {conv->output(), graph.add_constant(*scale), graph.add_constant(shift),
                        graph.add_constant(filled(dtype, channels, 0)), graph.add_constant(filled(dtype, channels, 1))},
                       1, united_sources(replaced), replaced.back());
    finish(replaced, bn, "Conv -> Mul, Add is BatchNorm");
    return true;
  }

  bool to_bias(const Step& add) {
    std::optional<Tensor> bias = addend("Conv -> Add is a bias", add);
    if (!bias) return false;
    if (Value* old = conv->input(2)) {
      if (!old->is_constant())
        return refuse("Conv -> Add is a bias", add,
                      {"computed_bias", "the convolution's own bias is computed", {value_name(*old)}});
      bias = sum_of(*old->constant, *bias);
    }
    std::vector<Node*> replaced{conv, add.node};
    Node* made = graph.add_node(conv->op, conv->attrs_, {conv->input(0), conv->input(1), graph.add_constant(*bias)}, 1,
                                united_sources(replaced), add.node, {conv->output()->type});
    finish(replaced, made, "Conv -> Add is a bias");
    conv = made;
    return true;
  }

  void finish(const std::vector<Node*>& replaced, Node* made, const char* rule) {
    const std::string where = replaced.back()->name();
    take_over(graph, replaced.back()->output(), made->output());
    for (auto it = replaced.rbegin(); it != replaced.rend(); ++it) graph.erase(*it);
    if (report) report->applied(kPass, rule, where, describe(*made));
  }
};

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  std::vector<Node*> convs;  // the loop erases a convolution only when it is its turn, and readers of other kinds
  for (Node* node : graph.nodes())
    if (node->is("conv") && node->output()->type.shape.ranked && node->output()->type.shape.rank() >= 3)
      convs.push_back(node);
  for (Node* node : convs) {
    const std::optional<int64_t> channels = node->output()->type.shape[1].constant();
    if (!channels) continue;
    ConvSite site{graph, node, node->output()->type.shape.rank(), *channels, report};
    while (auto add = sole_reader(site.conv->output(), {"add", "sub"})) {
      if (!site.to_bias(*add)) break;
      changed = true;
    }
    if (auto mul = sole_reader(site.conv->output(), {"mul"})) changed |= site.to_batch_norm(*mul);
  }
  return changed;
}

Pass recompose_conv_affine() {
  return {"recompose-conv-affine", "Per-channel constants after a convolution are its bias or a BatchNorm.", run, {}};
}

}  // namespace opfuse
