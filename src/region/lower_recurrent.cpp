// recurrent_steps: regions of one step, which a program runs in a loop. Domain [1, b, n], reduce [k].
//   result(g) = sum h[1, b, k] R_g[n, k]        one stage of as many sums as the cell has gates: the data is shared,
//   h'[1, b, n] = cell(x[1, b, g H + n] + result(g), ...)        the cell is its epilogue (region/join_sums.cpp)
// A GRU whose reset comes before its product takes two: z and r h first, then the product with r h.
// Weights that are not constants are read where they lie, row by row.
#include "expr/domain.hpp"
#include "ir/graph.hpp"
#include "ops/recurrent_steps.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

using Port = RecurrentSteps::Input;

IndexExpr along(int axis, Dim offset = 0) { return IndexExpr{{{1, axis}}, std::move(offset), {}}; }

/// Rows [first, first + hidden) of the weights.
Tensor rows_of(const Tensor& weights, int64_t first, int64_t count) {
  const int64_t columns = weights.dim(1);
  Tensor rows(weights.dtype(), {count, columns});
  for (int64_t i = 0; i < count * columns; ++i) rows.set_real(i, weights.real(first * columns + i));
  return rows;
}

/// One launch of the loop while its region is written down.
class StepRegion {
 public:
  StepRegion(const Node& node, std::vector<int64_t> gates)
      : node_(node), attrs_(node.as<RecurrentSteps>()), gates_(std::move(gates)) {
    const Shape& h = node.output()->type.shape;
    dtype_ = node.output()->type.dtype;
    state_ = Shape{Dim(1), h[1], h[2]};
    group_.steps = h[0];
    group_.backwards = attrs_.reverse;
    stage_.domain = state_.dims;
    stage_.reduce = {h[2]};
  }

  int64_t hidden() const { return state_[2].value(); }
  const Node& node() const { return node_; }
  Expr constant(double value) const { return Expr::constant(dtype_, value); }

  /// The state of the step before: h, or the LSTM's c.
  int state_before(size_t result) {
    const size_t start = result == 0 ? Port::kH0 : Port::kC0;
    const Value* initial = node_.input(start);
    const int first =
        initial->is_constant() ? constant_param(initial, {dtype_, state_}) : input(initial, {dtype_, state_});
    const int param = input(node_.outputs[result], {dtype_, state_});
    group_.step_operands[static_cast<size_t>(param)] = {false, true, first};
    return param;
  }
  /// The slice of this step.
  int of_step(const Value* value, const Shape& shape) {
    const TensorType type{value->type.dtype, shape};
    const int param = value->is_constant() ? constant_param(value, type) : input(value, type);
    group_.step_operands.back() = {true, false, -1};
    return param;
  }
  int whole(const Value* value) {
    return value->is_constant() ? constant_param(value, value->type) : input(value, value->type);
  }

  Expr read(int param, IndexMap map) {
    Read read{-1, param, std::move(map)};
    const DType dtype = group_.region.params[static_cast<size_t>(param)].type.dtype;
    for (size_t i = 0; i < stage_.reads.size(); ++i)
      if (stage_.reads[i] == read) return Expr::read(static_cast<int>(i), dtype);
    stage_.reads.push_back(std::move(read));
    return Expr::read(static_cast<int>(stage_.reads.size()) - 1, dtype);
  }
  /// A parameter [1, b, n] where the step stores.
  Expr here(int param) { return read(param, IndexMap::identity(3)); }
  /// A vector at n.
  Expr at_unit(int param, int64_t part = 0) { return read(param, {{along(2, Dim(part * hidden()))}}); }
  /// The input's share of a gate.
  Expr of_input(int64_t gate) {
    if (x_ < 0) x_ = of_step(node_.input(Port::kX), {Dim(1), state_[1], node_.input(Port::kX)->type.shape[2]});
    return read(x_, {{along(0), along(1), along(2, Dim(gate * hidden()))}});
  }

  /// The sums data R_g^T, in the order of the gates.
  std::vector<Expr> sums(int data) {
    const Expr left = read(data, {{along(0), along(1), along(3)}});
    std::vector<Expr> results;
    for (int64_t gate : gates_) {
      stage_.reductions.push_back({ReduceKind::sum, left * weights(gate)});
      results.push_back(Expr::result(static_cast<int>(stage_.reductions.size()) - 1, dtype_));
    }
    return results;
  }

  void store(size_t result, Expr value) {
    const int param = add({ParamRole::output, {dtype_, state_}}, {node_.outputs[result], {}, {}});
    group_.step_operands.back() = {true, false, -1};
    stage_.outputs.push_back({param, std::move(value), IndexMap::identity(3), state_, dtype_});
  }
  /// A state, which stays where the sequence has ended.
  void store_state(size_t result, Expr value, int before) {
    if (const Value* alive = node_.input(Port::kAlive)) {
      if (alive_ < 0) alive_ = of_step(alive, {Dim(1), state_[1]});
      value = select(read(alive_, {{along(0), along(1)}}), value, here(before));
    }
    store(result, std::move(value));
  }

  LoweredGroup take() {
    const bool fast = dtype_ == DType::f32 && node_.input(Port::kR)->is_constant();
    stage_.anchor = fast ? Anchor::contraction : Anchor::row;
    group_.region.stages.push_back(std::move(stage_));
    verify(group_.region);
    return std::move(group_);
  }

 private:
  const Node& node_;
  const RecurrentSteps::Attrs& attrs_;
  std::vector<int64_t> gates_;
  DType dtype_ = DType::f32;
  Shape state_;
  Stage stage_;
  LoweredGroup group_;
  int x_ = -1, alive_ = -1, r_ = -1;

