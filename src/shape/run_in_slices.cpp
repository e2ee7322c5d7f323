// Two groups, slice by slice: what lies between them never exists as a whole.
//
//     x -- A: convolution -- t[C channels] -- B: depthwise -- y        t alone reads B
//
//     x --+-- A[0:C/k]  -- t[0:C/k]  -- B[0:C/k]  --+-- concat -- y      a slice of t is dead before the next begins
//         +-- A[C/k:..] -- t[C/k:..] -- B[C/k:..] --+
//
// A depthwise convolution needs of each channel nothing but that channel, so the slices repeat no work; the results
// are parts of one buffer. Pairs are cut where they hold most bytes of intermediates (shape/live_bytes.hpp) and slices
// lower that peak noticeably; graphs with open dimensions are left alone.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ir/value_name.hpp"
#include "ops/concat.hpp"
#include "ops/conv.hpp"
#include "ops/registry.hpp"
#include "shape/join.hpp"
#include "shape/live_bytes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kLeastSlice = 512 << 10;  // bytes: a launch costs microseconds, so should the work in it be more
constexpr double kWorth = 0.85;             // of the peak; what saves less is not worth the launches

// ---- one pair

struct Pair {
  Node *a = nullptr, *b = nullptr;
  int64_t channels = 0;
  Value* between() const { return a->output(); }
};

bool is_chain_of(const Node& group, int64_t channels, const Node& conv) {
  const Graph& body = *group.body;
  if (body.outputs().size() != 1 || body.nodes().front() != &conv || body.nodes().back() != body.outputs()[0]->producer)
    return false;
  const Value* data = body.inputs().empty() ? nullptr : conv.input(0);
  for (size_t i = 0; i < body.inputs().size(); ++i) {  // one data operand; the others are constants, a row per channel
    if (body.inputs()[i] == data) continue;
    const Value* operand = group.inputs[i];
    if (!operand->is_constant() || operand->constant->rank() == 0 || operand->constant->dim(0) != channels)
      return false;
  }
  for (const Node* node : body.nodes()) {
    if (node != &conv && !node->is("batch_norm") && node->op->kind != OpKind::elementwise) return false;
    if (node->outputs.size() != 1 || (node != body.nodes().back() && body.read_count(node->output()) != 1))
      return false;
    for (size_t i = 1; i < node->inputs.size(); ++i)
      if (node->inputs[i] && (node->inputs[i]->producer || node->inputs[i] == data)) return false;
    if (!node->is("conv") && !node->is("batch_norm"))
      for (size_t i = 1; i < node->inputs.size(); ++i)
        if (node->inputs[i] && (!node->inputs[i]->is_constant() || node->inputs[i]->constant->elements() > 1))
          return false;
  }
  return data != nullptr && data->uses.size() == 1;
}

/// The group's convolution when the group is convolution, [BatchNorm], elementwise nodes with scalars.
const Node* only_convolution(const Node& group) {
  if (group.op != fused_op() || group.outputs.size() != 1 || group.body->nodes().empty()) return nullptr;
  const Node* conv = group.body->nodes().front();
  const Shape& y = group.output()->type.shape;
  if (!conv->is("conv") || !y.ranked || y.rank() < 3 || !y[1].is_constant()) return nullptr;
  return is_chain_of(group, y[1].value(), *conv) ? conv : nullptr;
}

std::optional<Pair> pair_from(Node* a) {
  const Use* use = a->outputs.size() == 1 ? a->output()->only_use() : nullptr;
  if (!use) return std::nullopt;
  Node* b = use->node;
  const Node *first = only_convolution(*a), *second = only_convolution(*b);
  if (!first || !second || first->as<Conv>().group != 1 || !is_depthwise(*second)) return std::nullopt;
  if (outside_of(*b, second->input(0)) != a->output()) return std::nullopt;
  return Pair{a, b, a->output()->type.shape[1].value()};
}

// ---- cutting

struct Range {
  int64_t begin = 0, end = 0;
  std::string text() const { return fmt::format("[{}:{}]", begin, end); }
};

/// Rows [begin, end) of a constant; shares its memory.
Tensor rows_of(const Tensor& tensor, const Range& range) {
  std::vector<int64_t> sizes = tensor.sizes();
  const size_t row = tensor.bytes() / static_cast<size_t>(sizes[0]);
  sizes[0] = range.end - range.begin;
  const auto owner = std::make_shared<Tensor>(tensor);
  const char* data = static_cast<const char*>(owner->data()) + row * static_cast<size_t>(range.begin);
  return Tensor::wrap(tensor.dtype(), std::move(sizes), data, owner);
}

std::shared_ptr<const void> attrs_of(const Node& node, const Range& range) {
  if (!node.is("conv") || node.as<Conv>().group == 1) return node.attrs_;
  auto attrs = std::make_shared<Conv::Attrs>(node.as<Conv>());
  attrs->group = range.end - range.begin;
  return attrs;
}

