// Two groups, slice by slice: what lies between them never exists as a whole.
//
//     x -- A: convolution -- t[C channels] -- B: depthwise -- y        t alone reads B
//
//     x -- for_parts { A' -- t[C/k] -- B' } -- y        a slice of t is dead before the next begins
//
// A depthwise convolution needs of each channel nothing but that channel, so the slices repeat no work; the results
// are parts of one buffer. Sums of codes are cut alike: their groups dequantise one datum for all channels, and weights
// and biases by rows. Pairs that hold more bytes of intermediates (shape/live_bytes.hpp) than slices can bring the
// whole graph down to are cut to that, where it is noticeably less; with --memory least for any gain. Graphs with open
// dimensions are left alone.
#include <algorithm>
#include <map>
#include <optional>

#include "ir/for_parts.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/quantize.hpp"
#include "shape/join.hpp"
#include "shape/live_bytes.hpp"

namespace opfuse {
namespace {

/// A launch costs microseconds, so should the work in a slice be more, and what is saved be worth the launches.
constexpr int64_t kLeastBytes = 512 << 10;  ///< of a slice
constexpr int64_t kLeastElements = kLeastBytes / 4;
constexpr double kWorth = 0.85;  ///< of the peak

// ---- one pair

struct Pair {
  Node *a = nullptr, *b = nullptr;
  int64_t channels = 0;
  Value* between() const { return a->output(); }
};

bool is_number(const Tensor& t) { return t.elements() <= 1; }
bool has_rows(const Tensor& t, int64_t channels) { return t.rank() > 0 && t.dim(0) == channels; }

/// What an operand of a convolution is made from: codes, where it is dequantised in the group.
const Value* read_of(const Value* operand) {
  const Node* from = operand->producer;
  return from && is_a<DequantizeLinear>(*from) ? from->input(0) : operand;
}

/// Operands behind the first: numbers; of a convolution and of BatchNorm rows, which may be dequantised; never `data`.
bool others_fit(const Node& node, const Value* data) {
  const bool by_channel = is_a<Conv>(node) || is_a<BatchNorm>(node);
  const bool weights = is_a<DequantizeLinear>(node) && node.input(0) != data;
  const bool by_row = weights && node.as<DequantizeLinear>().axis == 0 && node.as<DequantizeLinear>().block_size == 0;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value* operand = node.inputs[i];
    if (!operand) continue;
    if (read_of(operand) == data || read_of(operand)->producer || (operand->producer && !by_channel)) return false;
    if (by_channel || (operand->is_constant() && is_number(*operand->constant))) continue;
    if (!by_row) return false;  // else a row per channel, of the body or an operand of the group
  }
  return true;
}

bool is_chain_of(const Node& group, int64_t channels, const Node& conv) {
  const Graph& body = *group.body;
  if (body.outputs().size() != 1 || body.nodes().back() != body.outputs()[0]->producer) return false;
  const Value* data = read_of(conv.input(0));
  if (data->producer || data->is_constant() || data->uses.size() != 1) return false;
  for (size_t i = 0; i < body.inputs().size(); ++i) {  // one data operand; the others are constants, a row per channel
    const Value* operand = group.inputs[i];
    if (body.inputs()[i] != data && (!operand->is_constant() || !has_rows(*operand->constant, channels))) return false;
  }
  for (const Value* c : body.constants())
    if (!is_number(*c->constant) && !has_rows(*c->constant, channels)) return false;
  for (const Node* node : body.nodes()) {
    if (node != &conv && !is_a<BatchNorm>(*node) && node->op->kind != OpKind::elementwise) return false;
    if (node->outputs.size() != 1 || (node != body.nodes().back() && body.read_count(node->output()) != 1))
      return false;
    if (!others_fit(*node, data)) return false;
  }
  return true;
}

/// The group's convolution when the group is convolution, [BatchNorm], elementwise nodes with scalars; of codes too.
const Node* only_convolution(const Node& group) {
  if (group.op != fused_op() || group.outputs.size() != 1) return nullptr;
  const auto& nodes = group.body->nodes();
  const auto first =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* n) { return !is_a<DequantizeLinear>(*n); });
  const Shape& y = group.output()->type.shape;
  if (first == nodes.end() || !is_a<Conv>(**first) || !y.ranked || y.rank() < 3 || !y[1].is_constant()) return nullptr;
  return is_chain_of(group, y[1].value(), **first) ? *first : nullptr;
}

