// Group -> region: walks the group's nodes and keeps what each value is (lowering.hpp has the picture).
// Families add rules; elementwise operators come from their law, fused and composite nodes from their
// bodies, so nothing here names an operator.
#include "region/lower.hpp"

#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "ir/body.hpp"
#include "ir/dim_values.hpp"
#include "ir/located.hpp"
#include "ir/value_name.hpp"
#include "region/computed_indices.hpp"
#include "region/lowering.hpp"
#include "region/map_hash.hpp"

namespace opfuse {

const LowerRule* find_rule(std::string_view op) {
  static const std::array families = {
      conv_rules(),   gemm_rules(),      pool_rules(),          reduce_rules(),     move_rules(),
      resize_rules(), gather_rules(),    norm_rules(),          einsum_rules(),     scatter_rules(),
      shape_rules(),  quantize_rules(),  sort_rules(),          statistics_rules(), conv_transpose_rules(),
      grid_rules(),   recurrent_rules(), matmul_integer_rules()};
  for (std::span<const LowerRule> family : families)
    for (const LowerRule& rule : family)
      if (rule.op == op) return &rule;
  return nullptr;
}

void decline(std::string code, std::string message, const Node& node, std::vector<std::string> evidence) {
  evidence.insert(evidence.begin(), fmt::format("{} ({})", node.name(), source_operator(node)));
  throw DeclineSignal{Decline{std::move(code), std::move(message), std::move(evidence)}};
}

Lowering::Lowering(const Node& group, bool stretches) : group_(group), stretches_(stretches) {}

const Value* Lowering::resolve(const Value* value) const {
  for (auto it = defs_.find(value); it != defs_.end() && it->second.kind == Def::alias; it = defs_.find(value))
    value = it->second.outer;
  return value;
}

/// Values nobody defined yet are operands of the group.
Lowering::Def& Lowering::def_of(const Value* value) {
  value = resolve(value);
  auto [it, fresh] = defs_.try_emplace(value);
  if (fresh) {
    it->second.outer = value;
    it->second.type = value->type;
    it->second.constant = value->constant ? &*value->constant : nullptr;
  }
  return it->second;
}

void Lowering::bind_alias(const Value* inner, const Value* outer) {
  if (inner == outer) return;
  Def def;
  def.kind = Def::alias;
  def.outer = outer;
  defs_[inner] = std::move(def);
}

const Tensor* Lowering::constant_of(const Value* value) const {
  if (value == nullptr) return nullptr;
  value = resolve(value);
  return value->constant ? &*value->constant : nullptr;
}

std::vector<int64_t> Lowering::integers_of(const Node& node, size_t input) const {
  const Tensor* constant = constant_of(node.input(input));
  if (constant == nullptr) decline("dynamic_operand", fmt::format("operand {} must be constant", input), node);
  return constant->to_i64();
}

std::vector<Dim> Lowering::positions_of(const Node& node, size_t input) const {
  const auto values = dim_values(*resolve(node.input(input)));
  if (!values) decline("dynamic_operand", fmt::format("operand {} is computed from data", input), node);
  return *values;
}

const Node* Lowering::lazy_node(const Value* value) const {
  const auto it = defs_.find(resolve(value));
  return it != defs_.end() && it->second.kind == Def::lazy ? it->second.node : nullptr;
}

const Node* Lowering::only_reader(const Value* value) const {
  if (value->uses.size() != 1) return nullptr;
  if (std::find(results_.begin(), results_.end(), value) != results_.end()) return nullptr;
  if (value->producer == &group_) return nullptr;
  return value->uses[0].node;
}

void Lowering::open(Anchor anchor, const std::vector<Dim>& domain, std::vector<Dim> reduce) {
  Stage stage;
  stage.anchor = anchor;
  stage.domain = domain;
  stage.reduce = std::move(reduce);
  pulled_.clear(), read_sets_.clear(), places_.clear(), firsts_.clear(), broadcast_.reset();
  region_.stages.push_back(std::move(stage));
  open_ = true;
}

std::vector<Dim> Lowering::extents() const {
  std::vector<Dim> all = region_.stages.back().domain;
  const std::vector<Dim>& reduce = region_.stages.back().reduce;
  all.insert(all.end(), reduce.begin(), reduce.end());
  return all;
}

Expr Lowering::reduce(ReduceKind kind, Expr value) {
  const DType dtype = value.dtype();
  stage().reductions.push_back({kind, std::move(value)});
  return Expr::result(static_cast<int>(stage().reductions.size()) - 1, dtype);
}

void Lowering::define(const Value* value, Expr expr) {
  Def& def = def_of(value);
  def.kind = Def::forward;
  def.index = static_cast<int>(region_.stages.size()) - 1;
  def.expr = std::move(expr);
  def.map = IndexMap::identity(stage().domain.size());
  def.clipped = false;
  def.type = value->type;
}

void Lowering::define_at(const Value* value, Expr expr, IndexMap map, bool clipped) {
  define(value, std::move(expr));
  Def& def = def_of(value);
  def.map = std::move(map);
  def.clipped = clipped;
}

void Lowering::define_part(const Value* value, Expr expr, IndexMap map, std::optional<ReduceKind> combine) {
  Def& def = def_of(value);
  def.kind = Def::pieces;
  def.type = value->type;
  def.parts.push_back({static_cast<int>(region_.stages.size()) - 1, std::move(expr), std::move(map), combine});
}

const Value* Lowering::internal(TensorType type) {
  internals_.push_back(std::make_unique<Value>());
  internals_.back()->type = std::move(type);
  return internals_.back().get();
}

int Lowering::add_param(ParamRole role, const TensorType& type, LoweredOperand operand) {
  region_.params.push_back({role, type});
  operands_.push_back(std::move(operand));
  return static_cast<int>(region_.params.size()) - 1;
}

/// A constant of the outer graph keeps its value as the operand; a body's own constant has only bytes.
int Lowering::param_of(Def& def) {
  if (def.index >= 0) return def.index;
  LoweredOperand operand;
  const bool outside = std::find(group_.inputs.begin(), group_.inputs.end(), def.outer) != group_.inputs.end();
  if (outside) operand.value = def.outer;
  if (def.constant != nullptr) operand.constant = *def.constant;
  const ParamRole role = def.constant != nullptr ? ParamRole::constant : ParamRole::input;
  def.index = add_param(role, def.type, std::move(operand));
  return def.index;
}

Expr Lowering::add_read(Read read, DType dtype) {
  auto& reads = stage().reads;
  auto it = std::find(reads.begin(), reads.end(), read);
  const int index = static_cast<int>(it - reads.begin());
  if (it == reads.end()) reads.push_back(std::move(read));
  return Expr::read(index, dtype);
}

Expr Lowering::pull_made(const TensorType& type, std::function<Tensor()> make, const IndexMap& map, const Value* from) {
  if (from != nullptr) from = resolve(from);
  const int param = add_param(ParamRole::constant, type, {nullptr, {}, std::move(make), from});
  return add_read({-1, param, map}, type.dtype);
}

Expr Lowering::pull(const Value* value, const IndexMap& map) {
  value = resolve(value);
  const uint64_t key = hash_of(map) ^ reinterpret_cast<uintptr_t>(value);
  for (auto [at, last] = pulled_.equal_range(key); at != last; ++at)
    if (at->second.value == value && at->second.map == map) return at->second.expr;
  Def& def = def_of(value);
  Expr expr = pull_new(value, def, map);
  pulled_.emplace(key, Pulled{value, map, expr});
  return expr;
}

/// A stage reads where its index is known before its reductions are: not at what one of them finds (arg_max -> gather).
void Lowering::require_computable(const IndexMap& map) {
  if (!has_dynamic(map)) return;
  if (!reads_at_computed(stage().anchor))
    decline("dynamic_index",
            "an index that is more than a sum of coordinates (mirrored, looked up, cut twice) can only be read by a "
            "map, a row or a scatter",
            group_);
  for (const IndexExpr& dim : map.dims)
    if (dim.dynamic)
      dim.dynamic.visit([&](const Expr& e) {
        if (e.op() == ExprOp::result)
          decline("dynamic_index", "a loop nest cannot read at an index that its own reduction finds", group_);
      });
}

Expr Lowering::pull_new(const Value* value, Def& def, const IndexMap& map) {
  if (def.kind == Def::forward) return pull_forward(value, def, map);
  if (def.kind == Def::pieces)
    decline("value_in_parts", "a result made in parts by several loop nests cannot be read inside the group", group_);
  if (def.kind == Def::lazy) {
    const LowerRule* rule = find_rule(def.node->op->name);
    if (rule != nullptr && rule->pull != nullptr) return rule->pull(*this, *def.node, def.result, map);
    return pull_elementwise(*def.node, map, def.type.shape);
  }
  require_computable(map);
  return add_read({-1, param_of(def), map}, def.type.dtype);
}

namespace {

/// The domain axis that each dimension of a value is, where it has the domain's points in another order of axes.
std::optional<std::vector<size_t>> order_of_axes(const IndexMap& map, const Shape& shape, const Shape& domain) {
  if (map.dims.size() != domain.rank() || shape.rank() != domain.rank()) return std::nullopt;
  std::vector<size_t> order;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const IndexExpr& e = map.dims[d];
    if (e.dynamic || !(e.offset == Dim(0)) || e.terms.size() != 1) return std::nullopt;
    const auto axis = static_cast<size_t>(e.terms[0].axis);
    if (!(e.terms[0] == IndexTerm{1, e.terms[0].axis, 1, 0}) || axis >= domain.rank()) return std::nullopt;
    if (!(shape[d] == domain[axis]) || std::find(order.begin(), order.end(), axis) != order.end()) return std::nullopt;
    order.push_back(axis);
  }
  return order;
}

}  // namespace

