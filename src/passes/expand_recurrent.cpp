// Everything but the steps is written in operators that exist, so layouts, batch first, initial states and ends of
// sequences are index maps and views of what lowers them. Weights that are constant are folded in the end.
#include "passes/expand_recurrent.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/fail.hpp"
#include "ir/body.hpp"
#include "ir/outline.hpp"
#include "ops/recurrent.hpp"
#include "ops/recurrent_steps.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

std::optional<CellKind> kind_of(const Node& node) {
  if (node.is("rnn")) return CellKind::rnn;
  if (node.is("gru")) return CellKind::gru;
  if (node.is("lstm")) return CellKind::lstm;
  return std::nullopt;
}

const RecurrentAttrs& attrs_of(const Node& node, CellKind kind) {
  if (kind == CellKind::rnn) return node.as<Rnn>();
  if (kind == CellKind::gru) return node.as<Gru>();
  return node.as<Lstm>();
}

class Expansion {
 public:
  Expansion(Graph& graph, Node& node, CellKind kind)
      : graph_(graph), node_(node), kind_(kind), a_(attrs_of(node, kind)), directions_(a_.directions()) {
    const Shape& x = input(kSequence)->type.shape;
    time_ = x[a_.batch_first() ? 1 : 0];
    batch_ = x[a_.batch_first() ? 0 : 1];
    hidden_ = input(kStateWeights)->type.shape[2].value();
    gates_ = gates_of(kind) * hidden_;
    dtype_ = input(kSequence)->type.dtype;
  }

  void run() {
    settle();
    for (int64_t d = 0; d < directions_; ++d) starts_.push_back(initial_state(kH0, d));
    for (int64_t d = 0; kind_ == CellKind::lstm && d < directions_; ++d) starts_.push_back(initial_state(kC0, d));
    if (time_ == Dim(0)) {
      no_steps();
    } else {
      const std::vector<Value*> products = products_with_input();
      if (input(kLengths)) alive_ = alive();
      for (int64_t d = 0; d < directions_; ++d) steps(d, products[static_cast<size_t>(d)]);
    }
    if (wanted(0)) replace(0, sequence());
    for (size_t result : {size_t{1}, size_t{2}})
      if (wanted(result)) replace(result, result == 1 ? last_states(h_, kH0) : last_states(c_, kC0));
    const std::string name = node_.name(), label = "RecurrentInput__" + name;
    graph_.erase(&node_);
    if (!product_.empty()) outline(graph_, product_, {fused_op(), label, "Recurrent"});
    for (const std::vector<Node*>& end : ends_)
      outline(graph_, end, {fused_op(), "RecurrentEnd__" + name, "Recurrent"});
  }

 private:
  Graph& graph_;
  Node& node_;
  CellKind kind_;
  const RecurrentAttrs& a_;
  int64_t directions_, hidden_ = 0, gates_ = 0;
  Dim time_ = 0, batch_ = 0;
  DType dtype_ = DType::f32;
  Value* alive_ = nullptr;                  ///< [time, batch]
  std::vector<Value*> starts_;              ///< initial h, then initial c of each direction
  std::vector<Value*> h_, c_;               ///< by direction: [time, batch, hidden]
  std::vector<Node*> added_, product_;      ///< so far; what is one launch
  std::vector<std::vector<Node*>> ends_{};  ///< one launch each
  Value* zeros_ = nullptr;

  std::vector<Value*> operands_ = node_.inputs;

  Value* input(size_t i) const { return i < operands_.size() ? operands_[i] : nullptr; }

  /// Extents that follow from the layer are open where a model leaves them so; a run checks them.
  void settle() {
    const auto settled = [&](size_t i, const std::vector<int64_t>& extents) {  // 0: as it is
      if (!input(i)) return;
      const Shape& shape = input(i)->type.shape;
      bool same = true;
      for (size_t d = 0; d < extents.size(); ++d) same = same && (extents[d] == 0 || shape[d] == Dim(extents[d]));
      if (!same) operands_[i] = reshape(input(i), extents);
    };
    settled(kInputWeights, {directions_, gates_, 0});
    settled(kStateWeights, {directions_, gates_, hidden_});
    settled(kBias, {directions_, 2 * gates_});
    settled(kPeepholes, {directions_, 3 * hidden_});
    const std::vector<int64_t> state = a_.batch_first() ? std::vector<int64_t>{0, directions_, hidden_}
                                                        : std::vector<int64_t>{directions_, 0, hidden_};
    settled(kH0, state);
    settled(kC0, state);
  }
  bool wanted(size_t i) const { return i < node_.outputs.size() && graph_.read_count(node_.outputs[i]) > 0; }
  bool apart() const { return kind_ == CellKind::gru && a_.linear_before_reset; }

