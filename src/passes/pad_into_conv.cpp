// PadIntoConv.
//     x -- Pad 0 -- Conv  =  x -- Conv with pads
//     x -- Pad 0 -- Transpose -- Conv  =  x -- Transpose -- Conv with pads
// TensorFlow's strided convolutions, ZeroPadding2D and F.pad write the border of a convolution as a node of its own.
#include <fmt/format.h>

#include "ir/outline.hpp"
#include "match/pattern.hpp"
#include "ops/conv.hpp"
#include "ops/transpose.hpp"
#include "passes/border.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "pad-into-conv";
constexpr const char* kRule = "PadIntoConv";

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

/// What stands in front of a convolution.
struct Bordered {
  Node *pad = nullptr, *transpose = nullptr;  ///< the latter: null where there is none
};

Bordered in_front_of(const Node& conv) {
  Node* before = conv.input(0)->producer;
  if (before && before->is("transpose")) return {before->input(0)->producer, before};
  return {before, nullptr};
}

std::optional<Decline> convert(Graph& graph, const Bordered& b, Node* conv) {
  if (graph.read_count(b.pad->output()) != 1 || (b.transpose && graph.read_count(b.transpose->output()) != 1))
    return no("multi_consumer", "others read the padded map");
  const auto value = border_value(*b.pad);
  if (!value) return no("not_constant", "the border's value is computed");
  if (*value != 0) return no("constant_mismatch", fmt::format("expected a border of 0, found {:g}", *value));
  const Conv::Attrs& a = conv->as<Conv>();
  if (a.auto_pad != AutoPad::notset && a.auto_pad != AutoPad::valid)
    return no("conv_attributes", "the convolution pads by itself");
  if (!b.pad->input(0)->type.shape.ranked) return no("rank", "the rank of the map is not known");
  const size_t rank = b.pad->input(0)->type.shape.rank();
  auto border = spatial_border(
      *b.pad, b.transpose ? Transpose::permutation(b.transpose->as<Transpose>(), rank) : std::vector<size_t>{});
  if (auto* decline = std::get_if<Decline>(&border)) return *decline;
  auto attrs = std::make_shared<Conv::Attrs>(a);
  attrs->auto_pad = AutoPad::notset;
  attrs->pads = std::get<0>(std::move(border));
  if (a.auto_pad == AutoPad::notset)
    for (size_t i = 0; i < a.pads.size(); ++i) attrs->pads[i] += a.pads[i];
  std::vector<Value*> operands = conv->inputs;
  operands[0] = b.pad->input(0);
  if (b.transpose)
    operands[0] =
        graph.add_node(b.transpose->op, b.transpose->attrs_, {operands[0]}, 1, b.transpose->sources, conv)->output();
  Node* made = graph.add_node(conv->op, attrs, operands, 1, united_sources({conv, b.pad}), conv);
  if (!(made->output()->type == conv->output()->type)) {  // another way to write an open dimension
    graph.erase(made);
    if (b.transpose) graph.erase(operands[0]->producer);
    return no("shape", "the result's shape would be written in another way");
  }
  take_over(graph, conv->output(), made->output());
  for (Node* node : {conv, b.transpose, b.pad})
    if (node) graph.erase(node);
  return std::nullopt;
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  for (Node* node : order) {
    if (!node->is("conv")) continue;
    const Bordered b = in_front_of(*node);
    if (!b.pad || !b.pad->is("pad")) continue;
    const std::string where = node->name();
    auto decline = convert(graph, b, node);
    if (report && decline) report->declined(kPass, kRule, where, std::move(*decline));
    if (decline) continue;
    if (report) report->applied(kPass, kRule, where, "the convolution pads");
    changed = true;
  }
  return changed;
}

Pass pad_into_conv() {
  return {"pad-into-conv", "A border of zeros in front of a convolution is the convolution's own padding.", run, {}};
}

}  // namespace opfuse