std::unique_ptr<Graph> body_of(const Node& group, const std::vector<Value*>& operands, const Range& range) {
  auto body = std::make_unique<Graph>();
  std::map<int, Value*> map;
  const Graph& from = *group.body;
  for (size_t i = 0; i < from.inputs().size(); ++i)
    map[from.inputs()[i]->id] = body->add_input(from.inputs()[i]->name + range.text(), operands[i]->type);
  for (const Value* c : from.constants()) map[c->id] = body->add_constant(*c->constant, c->name);
  for (const Node* node : from.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : node->inputs) inputs.push_back(v ? map.at(v->id) : nullptr);
    Node* copy = body->add_node(node->op, attrs_of(*node, range), inputs, 1, node->sources);
    copy->output()->name = node->output()->name.empty() ? "" : node->output()->name + range.text();
    map[node->output()->id] = copy->output();
  }
  body->set_outputs({map.at(from.outputs()[0]->id)});
  return body;
}

/// The group for some of its channels; `data` stands for its data operand.
Node* slice_of(Graph& graph, const Node& group, Value* data, const Range& range, Node* before) {
  std::vector<Value*> operands;
  for (Value* operand : group.inputs) {
    const std::string name = operand->name.empty() ? "" : operand->name + range.text();
    Value* cut_before = name.empty() ? nullptr : graph.find_value(name);
    if (!operand->is_constant())
      operands.push_back(data);
    else
      operands.push_back(cut_before ? cut_before : graph.add_constant(rows_of(*operand->constant, range), name));
  }
  std::unique_ptr<Graph> body = body_of(group, operands, range);
  const TensorType type = body->outputs()[0]->type;
  Node* slice = graph.add_node(group.op, group.attrs_, operands, 1, group.sources, before, {type});
  slice->body = std::move(body);
  slice->label = group.label + range.text();
  slice->pattern = group.pattern;
  slice->output()->name = group.output()->name.empty() ? "" : group.output()->name + range.text();
  return slice;
}

Value* data_operand(const Node& group) {
  return *std::find_if(group.inputs.begin(), group.inputs.end(), [](const Value* v) { return !v->is_constant(); });
}

void cut(Graph& graph, const Pair& pair, int64_t count) {
  std::vector<Value*> parts;
  const int64_t size = pair.channels / count;
  for (int64_t i = 0; i < count; ++i) {
    const Range range{i * size, (i + 1) * size};
    Node* a = slice_of(graph, *pair.a, data_operand(*pair.a), range, pair.b);
    parts.push_back(slice_of(graph, *pair.b, a->output(), range, pair.b)->output());
  }
  auto attrs = std::make_shared<Concat::Attrs>();
  attrs->axis = 1;
  Node* whole = graph.add_node(ops().find("concat"), attrs, parts, 1, pair.b->sources, pair.b);
  take_over(graph, pair.b->output(), whole->output());
  graph.erase(pair.b);
  graph.erase(pair.a);
}

// ---- choosing

struct Choice {
  Pair pair;
  int64_t count = 0;
};

/// The fewest slices that bring the pair below the next highest peak, or as low as slices can.
std::optional<Choice> choose(const Graph& graph, const std::vector<int64_t>& live, int64_t block) {
  const size_t peak = static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  Node* at = graph.nodes()[peak];
  std::optional<Pair> pair = pair_from(at);
  for (size_t i = 0; i < at->inputs.size() && !pair; ++i)
    if (at->inputs[i] && at->inputs[i]->producer) pair = pair_from(at->inputs[i]->producer);
  if (!pair || (pair->a != at && pair->b != at)) return std::nullopt;
  const size_t a = graph.position(pair->a), b = graph.position(pair->b);
  int64_t next = 0;
  for (size_t i = 0; i < live.size(); ++i)
    if (i != a && i != b) next = std::max(next, live[i]);
  const int64_t between = constant_bytes(*pair->between()),
                others = live[a] - between + constant_bytes(*pair->b->output());
  Choice choice{*pair, 0};
  for (int64_t count = 2; pair->channels / count >= block && between / count >= kLeastSlice; ++count) {
    if (pair->channels % (count * block) != 0) continue;
    choice.count = count;
    if (others + between / count <= next) break;
  }
  const bool worth = choice.count > 0 && static_cast<double>(std::max(next, others + between / choice.count)) <
                                             kWorth * static_cast<double>(live[peak]);
  return worth ? std::optional(choice) : std::nullopt;
}

constexpr const char* kPass = "run-in-slices";

bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.switched_off(kPass)) return false;
  bool changed = false;
  for (std::vector<int64_t> live = live_bytes(fused); !live.empty(); live = live_bytes(fused)) {
    const std::optional<Choice> choice = choose(fused, live, context.channel_block);
    if (!choice) break;
    const auto& [pair, count] = *choice;
    ShapeVerdict verdict{
        .pass = kPass,
        .nodes = {name_of_group(*pair.a), name_of_group(*pair.b)},
        .value = value_name(*pair.between()),
        .numbers = {
            {"slices", count}, {"channels", pair.channels / count}, {"bytes", constant_bytes(*pair.between())}}};
    for (const Node* node : {pair.a, pair.b})
      for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    verdicts.push_back(std::move(verdict));
    cut(fused, pair, count);
    changed = true;
  }
  return changed;
}

}  // namespace

ShapingPass run_in_slices() { return {kPass, "Pairs of groups that hold most memory run slice by slice.", run}; }

}  // namespace opfuse