std::optional<Pair> pair_from(Node* a) {
  const Use* use = a->outputs.size() == 1 ? a->output()->only_use() : nullptr;
  if (!use) return std::nullopt;
  Node* b = use->node;
  const Node *first = only_convolution(*a), *second = only_convolution(*b);
  if (!first || !second || first->as<Conv>().group != 1 || !is_depthwise(*second)) return std::nullopt;
  if (outside_of(*b, read_of(second->input(0))) != a->output()) return std::nullopt;
  return Pair{a, b, a->output()->type.shape[1].value()};
}

// ---- cutting

/// The groups of one slice. Operands that are constants, rows of all channels, are cut along their first axis.
class Slicing {
 public:
  Slicing(Graph& graph, const Pair& pair, int64_t count) : graph_(graph), pair_(pair), count_(count) {
    attrs_.parts = count;
    attrs_.joins = {1};
  }

  void run() {
    std::vector<Value*> operands;
    Value* between = group_in_slice(*pair_.a, nullptr, operands);
    body_->set_outputs({group_in_slice(*pair_.b, between, operands)});
    const Node* loop = add_for_parts(graph_, std::move(attrs_), operands, std::move(body_),
                                     united_sources({pair_.a, pair_.b}), pair_.b);
    take_over(graph_, pair_.b->output(), loop->output());
    graph_.erase(pair_.b);
    graph_.erase(pair_.a);
  }

 private:
  Graph& graph_;
  const Pair& pair_;
  int64_t count_;
  ForParts::Attrs attrs_;
  std::unique_ptr<Graph> body_ = std::make_unique<Graph>();
  std::map<int, Value*> inputs_;  ///< of the body, by id of the operand

  /// The body's input for an operand, cut where it is a constant.
  Value* input_for(Value* operand, std::vector<Value*>& operands) {
    const auto [at, fresh] = inputs_.emplace(operand->id, nullptr);
    if (!fresh) return at->second;
    TensorType type = operand->type;
    if (operand->is_constant()) type.shape[0] = Dim(type.shape[0].value() / count_);
    operands.push_back(operand);
    attrs_.cuts.push_back(operand->is_constant() ? 0 : ForParts::kWhole);
    return at->second = body_->add_input(operand->name, type);
  }

  /// `data` stands for the group's data operand; null: the operand itself. Returns the slice of its result.
  Value* group_in_slice(const Node& group, Value* data, std::vector<Value*>& operands) {
    std::vector<Value*> inputs;
    for (Value* operand : group.inputs)
      inputs.push_back(data && !operand->is_constant() ? data : input_for(operand, operands));
    for (const Value* c : group.body->constants())
      if (!is_number(*c->constant)) inputs.push_back(input_for(graph_.add_constant(*c->constant), operands));
    std::unique_ptr<Graph> body = slice_of(*group.body, inputs);
    const TensorType type = body->outputs()[0]->type;
    Node* slice = body_->add_node(group.op, group.attrs_, inputs, 1, group.sources, nullptr, {type});
    slice->body = std::move(body);
    slice->label = group.label;
    slice->pattern = group.pattern;
    slice->output()->name = group.output()->name;
    return slice->output();
  }

  std::shared_ptr<const void> attrs_of(const Node& node) const {
    if (!is_a<Conv>(node) || node.as<Conv>().group == 1) return node.attrs_;
    auto attrs = std::make_shared<Conv::Attrs>(node.as<Conv>());
    attrs->group /= count_;
    return attrs;
  }

  std::unique_ptr<Graph> slice_of(const Graph& from, const std::vector<Value*>& operands) const {
    auto body = std::make_unique<Graph>();
    std::map<int, Value*> map;
    for (size_t i = 0; i < from.inputs().size(); ++i)
      map[from.inputs()[i]->id] = body->add_input(from.inputs()[i]->name, operands[i]->type);
    size_t next = from.inputs().size();  // rows of codes are operands of the slice
    for (const Value* c : from.constants())
      map[c->id] = is_number(*c->constant) ? body->add_constant(*c->constant, c->name)
                                           : body->add_input(c->name, operands[next++]->type);
    for (const Node* node : from.nodes()) {
      std::vector<Value*> inputs;
      for (const Value* v : node->inputs) inputs.push_back(v ? map.at(v->id) : nullptr);
      const Node* copy = body->add_node(node->op, attrs_of(*node), inputs, 1, node->sources);
      copy->output()->name = node->output()->name;
      map[node->output()->id] = copy->output();
    }
    body->set_outputs({map.at(from.outputs()[0]->id)});
    return body;
  }
};

// ---- choosing

struct Cut {
  Pair pair;
  Graph* graph = nullptr;         ///< that it is in
  int64_t whole = 0, others = 0;  ///< bytes alive at the pair as it is; beside what lies between in slices
  std::vector<int64_t> counts;    ///< of slices that may be, the fewest first; not empty