/// Inside its own stage a forward value is its expression; a later stage reads it as a tile-local output, through the
/// transpose that was made of it where rows stand behind a window.
Expr Lowering::pull_forward(const Value* value, Def& def, const IndexMap& map) {
  const int current = static_cast<int>(region_.stages.size()) - 1;
  if (def.index == current) {
    if (def.map == map) return def.expr;
    decline("stage_conflict", fmt::format("'{}' is read at two places of one loop nest", value->name), group_);
  }
  Stage& from = region_.stages[def.index];
  const Shape domain(from.domain);
  const std::optional<std::vector<size_t>> order = order_of_axes(def.map, def.type.shape, domain);
  const bool turns = from.anchor == Anchor::window && stage().anchor == Anchor::row;
  if (!order || (!turns && !std::is_sorted(order->begin(), order->end())))
    decline("stage_edge", "a value between stages must be read as its stage made it", group_, {value->name});
  StageOutput local{-1, def.expr, IndexMap::identity(domain.rank()), domain, def.type.dtype};
  auto it = std::find(from.outputs.begin(), from.outputs.end(), local);
  const int index = static_cast<int>(it - from.outputs.begin());
  if (it == from.outputs.end()) from.outputs.push_back(std::move(local));
  require_computable(map);
  IndexMap turned = map;
  for (size_t d = 0; d < order->size(); ++d) turned.dims[(*order)[d]] = map.dims[d];
  return add_read({def.index, index, turned}, def.type.dtype);
}

