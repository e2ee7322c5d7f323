// The peak is an estimate on the graph (every node a launch, results of elementwise readers in their operand's place);
// the memory plan of the program that is built from it is exact. A wrong estimate costs launches, never correctness.
#include "shape/slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "fusion/names.hpp"
#include "ir/outline.hpp"
#include "ops/concat.hpp"
#include "ops/conv.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

constexpr int64_t kLeastSlice = 512 << 10;  // bytes: a launch costs microseconds, so should the work in it be more
constexpr double kWorth = 0.85;             // of the peak; what saves less is not worth the launches

/// -1: not known.
int64_t bytes_of(const Value* value) {
  if (!value->type.shape.ranked) return -1;
  const Dim elements = value->type.shape.elements();
  return elements.is_constant() ? elements.value() * static_cast<int64_t>(byte_size(value->type.dtype)) : -1;
}

/// The operand is read by elementwise nodes only, at the place of the result.
bool read_in_place(const Node& node, size_t operand) {
  if (!node.body) return node.op->kind == OpKind::elementwise;
  const auto& uses = node.body->inputs()[operand]->uses;
  return std::all_of(uses.begin(), uses.end(),
                     [](const Use& use) { return use.node->op->kind == OpKind::elementwise; });
}

struct Span {
  size_t first = 0, last = 0;
};

/// Where the result of a node may lie in the memory of an operand that dies there.
int64_t saved_in_place(const Node& node, size_t at, const std::map<int, Span>& spans) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto span = node.inputs[i] ? spans.find(node.inputs[i]->id) : spans.end();
    if (span != spans.end() && span->second.last == at && node.inputs[i]->type == node.output()->type &&
        read_in_place(node, i))
      return bytes_of(node.inputs[i]);
  }
  return 0;
}

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

std::optional<Pair> pair_from(const Graph& graph, Node* a) {
  const Value* t = a->outputs.size() == 1 ? a->output() : nullptr;
  if (!t || graph.read_count(t) != 1 || t->uses.size() != 1) return std::nullopt;
  Node* b = t->uses.front().node;
  const Node *first = only_convolution(*a), *second = only_convolution(*b);
  if (!first || !second || b->input(t->uses.front().index) != t) return std::nullopt;
  const int64_t channels = t->type.shape[1].value();
  const Shape& weights = second->input(1)->type.shape;
  const bool depthwise = second->as<Conv>().group == channels && weights[0] == Dim(channels) && weights[1] == Dim(1);
  const bool whole = first->as<Conv>().group == 1;
  const bool reads_t = b->body->inputs()[t->uses.front().index] == second->input(0);
  return depthwise && whole && reads_t ? std::optional<Pair>({a, b, channels}) : std::nullopt;
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
  std::optional<Pair> pair = pair_from(graph, at);
  for (size_t i = 0; i < at->inputs.size() && !pair; ++i)
    if (at->inputs[i] && at->inputs[i]->producer) pair = pair_from(graph, at->inputs[i]->producer);
  if (!pair || (pair->a != at && pair->b != at)) return std::nullopt;
  const size_t a = graph.position(pair->a), b = graph.position(pair->b);
  int64_t next = 0;
  for (size_t i = 0; i < live.size(); ++i)
    if (i != a && i != b) next = std::max(next, live[i]);
  const int64_t between = bytes_of(pair->between()), others = live[a] - between + bytes_of(pair->b->output());
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

}  // namespace

std::vector<int64_t> live_bytes(const Graph& graph) {
  std::map<int, Span> spans;
  std::vector<int64_t> live(graph.nodes().size(), 0);
  std::unordered_map<const Node*, size_t> position;  // looked up, never iterated
  for (const Node* node : graph.nodes()) position.emplace(node, position.size());
  for (size_t at = 0; at < graph.nodes().size(); ++at)
    for (const Value* v : graph.nodes()[at]->outputs) {
      if (graph.is_output(v)) continue;
      Span span{at, at};
      for (const Use& use : v->uses) span.last = std::max(span.last, position.at(use.node));
      const int64_t bytes = bytes_of(v);
      if (bytes < 0) return {};
      spans[v->id] = span;
      for (size_t i = span.first; i <= span.last; ++i) live[i] += bytes;
    }
  for (size_t at = 0; at < graph.nodes().size(); ++at) live[at] -= saved_in_place(*graph.nodes()[at], at, spans);
  return live;
}

std::vector<std::string> run_in_slices(Graph& fused, int64_t block) {
  std::vector<std::string> notes;
  for (std::vector<int64_t> live = live_bytes(fused); !live.empty(); live = live_bytes(fused)) {
    const std::optional<Choice> choice = choose(fused, live, block);
    if (!choice) break;
    const auto& [pair, count] = *choice;
    const int64_t between = bytes_of(pair.between());
    notes.push_back(fmt::format("{} and {} run in {} slices of {} channels: {:.2f} MB between them instead of {:.2f}",
                                pair.a->label, pair.b->label, count, pair.channels / count,
                                static_cast<double>(between) * 1e-6 / static_cast<double>(count),
                                static_cast<double>(between) * 1e-6));
    cut(fused, pair, count);
  }
  return notes;
}

}  // namespace opfuse