  int add(Param param, LoweredOperand operand) {
    group_.region.params.push_back(std::move(param));
    group_.operands.push_back(std::move(operand));
    group_.step_operands.emplace_back();
    return static_cast<int>(group_.region.params.size()) - 1;
  }
  int input(const Value* value, const TensorType& type) { return add({ParamRole::input, type}, {value, {}, {}}); }
  int constant_param(const Value* value, const TensorType& type) {
    return add({ParamRole::constant, type}, {value, *value->constant, {}});
  }

  Expr weights(int64_t gate) {
    const Value* r = node_.input(Port::kR);
    if (!r->is_constant()) {
      if (r_ < 0) r_ = whole(r);
      return read(r_, {{along(2, Dim(gate * hidden())), along(3)}});
    }
    const int64_t n = hidden();
    const Tensor all = *r->constant;
    const TensorType type{dtype_, {Dim(n), Dim(n)}};
    const int param = add({ParamRole::constant, type}, {nullptr, {}, [=] { return rows_of(all, gate * n, n); }});
    return read(param, {{along(2), along(3)}});
  }
};

LoweredGroup rnn_step(const Node& node, const Cell& cell) {
  StepRegion s(node, {0});
  const int h = s.state_before(0);
  const Expr sum = s.sums(h)[0];
  s.store_state(0, activated(cell, 0, s.of_input(0) + sum), h);
  return s.take();
}

LoweredGroup lstm_step(const Node& node, const Cell& cell) {
  StepRegion s(node, {0, 1, 2, 3});
  const int h = s.state_before(0), c = s.state_before(1);
  const std::vector<Expr> sums = s.sums(h);
  const LstmSums<Expr> gates{s.of_input(0) + sums[0], s.of_input(1) + sums[1], s.of_input(2) + sums[2],
                             s.of_input(3) + sums[3]};
  std::vector<Expr> peepholes;
  if (const Value* p = node.input(Port::kP)) {
    const int param = s.whole(p);
    for (int64_t i = 0; i < 3; ++i) peepholes.push_back(s.at_unit(param, i));
  }
  const LstmState<Expr> state = lstm_state(cell, gates, s.here(c), peepholes.empty() ? nullptr : peepholes.data());
  s.store_state(1, state.c, c);
  s.store_state(0, state.h, h);
  return s.take();
}

/// z h + (1 - z) n where the reset follows the product.
LoweredGroup gru_step(const Node& node, const Cell& cell) {
  StepRegion s(node, {0, 1, 2});
  const int h = s.state_before(0);
  const std::vector<Expr> sums = s.sums(h);
  const Expr z = activated(cell, 0, s.of_input(0) + sums[0]), r = activated(cell, 0, s.of_input(1) + sums[1]);
  Expr product = sums[2];
  if (const Value* b = node.input(Port::kB)) product = product + s.at_unit(s.whole(b));
  s.store_state(0, gru_state(cell, z, s.of_input(2) + r * product, s.here(h)), h);
  return s.take();
}

std::vector<LoweredGroup> gru_steps_reset_first(const Node& node, const Cell& cell) {
  StepRegion gates(node, {0, 1});
  const int h = gates.state_before(0);
  const std::vector<Expr> sums = gates.sums(h);
  const Expr before_reset = gates.here(h);
  gates.store(1, activated(cell, 0, gates.of_input(1) + sums[1]) * before_reset);
  gates.store(2, activated(cell, 0, gates.of_input(0) + sums[0]));
  StepRegion state(node, {2});
  const Shape slice{Dim(1), node.output()->type.shape[1], node.output()->type.shape[2]};
  const int reset = state.of_step(node.outputs[1], slice), z = state.of_step(node.outputs[2], slice);
  const int before = state.state_before(0);
  const Expr sum = state.sums(reset)[0];
  state.store_state(0, gru_state(cell, state.here(z), state.of_input(2) + sum, state.here(before)), before);
  std::vector<LoweredGroup> groups;
  groups.push_back(gates.take());
  groups.push_back(state.take());
  return groups;
}

void refuse_layer(Lowering&, const Node& node) {
  decline("recurrent", "a recurrent layer is a loop of launches, one for each step, which nothing joins", node);
}

constexpr LowerRule kRules[] = {{.op = "rnn", .anchor = refuse_layer},
                                {.op = "gru", .anchor = refuse_layer},
                                {.op = "lstm", .anchor = refuse_layer},
                                {.op = "recurrent_steps", .anchor = refuse_layer}};

}  // namespace

std::span<const LowerRule> recurrent_rules() { return kRules; }

std::variant<std::vector<LoweredGroup>, Decline> lower_steps(const Node& node) {
  const Cell cell = node.as<RecurrentSteps>().as_cell();
  for (const Value* value : node.inputs)
    if (value && !value->type.shape.ranked) return Decline{"unknown_shape", "the rank of an operand is not known", {}};
  if (!node.output()->type.shape[2].is_constant())
    return Decline{"unknown_shape", "the size of the hidden state is not known", {node.name()}};
  std::vector<LoweredGroup> groups;
  if (cell.kind == CellKind::rnn) groups.push_back(rnn_step(node, cell));
  if (cell.kind == CellKind::lstm) groups.push_back(lstm_step(node, cell));
  if (cell.kind == CellKind::gru && cell.linear_before_reset) groups.push_back(gru_step(node, cell));
  if (groups.empty()) groups = gru_steps_reset_first(node, cell);
  return groups;
}

}  // namespace opfuse