namespace {

Expr scalar_value(const Tensor& constant) {
  const DType dtype = constant.dtype();
  return is_float(dtype) ? Expr::constant(dtype, constant.real(0)) : Expr::integer(dtype, constant.integer(0));
}

}  // namespace

/// Coordinates of an operand of shape `own` where those of the result, of shape `whole`, are map(axes).
const IndexMap& Lowering::broadcast_to(const Shape& own, const Shape& whole, const IndexMap& map) {
  if (!broadcast_ || !(broadcast_->own == own && broadcast_->whole == whole && broadcast_->map == map))
    broadcast_ = {own, whole, map, compose(broadcast_map(own, whole, stretches_), map, extents())};
  return broadcast_->composed;
}

Expr Lowering::pull_elementwise(const Node& node, const IndexMap& map, const Shape& shape) {
  std::vector<Expr> operands;
  for (const Value* input : node.inputs) {
    if (input == nullptr) {
      operands.emplace_back();
      continue;
    }
    if (const Tensor* constant = constant_of(input); constant != nullptr && constant->elements() == 1) {
      operands.push_back(scalar_value(*constant));
      continue;
    }
    operands.push_back(pull(input, IndexMap(broadcast_to(input->type.shape, shape, map))));
  }
  Expr value = node.op->law(node.attrs(), operands);
  const DType dtype = node.output()->type.dtype;
  return value.dtype() == dtype && !value.weak() ? value : Expr::make_cast(value, dtype);
}

