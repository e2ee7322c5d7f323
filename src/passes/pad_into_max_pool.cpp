// PadIntoMaxPool.
//     x -- Pad 0 -- MaxPool  =  x -- MaxPool with pads          where no element of x is below 0
// The pool's own padding never wins, and zeros around such an x do not either, as long as every window holds an element
// of x. Keras pads in front of its pools; pads of minus infinity may always move.
#include <fmt/format.h>

#include <cmath>

#include "ir/outline.hpp"
#include "match/activation.hpp"
#include "match/pattern.hpp"
#include "ops/pool.hpp"
#include "passes/border.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "pad-into-max-pool";
constexpr const char* kRule = "PadIntoMaxPool";

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

/// The result of an activation that is never negative.
bool never_negative(const Value& x) {
  if (!x.producer || !is_float(x.type.dtype)) return false;
  const std::string_view name = operator_name(*x.producer);
  if (name == "relu" || name == "relu6" || name == "sigmoid" || name == "hard_sigmoid" || name == "softmax")
    return true;
  if (name != "clip") return false;
  const auto low = scalar_constant(x.producer->input(1));
  return low && *low >= 0;
}

std::optional<Decline> check_value(const Node& pad) {
  const auto value = border_value(pad);
  if (!value) return no("not_constant", "the border's value is computed");
  if (std::isinf(*value) && *value < 0) return std::nullopt;
  if (*value != 0) return no("constant_mismatch", fmt::format("expected a border of 0, found {:g}", *value));
  if (never_negative(*pad.input(0))) return std::nullopt;
  return no("may_be_negative", fmt::format("{} may be below the border of 0", describe(pad.input(0))));
}

/// The pool's pads with the border's; the reason when a window could lie outside.
std::variant<std::vector<int64_t>, Decline> united_pads(const Node& pool, std::vector<int64_t> pads) {
  const MaxPool::Attrs& a = pool.as<MaxPool>();
  if (a.ceil_mode || (a.auto_pad != AutoPad::notset && a.auto_pad != AutoPad::valid))
    return no("pool_attributes", "the pool rounds up or pads by itself");
  for (int64_t d : a.dilations)
    if (d != 1) return no("pool_attributes", "the window is dilated");
  const size_t axes = a.kernel_shape.size();
  if (pads.size() != 2 * axes) return no("rank", "the pool has other axes");
  for (size_t i = 0; i < pads.size(); ++i) {
    if (a.auto_pad == AutoPad::notset && !a.pads.empty()) pads[i] += a.pads[i];
    if (pads[i] >= a.kernel_shape[i % axes]) return no("empty_window", "a window could lie in the border alone");
  }
  return pads;
}

std::optional<Decline> convert(Graph& graph, Node* pad, Node* pool) {
  for (size_t i = 1; i < pool->outputs.size(); ++i)
    if (graph.read_count(pool->outputs[i]) > 0) return no("indices", "positions of the maxima are read");
  if (auto decline = check_value(*pad)) return decline;
  auto border = spatial_border(*pad);
  if (auto* decline = std::get_if<Decline>(&border)) return *decline;
  auto pads = united_pads(*pool, std::get<0>(std::move(border)));
  if (auto* decline = std::get_if<Decline>(&pads)) return *decline;
  auto attrs = std::make_shared<MaxPool::Attrs>(pool->as<MaxPool>());
  attrs->auto_pad = AutoPad::notset;
  attrs->pads = std::get<0>(std::move(pads));
  Node* made = graph.add_node(pool->op, attrs, {pad->input(0)}, 1, united_sources({pad, pool}), pool);
  take_over(graph, pool->output(), made->output());
  graph.erase(pool);
  graph.erase(pad);
  return std::nullopt;
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  std::vector<Node*> pools;
  for (Node* node : order)
    if (node->is("max_pool") && node->input(0)->producer && node->input(0)->producer->is("pad")) pools.push_back(node);
  for (Node* pool : pools) {
    Node* pad = pool->input(0)->producer;
    const std::string where = pool->name();
    std::optional<Decline> decline;
    if (graph.read_count(pad->output()) != 1)
      decline = no("multi_consumer", "others read the padded map");
    else
      decline = convert(graph, pad, pool);
    if (report && decline) report->declined(kPass, kRule, where, std::move(*decline));
    if (decline) continue;
    if (report) report->applied(kPass, kRule, where, "the pool pads");
    changed = true;
  }
  return changed;
}

Pass pad_into_max_pool() {
  return {
      "pad-into-max-pool", "A border of zeros around what is never negative is the max pool's own padding.", run, {}};
}

}  // namespace opfuse