  Node* add(const OpInfo* op, std::vector<Value*> operands, const AttrMap& attrs = {}, size_t outputs = 1) {
    Node* node = graph_.add_node(op, attrs, std::move(operands), outputs, node_.sources, &node_);
    added_.push_back(node);
    return node;
  }
  Value* op(const char* name, std::vector<Value*> operands, const AttrMap& attrs = {}) {
    return add(op_named(name), std::move(operands), attrs)->output();
  }
  Value* integers(const std::vector<int64_t>& values) { return graph_.add_constant(Tensor::from_i64(values)); }
  Value* transpose(Value* x, const std::vector<int64_t>& perm) { return op("transpose", {x}, {{"perm", perm}}); }
  Value* reshape(Value* x, const std::vector<int64_t>& shape) { return op("reshape", {x, integers(shape)}); }
  Value* slice(Value* x, int64_t axis, int64_t from, int64_t to) {
    return op("slice", {x, integers({from}), integers({to}), integers({axis})});
  }
  Value* concat(std::vector<Value*> parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : op("concat", std::move(parts), {{"axis", axis}});
  }
  /// Part `d` of an operand [directions, ..] without that axis.
  Value* part(Value* x, int64_t d) { return op("squeeze", {slice(x, 0, d, d + 1), integers({0})}); }

  Value* named(Value* value, const std::string& suffix) {
    const std::string name = fmt::format("{}.{}", node_.name(), suffix);
    if (value->name.empty() && !graph_.find_value(name)) value->name = name;
    return value;
  }
  std::string direction_name(int64_t d) const { return a_.reverse(d) ? "backward" : "forward"; }

  /// x W^T + b, [time, batch, gates * hidden] of each direction.
  std::vector<Value*> products_with_input() {
    Value* bias = input(kBias) ? biases() : nullptr;
    Value* weights = transpose(input(kInputWeights), {2, 0, 1});
    weights = reshape(weights, {0, directions_ * gates_});
    const size_t from = added_.size();
    Value* x = a_.batch_first() ? transpose(input(kSequence), {1, 0, 2}) : input(kSequence);
    Value* sum = op("matmul", {x, weights});
    if (bias) sum = op("add", {sum, bias});
    product_.assign(added_.begin() + static_cast<std::ptrdiff_t>(from), added_.end());
    Value* all = named(sum, "input");
    if (directions_ == 1) return {all};
    Node* parts = add(op_named("split"), {all, integers({gates_, gates_})}, {{"axis", int64_t{2}}}, 2);
    return {named(parts->outputs[0], "input_forward"), named(parts->outputs[1], "input_backward")};
  }

  /// Of w and r, [directions * gates * hidden]; without r's that comes behind a GRU's product.
  Value* biases() {
    Value* of_w = slice(input(kBias), 1, 0, gates_);
    Value* of_r = slice(input(kBias), 1, gates_, 2 * gates_);
    if (!apart()) return reshape(op("add", {of_w, of_r}), {-1});
    Value* sums = op("add", {slice(of_w, 1, 0, 2 * hidden_), slice(of_r, 1, 0, 2 * hidden_)});
    return reshape(concat({sums, slice(of_w, 1, 2 * hidden_, gates_)}, 1), {-1});
  }