bool Lowering::reads_open_stage(const Node& node) const {
  if (!open_) return false;
  const int current = static_cast<int>(region_.stages.size()) - 1;
  for (const Value* input : node.inputs) {
    if (input == nullptr) continue;
    auto it = defs_.find(resolve(input));
    if (it != defs_.end() && it->second.kind == Def::forward && it->second.index == current) return true;
  }
  return false;
}

/// Epilogue: applies an elementwise operator to the open stage's result, at the same coordinates.
bool Lowering::push_elementwise(const Node& node) {
  if (!reads_open_stage(node)) return false;
  const int current = static_cast<int>(region_.stages.size()) - 1;
  const Shape& shape = node.output()->type.shape;
  for (const Value* input : node.inputs) {
    if (input == nullptr) continue;
    const Def def = def_of(input);
    if (def.kind != Def::forward || def.index != current || !(input->type.shape == shape)) continue;
    try {
      const LowerRule* rule = find_rule(node.op->name);
      Expr value = rule != nullptr && rule->pull != nullptr ? rule->pull(*this, node, 0, def.map)
                                                            : pull_elementwise(node, def.map, shape);
      define_at(node.output(), std::move(value), def.map, def.clipped);
      return true;
    } catch (const DeclineSignal&) {
      return false;  // becomes lazy: a later stage reads the tile-local result
    }
  }
  return false;
}

/// Epilogue that moves elements: the stage stores its result elsewhere.
bool Lowering::push_movement(const Node& node, const LowerRule& rule) {
  if (!reads_open_stage(node) || rule.push == nullptr || node.outputs.size() != 1) return false;
  const Def def = def_of(node.input(0));
  const int current = static_cast<int>(region_.stages.size()) - 1;
  if (def.kind != Def::forward || def.index != current || def.clipped) return false;
  const std::optional<IndexMap> moved = rule.push(*this, node);
  if (!moved) return false;
  IndexMap map = compose(*moved, def.map, stage().domain);
  if (has_dynamic(map)) return false;
  define(node.output(), def.expr);
  def_of(node.output()).map = std::move(map);
  return true;
}

/// What an operator that opfuse does not know computes has no rank, nor what follows from it.
static const Value* unranked(const Node& node) {
  for (const Value* value : node.inputs)
    if (value && !value->type.shape.ranked) return value;
  for (const Value* value : node.outputs)
    if (!value->type.shape.ranked && !value->uses.empty()) return value;
  return nullptr;
}

static std::string no_kernel(const Node& node) {
  if (node.op != opaque_op()) return fmt::format("no kernel can be generated for operator {}", source_operator(node));
  const std::string& reason = static_cast<const OpaqueAttrs*>(node.attrs())->reason;
  return reason.empty() ? fmt::format("operator {} is not known", source_operator(node)) : reason;
}

