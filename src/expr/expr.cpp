// Building expressions. Nodes are hash-consed: structurally equal expressions are one node, so sharing
// is never lost, equality is identity, and generators emit every common subexpression once.
// `make` folds constants and the identities that are exact for every operand (x*1, x-0, select of
// equal branches); nothing that could change a rounding or the sign of a zero.
#include "expr/expr.hpp"

#include <array>
#include <bit>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "expr/domain.hpp"
#include "expr/expr_node.hpp"
#include "expr/expr_types.hpp"
#include "expr/visit_each.hpp"

namespace opfuse {

namespace {

using Shared = std::shared_ptr<const ExprNode>;

uint64_t key_of(const ExprNode& n) {
  std::vector<uint64_t> words = {
      static_cast<uint64_t>(n.op),    static_cast<uint64_t>(n.dtype),  n.weak,
      static_cast<uint64_t>(n.index), std::bit_cast<uint64_t>(n.real), static_cast<uint64_t>(n.integer)};
  if (n.op == ExprOp::extent) words.push_back(hash_text(n.dim.text()).low);
  for (const Expr& arg : n.args) words.push_back(reinterpret_cast<uint64_t>(arg.node()));
  return hash_bytes(words.data(), words.size() * sizeof(uint64_t)).low;
}

bool same(const ExprNode& a, const ExprNode& b) {
  if (a.op != b.op || a.dtype != b.dtype || a.weak != b.weak || a.index != b.index || a.integer != b.integer)
    return false;
  if (std::bit_cast<uint64_t>(a.real) != std::bit_cast<uint64_t>(b.real) || a.args.size() != b.args.size())
    return false;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (a.args[i].node() != b.args[i].node()) return false;
  }
  return a.op != ExprOp::extent || a.dim == b.dim;
}

/// All living nodes of the process. The addresses in it order nothing that can be seen.
class NodeTable {
 public:
  Shared intern(ExprNode node) {
    const uint64_t key = key_of(node);
    std::lock_guard lock(mutex_);
    auto [first, last] = nodes_.equal_range(key);
    for (auto at = first; at != last;) {
      Shared living = at->second.lock();
      if (living && same(*living, node)) return living;
      at = living ? std::next(at) : nodes_.erase(at);
    }
    if (nodes_.size() > sweep_at_) {
      std::erase_if(nodes_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * nodes_.size() + 1024;
    }
    node.ops = node.op;
    for (const Expr& arg : node.args) node.ops = node.ops | arg.node()->ops;
    auto made = std::make_shared<const ExprNode>(std::move(node));
    nodes_.emplace(key, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<uint64_t, std::weak_ptr<const ExprNode>> nodes_;
  size_t sweep_at_ = 1024;
};

Shared intern(ExprNode node) {
  static NodeTable& table = *new NodeTable;  // never destroyed: other statics may hold expressions
  return table.intern(std::move(node));
}

ScalarValue value_of(const Expr& e) { return {e.dtype(), e.node()->real, e.node()->integer}; }

bool is_number(const Expr& e, double value) {
  if (!e.is_constant()) return false;
  if (!is_float(e.dtype())) return static_cast<double>(e.integer_value()) == value;
  return std::bit_cast<uint64_t>(e.value()) == std::bit_cast<uint64_t>(value);
}

/// Gives a weak expression a dtype: constants are converted, operations rebuilt.
Expr harden(const Expr& e, DType dtype) {
  if (!e.weak()) return e;
  if (e.is_constant()) {
    const ScalarValue v = harden_constant(e.value(), dtype);
    return is_float(dtype) ? Expr::constant(dtype, v.real) : Expr::integer(dtype, v.integer);
  }
  std::vector<Expr> args;
  for (const Expr& arg : e.args()) args.push_back(harden(arg, dtype));
  return Expr::make(e.op(), std::move(args));
}

/// The operand an exact identity reduces the operation to, or an empty Expr.
Expr identity_of(ExprOp op, const std::vector<Expr>& args) {
  switch (op) {
    case ExprOp::select:
      if (args[0].is_constant()) return args[0].integer_value() != 0 ? args[1] : args[2];
      return args[1].node() == args[2].node() ? args[1] : Expr();
    case ExprOp::mul:
      if (is_number(args[1], 1)) return args[0];
      return is_number(args[0], 1) ? args[1] : Expr();
    case ExprOp::div:
      return is_number(args[1], 1) ? args[0] : Expr();
    case ExprOp::sub:
      return is_number(args[1], 0) ? args[0] : Expr();
    case ExprOp::add: {
      const double zero = is_float(args[0].dtype()) ? -0.0 : 0.0;  // x + 0.0 turns -0.0 into 0.0
      if (is_number(args[1], zero)) return args[0];
      return is_number(args[0], zero) ? args[1] : Expr();
    }
    default:
      return Expr();
  }
}

}  // namespace

Expr::Expr(double weak_constant) {
  ExprNode n;
  n.weak = true;
  n.real = weak_constant;
  node_ = intern(std::move(n));
}

Expr Expr::constant(DType dtype, double value) {
  if (!is_float(dtype)) return integer(dtype, harden_constant(value, dtype).integer);
  ExprNode n;
  n.dtype = dtype;
  n.real = value;
  return Expr(intern(std::move(n)));
}

Expr Expr::integer(DType dtype, int64_t value) {
  if (is_float(dtype)) return constant(dtype, static_cast<double>(value));
  ExprNode n;
  n.dtype = dtype;
  n.integer = evaluate_op(ExprOp::cast, dtype, {{DType::i64, 0, value}}, Precision::exact).integer;
  return Expr(intern(std::move(n)));
}

Expr Expr::read(int index, DType dtype) {
  ExprNode n;
  n.op = ExprOp::read, n.dtype = dtype, n.index = index;
  return Expr(intern(std::move(n)));
}

Expr Expr::in_bounds(int index) {
  ExprNode n;
  n.op = ExprOp::in_bounds, n.dtype = DType::boolean, n.index = index;
  return Expr(intern(std::move(n)));
}

Expr Expr::coord(int axis) {
  ExprNode n;
  n.op = ExprOp::coord, n.dtype = DType::i64, n.index = axis;
  return Expr(intern(std::move(n)));
}

Expr Expr::result(int index, DType dtype) {
  ExprNode n;
  n.op = ExprOp::result, n.dtype = dtype, n.index = index;
  return Expr(intern(std::move(n)));
}

Expr Expr::extent(Dim dim) {
  if (dim.is_constant()) return integer(DType::i64, dim.value());
  ExprNode n;
  n.op = ExprOp::extent, n.dtype = DType::i64, n.dim = std::move(dim);
  return Expr(intern(std::move(n)));
}

Expr Expr::make(ExprOp op, std::vector<Expr> args) {
  OPFUSE_CHECK(op > ExprOp::extent && op < ExprOp::cast && static_cast<int>(args.size()) == arity(op),
               "{} of {} operands", name_of(op), args.size());
  std::vector<DType> dtypes;
  for (const Expr& arg : args) {
    OPFUSE_CHECK(arg.node_ != nullptr, "{} of an empty expression", name_of(op));
    dtypes.push_back(arg.weak() ? DType::unknown : arg.dtype());
  }
  const DType common = operand_dtype(op, dtypes);
  const DType result = result_dtype(op, dtypes);
  bool constant = true;
  for (size_t i = 0; i < args.size(); ++i) {
    if (common != DType::unknown && !is_condition(op, i)) args[i] = harden(args[i], common);
    constant = constant && args[i].is_constant();
  }
  ExprNode n;
  n.dtype = result == DType::unknown ? DType::f64 : result;
  n.weak = result == DType::unknown;
  if (constant) {
    std::vector<ScalarValue> values;
    for (const Expr& arg : args) values.push_back(value_of(arg));
    const ScalarValue v = evaluate_op(op, n.dtype, values, Precision::exact);
    n.real = v.real, n.integer = v.integer;
    return Expr(intern(std::move(n)));
  }
  if (Expr simpler = identity_of(op, args)) return simpler;
  n.op = op;
  n.args = std::move(args);
  return Expr(intern(std::move(n)));
}

Expr Expr::make_cast(Expr x, DType to) {
  OPFUSE_CHECK(x.node_ != nullptr && byte_size(to) > 0, "cast to {}", name_of(to));
  if (x.weak() && (is_float(to) || !x.is_constant())) return harden(x, to);
  if (x.dtype() == to && !x.weak()) return x;
  if (x.is_constant()) {
    const ScalarValue v = evaluate_op(ExprOp::cast, to, {value_of(x)}, Precision::exact);
    return is_float(to) ? constant(to, v.real) : integer(to, v.integer);
  }
  ExprNode n;
  n.op = ExprOp::cast, n.dtype = to;
  n.args.push_back(std::move(x));
  return Expr(intern(std::move(n)));
}

Expr Expr::make_bit_cast(Expr x, DType to) {
  OPFUSE_CHECK(x.node_ != nullptr && !x.weak(), "the bits of a number without a type");
  if (bit_size(x.dtype()) != bit_size(to) || bit_size(to) == 0)
    throw fail(E::dtype_mismatch, "{} and {} differ in size", name_of(x.dtype()), name_of(to));
  if (x.dtype() == to) return x;
  if (x.is_constant()) {
    const ScalarValue v = evaluate_op(ExprOp::bit_cast, to, {value_of(x)}, Precision::exact);
    return is_float(to) ? constant(to, v.real) : integer(to, v.integer);
  }
  ExprNode n;
  n.op = ExprOp::bit_cast, n.dtype = to;
  n.args.push_back(std::move(x));
  return Expr(intern(std::move(n)));
}

ExprOp Expr::op() const {
  OPFUSE_CHECK(node_ != nullptr);
  return node_->op;
}
DType Expr::dtype() const {
  OPFUSE_CHECK(node_ != nullptr);
  return node_->dtype;
}
bool Expr::weak() const { return node_ != nullptr && node_->weak; }
const std::vector<Expr>& Expr::args() const {
  OPFUSE_CHECK(node_ != nullptr);
  return node_->args;
}
int Expr::index() const {
  OPFUSE_CHECK(node_ != nullptr);
  return node_->index;
}
double Expr::value() const {
  OPFUSE_CHECK(node_ != nullptr && node_->op == ExprOp::constant);
  return is_float(node_->dtype) ? node_->real : static_cast<double>(node_->integer);
}
int64_t Expr::integer_value() const {
  OPFUSE_CHECK(node_ != nullptr && node_->op == ExprOp::constant);
  return value_of(*this).as_integer();
}
const Dim& Expr::dim() const {
  OPFUSE_CHECK(node_ != nullptr && node_->op == ExprOp::extent);
  return node_->dim;
}

bool holds(const Expr& e, ExprOps ops) { return e && e.node()->ops.meets(ops); }

bool Expr::operator==(const Expr& other) const { return node_ == other.node_; }

namespace {

/// Nodes in order of their coming, by address. A table in place of std's: visits are the largest part of planning, most
/// expressions have few nodes, and no piece of memory is taken for any of them.
class NodeNumbers {
 public:
  /// The number of a node, and whether it is new.
  std::pair<size_t, bool> add(const ExprNode* node) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(slots_, node);
    if (slot.node == node) return {slot.number, false};
    slot = {node, count_};
    return {count_++, true};
  }
  /// Of a node that may not have come; then nothing.
  std::optional<size_t> find(const ExprNode* node) {
    const Slot& slot = slot_of(slots_, node);
    return slot.node == node ? std::optional(slot.number) : std::nullopt;
  }

 private:
  struct Slot {
    const ExprNode* node = nullptr;
    size_t number = 0;
  };
  static constexpr size_t kFew = 64;  // a power of two
  std::array<Slot, kFew> few_{};
  std::vector<Slot> many_;
  std::span<Slot> slots_{few_};
  size_t count_ = 0;

  static Slot& slot_of(std::span<Slot> slots, const ExprNode* node) {
    const size_t last = slots.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15u >> 32) & last;
    while (slots[at].node && slots[at].node != node) at = (at + 1) & last;
    return slots[at];
  }
  void grow() {
    std::vector<Slot> more(4 * slots_.size());
    for (const Slot& slot : slots_)
      if (slot.node) slot_of(more, slot.node) = slot;
    many_ = std::move(more);
    slots_ = many_;
  }
};

}  // namespace

void Expr::visit(const std::function<void(const Expr&)>& each) const {
  if (!node_) return;
  if (args().empty()) return each(*this);
  const Expr* self = this;
  visit_each({&self, 1}, each);
}

void visit_each(std::span<const Expr* const> values, const std::function<void(const Expr&)>& each) {
  NodeNumbers seen;
  auto walk = [&](auto& self, const Expr& e) -> void {
    if (!e || !seen.add(e.node()).second) return;
    for (const Expr& arg : e.args()) self(self, arg);
    each(e);
  };
  for (const Expr* value : values) walk(walk, *value);
}

Expr rebuilt(const Expr& e, std::vector<Expr> args) {
  if (e.op() == ExprOp::cast) return Expr::make_cast(std::move(args[0]), e.dtype());
  if (e.op() == ExprOp::bit_cast) return Expr::make_bit_cast(std::move(args[0]), e.dtype());
  return Expr::make(e.op(), std::move(args));
}

Expr replaced(const Expr& e, const Expr& from, const Expr& to) {
  std::unordered_map<const ExprNode*, Expr> made;
  e.visit([&](const Expr& node) {
    std::vector<Expr> args;
    for (const Expr& arg : node.args()) args.push_back(made.at(arg.node()));
    made.emplace(node.node(), node == from ? to : args == node.args() ? node : rebuilt(node, std::move(args)));
  });
  return made.at(e.node());
}

std::vector<Expr> nodes_of(const Expr& e) {
  std::vector<Expr> nodes;
  e.visit([&](const Expr& node) { nodes.push_back(node); });
  return nodes;
}

Expr Expr::map_leaves(const std::function<Expr(const Expr&)>& leaf) const {
  if (!node_) return {};
  if (args().empty()) return leaf(*this);
  NodeNumbers numbers;
  std::vector<Expr> made;  // by number
  auto walk = [&](auto& self, const Expr& e) -> size_t {
    if (const auto known = numbers.find(e.node())) return *known;
    std::vector<size_t> at;
    for (const Expr& arg : e.args()) at.push_back(self(self, arg));
    bool same = true;
    for (size_t i = 0; i < at.size(); ++i) same = same && made[at[i]].node() == e.args()[i].node();
    if (e.args().empty()) {
      made.push_back(leaf(e));
    } else if (same) {
      made.push_back(e);
    } else {
      std::vector<Expr> args;
      for (const size_t i : at) args.push_back(made[i]);
      made.push_back(rebuilt(e, std::move(args)));
    }
    return numbers.add(e.node()).first;
  };
  return made[walk(walk, *this)];
}

}  // namespace opfuse