  /// Of the sequence, as a vector of one number.
  Value* batch_size() {
    const int64_t axis = a_.batch_first() ? 0 : 1;
    return slice(op("shape", {input(kSequence)}), 0, axis, axis + 1);
  }
  /// An operand whose batch may have a name of its own, with the sequence's: steps read both at one index.
  Value* of_batch(Value* x, size_t axis) {
    if (x->type.shape[axis] == batch_) return x;
    std::vector<Value*> target;
    for (size_t i = 0; i < x->type.shape.rank(); ++i)
      target.push_back(i != axis ? integers({0}) : batch_.is_constant() ? integers({batch_.value()}) : batch_size());
    return op("reshape", {x, concat(std::move(target), 0)});
  }

  /// t < sequence_lens[b]
  Value* alive() {
    Value* lengths = of_batch(op("cast", {input(kLengths)}, {{"to", DType::i64}}), 0);
    Value* steps = nullptr;
    if (time_.is_constant()) {
      Tensor numbers(DType::i64, {time_.value(), 1});
      for (int64_t t = 0; t < time_.value(); ++t) numbers.set_integer(t, t);
      steps = graph_.add_constant(std::move(numbers));
    } else {
      const int64_t axis = a_.batch_first() ? 1 : 0;
      Value* count = op("squeeze", {slice(op("shape", {input(kSequence)}), 0, axis, axis + 1), integers({0})});
      const auto scalar = [&](int64_t v) {
        return graph_.add_constant(Tensor::scalar(DType::i64, static_cast<double>(v)));
      };
      steps = op("unsqueeze", {op("range", {scalar(0), count, scalar(1)}), integers({1})});
    }
    return named(op("less", {steps, op("unsqueeze", {lengths, integers({0})})}), "alive");
  }

  /// [1, batch, hidden]
  Value* initial_state(size_t operand, int64_t d) {
    if (Value* given = input(operand)) {
      if (a_.batch_first()) given = transpose(given, {1, 0, 2});
      given = of_batch(given, 1);
      return directions_ == 1 ? given : slice(given, 0, d, d + 1);
    }
    if (zeros_) return zeros_;
    const int64_t batch = batch_.is_constant() ? batch_.value() : 1;
    zeros_ = graph_.add_constant(
        Tensor::of(dtype_, {1, batch, hidden_}, std::vector<double>(static_cast<size_t>(batch * hidden_), 0.0)));
    if (batch_.is_constant()) return zeros_;
    zeros_ = named(op("expand", {zeros_, concat({integers({1}), batch_size(), integers({hidden_})}, 0)}), "zeros");
    return zeros_;
  }

  Value* start(size_t initial, int64_t d) const {
    return starts_[static_cast<size_t>(initial == kH0 ? d : directions_ + d)];
  }

  /// Sequences of length 0: a slice without rows of what the states begin with, of which nothing is read.
  void no_steps() {
    for (int64_t d = 0; d < directions_; ++d) {
      h_.push_back(slice(start(kH0, d), 0, 0, 0));
      if (kind_ == CellKind::lstm) c_.push_back(slice(start(kC0, d), 0, 0, 0));
    }
  }

  void steps(int64_t d, Value* product) {
    AttrMap attrs = {{"cell", std::string(enum_names<CellKind>[static_cast<size_t>(kind_)])},
                     {"reverse", a_.reverse(d)},
                     {"clip", a_.clip},
                     {"input_forget", a_.input_forget},
                     {"linear_before_reset", a_.linear_before_reset}};
    cell_attributes(a_.cell(kind_, d), attrs);
    std::vector<Value*> operands = {product, part(input(kStateWeights), d), start(kH0, d)};
    const bool lstm = kind_ == CellKind::lstm;
    operands.push_back(lstm ? start(kC0, d) : nullptr);
    operands.push_back(apart() && input(kBias) ? part(slice(input(kBias), 1, 2 * gates_ - hidden_, 2 * gates_), d)
                                               : nullptr);
    operands.push_back(input(kPeepholes) ? part(input(kPeepholes), d) : nullptr);
    operands.push_back(alive_);
    const size_t results = lstm ? 2 : kind_ == CellKind::gru && !a_.linear_before_reset ? 3 : 1;
    Node* node = add(recurrent_steps_op(), std::move(operands), attrs, results);
    const std::string direction = directions_ == 2 ? direction_name(d) + "_" : "";
    node->label = fmt::format("RecurrentSteps__{}{}", directions_ == 2 ? direction_name(d) + "__" : "", node_.name());
    h_.push_back(named(node->output(), direction + "h"));
    if (lstm) c_.push_back(named(node->outputs[1], direction + "c"));
    if (results == 3) named(node->outputs[1], direction + "reset"), named(node->outputs[2], direction + "update");
  }