  int64_t bytes(int64_t count) const { return others + constant_bytes(*pair.between()) / count; }
  int64_t least() const { return bytes(counts.back()); }
};

/// Half a megabyte of floats has as many elements. Where bytes are multiplied as they lie, such slices of codes cost
/// nothing; elsewhere each slice widens its input again (bench/log/low-precision.md).
bool may_be_small(const Pair& pair, const ShapeContext& context) {
  return context.least_memory || (context.multiplies_bytes && !is_float(pair.between()->type.dtype));
}

std::vector<int64_t> counts_of(const Pair& pair, const ShapeContext& context) {
  const int64_t bytes = constant_bytes(*pair.between()), elements = pair.between()->type.shape.elements().value();
  const int64_t most = may_be_small(pair, context) ? elements / kLeastElements : bytes / kLeastBytes;
  std::vector<int64_t> counts;
  for (int64_t count = 2; count <= most && pair.channels / count >= context.channel_block; ++count)
    if (pair.channels % (count * context.channel_block) == 0) counts.push_back(count);
  return counts;
}

constexpr const char* kPass = "run-in-slices";

/// The first of the pair, or what reads the second, multiplies 16-bit factors: these lie in half of the memory, and
/// what slices make is put together in f32, so that another launch would have to narrow it.
bool multiplies_halves(const Pair& pair, const ShapeContext& context) {
  const auto asked = [&](const Node& node) { return context.multiplies_narrow(node); };
  const auto& uses = pair.b->output()->uses;
  return asked(*pair.a) || std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return asked(*use.node); });
}

/// Pairs that may be cut.
std::vector<Cut> cuts_of(const std::vector<LiveBytes>& live, const ShapeContext& context) {
  std::map<const Node*, int64_t> at;  // looked up, never iterated
  for (const LiveBytes& l : live)
    if (l.node) at[l.node] = std::max(at[l.node], l.bytes);
  std::vector<Cut> cuts;
  for (const LiveBytes& l : live) {
    const std::optional<Pair> pair = l.node ? pair_from(l.node) : std::nullopt;
    if (!pair || multiplies_halves(*pair, context) || !at.contains(pair->b)) continue;
    Cut cut{*pair, l.graph, std::max(at[pair->a], at[pair->b]), 0, counts_of(*pair, context)};
    cut.others = at[pair->a] - constant_bytes(*pair->between()) + constant_bytes(*pair->b->output());
    if (!cut.counts.empty()) cuts.push_back(std::move(cut));
  }
  return cuts;
}

/// The bytes below which no slices bring the graph.
int64_t floor_of(const std::vector<LiveBytes>& live, const std::vector<Cut>& cuts) {
  int64_t floor = 0;
  for (const Cut& cut : cuts) floor = std::max(floor, std::min(cut.whole, cut.least()));
  for (const LiveBytes& l : live)
    if (std::none_of(cuts.begin(), cuts.end(),
                     [&](const Cut& cut) { return l.node == cut.pair.a || l.node == cut.pair.b; }))
      floor = std::max(floor, l.bytes);
  return floor;
}

ShapeVerdict verdict_of(const Pair& pair, int64_t count) {
  ShapeVerdict verdict{
      .pass = kPass,
      .nodes = {name_of_group(*pair.a), name_of_group(*pair.b)},
      .value = value_name(*pair.between()),
      .numbers = {{"slices", count}, {"channels", pair.channels / count}, {"bytes", constant_bytes(*pair.between())}}};
  for (const Node* node : {pair.a, pair.b})
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
  return verdict;
}

bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.switched_off(kPass)) return false;
  const std::vector<LiveBytes> live = live_bytes(fused, context.channel_block);
  const std::vector<Cut> cuts = cuts_of(live, context);
  const int64_t floor = floor_of(live, cuts);
  int64_t peak = 0;
  for (const LiveBytes& l : live) peak = std::max(peak, l.bytes);
  if (static_cast<double>(floor) >= (context.least_memory ? 1 : kWorth) * static_cast<double>(peak)) return false;
  for (const Cut& cut : cuts) {
    if (cut.whole <= floor) continue;
    const int64_t count =
        *std::find_if(cut.counts.begin(), cut.counts.end(), [&](int64_t c) { return cut.bytes(c) <= floor; });
    verdicts.push_back(verdict_of(cut.pair, count));
    Slicing(*cut.graph, cut.pair, count).run();
    if (cut.graph != &fused) cut.graph->remove_dead_nodes();
  }
  return true;
}

}  // namespace

ShapingPass run_in_slices() { return {kPass, "Pairs of groups that hold most memory run slice by slice.", run, true}; }

}  // namespace opfuse