void Lowering::lower_node(const Node& node) {
  if (std::find(done_.begin(), done_.end(), &node) != done_.end()) return;
  if (node.body != nullptr) {
    if (!stands_for_body(node)) decline("repeats", "its body runs again and again: it is not a single kernel", node);
    const Graph& body = *node.body;
    for (size_t i = 0; i < body.inputs().size(); ++i) bind_alias(body.inputs()[i], resolve(node.inputs[i]));
    walk(body);
    for (size_t i = 0; i < body.outputs().size(); ++i) bind_alias(node.outputs[i], resolve(body.outputs()[i]));
    return;
  }
  const LowerRule* rule = find_rule(node.op->name);
  if (rule == nullptr && !node.op->law) decline("no_lowering", no_kernel(node), node);
  if (const Value* value = unranked(node))
    decline("unknown_shape", fmt::format("the rank of '{}' is not known", value_name(*value)), node);
  const bool moves = rule != nullptr && rule->moves != nullptr && rule->moves(*this, node);
  if (rule != nullptr && rule->anchor != nullptr && !moves) return rule->anchor(*this, node);
  if (rule == nullptr && node.outputs.size() > 1)
    decline("extra_result", "only the first result can be computed by a kernel", node);
  if (rule != nullptr && rule->push != nullptr && push_movement(node, *rule)) return;
  if ((rule == nullptr || rule->pointwise) && push_elementwise(node)) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Def def;
    def.kind = Def::lazy;
    def.node = &node;
    def.result = i;
    def.type = node.outputs[i]->type;
    defs_[node.outputs[i]] = std::move(def);
  }
}

void Lowering::walk(const Graph& body) {
  results_.insert(results_.end(), body.outputs().begin(), body.outputs().end());
  for (const Node* node : body.nodes()) lower_node(*node);
}

/// Results that no stage computes itself get a map stage; every result gets an output parameter, in order.
void Lowering::store_results() {
  for (size_t i = 0; i < group_.outputs.size(); ++i) {
    const Value* outer = group_.outputs[i];
    if (outer->uses.empty() && outer->type.dtype == DType::unknown) continue;
    const Value* value = resolve(group_.body ? group_.body->outputs()[i] : outer);
    const Shape& shape = value->type.shape;
    if (!shape.ranked) decline("unknown_shape", "the result's shape is not known", group_);
    Def* def = &def_of(value);
    if (def->kind == Def::pieces) {
      const int param = add_param(ParamRole::output, value->type, {outer, {}, {}});
      for (const Part& part : def->parts)
        region_.stages[part.stage].outputs.push_back(
            {param, part.expr, part.map, shape, value->type.dtype, part.combine});
      continue;
    }
    if (def->kind != Def::forward) {
      const bool rows = open_ && stage().anchor == Anchor::row;  // the row that is normalised, say, as it was
      const bool joins = open_ && (rows || stage().anchor == Anchor::map) && Shape(stage().domain) == shape;
      if (!joins) open(Anchor::map, shape.dims, {});
      Expr expr = pull(value, IndexMap::identity(shape.rank()));
      const int param = add_param(ParamRole::output, value->type, {outer, {}, {}});
      stage().outputs.push_back({param, std::move(expr), IndexMap::identity(shape.rank()), shape, value->type.dtype});
      continue;
    }
    const int param = add_param(ParamRole::output, value->type, {outer, {}, {}});
    region_.stages[def->index].outputs.push_back(
        {param, def->expr, def->map, shape, value->type.dtype, {}, def->clipped});
  }
}

LoweredGroup Lowering::run() {
  lower_node(group_);
  store_results();
  LoweredGroup lowered{std::move(region_), std::move(operands_)};
  join_sums(lowered.region);
  prune(lowered);
  if (lowered.region.stages.empty()) decline("no_results", "nothing reads what it computes", group_);
  merge_rows(lowered.region);
  verify(lowered.region);
  return lowered;
}

std::variant<LoweredGroup, Decline> lower_group(const Node& node, bool stretches) {
  try {
    return Lowering(node, stretches).run();
  } catch (const DeclineSignal& signal) {
    return signal.decline;
  }
}

}  // namespace opfuse