  /// Functions with all their numbers.
  static void cell_attributes(const Cell& cell, AttrMap& attrs) {
    std::vector<std::string> names;
    std::vector<double> alphas, betas;
    for (const CellFunction& f : cell.functions) {
      names.push_back(name_of(f.law));
      if (has_alpha(f.law)) alphas.push_back(f.alpha);
      if (has_beta(f.law)) betas.push_back(f.beta);
    }
    attrs.emplace_back("activations", names);
    attrs.emplace_back("activation_alpha", alphas);
    attrs.emplace_back("activation_beta", betas);
  }

  /// [time, directions, batch, hidden]; behind the end of a sequence 0.
  Value* sequence() {
    std::vector<Value*> parts = h_;
    if (alive_) {
      Value* zero = graph_.add_constant(Tensor::scalar(dtype_, 0));
      for (Value*& h : parts) h = op("where", {op("unsqueeze", {alive_, integers({2})}), h, zero});
    }
    if (directions_ == 1) {
      if (a_.batch_first()) return op("unsqueeze", {transpose(parts[0], {1, 0, 2}), integers({2})});
      return op("unsqueeze", {parts[0], integers({1})});
    }
    // [time, 2 * batch, hidden] is the same memory, and its parts are views
    Value* both = named(concat(parts, 1), "both");
    const bool some = time_.is_constant() && time_.value() > 0;
    Value* y = !some && !batch_.is_constant()  // of no elements no extent follows
                   ? op("reshape", {both, concat({integers({0, 2}), batch_size(), integers({hidden_})}, 0)})
                   : reshape(both, {0, 2, batch_.is_constant() ? batch_.value() : -1, hidden_});
    return a_.batch_first() ? transpose(y, {2, 0, 1, 3}) : y;
  }

  /// [directions, batch, hidden] where each direction ends.
  Value* last_states(const std::vector<Value*>& states, size_t initial) {
    std::vector<Value*> ends;
    for (int64_t d = 0; d < directions_; ++d) ends.push_back(last_state(d, states[static_cast<size_t>(d)], initial));
    Value* end = concat(ends, 0);
    return a_.batch_first() ? transpose(end, {1, 0, 2}) : end;
  }

  /// A sequence that may have no step at all ends where it begins.
  Value* last_state(int64_t d, Value* all, size_t initial) {
    Value* const begin = start(initial, d);
    if (time_ == Dim(0)) return begin;
    const size_t from = added_.size();
    const bool back = a_.reverse(d);
    if (!time_.is_constant()) all = concat(back ? std::vector<Value*>{all, begin} : std::vector<Value*>{begin, all}, 0);
    Value* end = back ? slice(all, 0, 0, 1) : slice(all, 0, -1, kEnd);
    if (!time_.is_constant()) ends_.emplace_back(added_.begin() + static_cast<std::ptrdiff_t>(from), added_.end());
    return end;
  }

  void replace(size_t result, Value* value) {
    Value* old = node_.outputs[result];
    const TensorType type = old->type;
    if (!graph_.can_replace(old, value)) value = op("identity", {value});  // an initial state is the last one
    take_over(graph_, old, value);
    if (compatible(value->type, type)) value->type = type;
  }
};

}  // namespace

bool expand_recurrent(Graph& graph) {
  bool any = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (node->body && !stands_for_body(*node)) expand_recurrent(*node->body);
    const std::optional<CellKind> kind = kind_of(*node);
    if (!kind || !node->input(kSequence)->type.shape.ranked || !node->input(kStateWeights)->type.shape.ranked) continue;
    if (!node->input(kStateWeights)->type.shape[2].is_constant()) continue;
    Expansion(graph, *node, *kind).run();
    any = true;
  }
  if (any) run_passes(graph, {fold_constants()});
  return any;
}

}  // namespace opfuse
