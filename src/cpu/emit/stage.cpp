// Leaves, reductions and stores shared by the skeletons.
#include "cpu/emit/stage.hpp"

#include <algorithm>
#include <limits>

#include "base/fail.hpp"
#include "cpu/emit/nearby.hpp"
#include "cpu/emit/stage_turned.hpp"
#include "cpu/emit/take_turns.hpp"
#include "expr/real_ops.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

constexpr size_t kResultsAtOnce = 8;  // a quarter of AVX-512's registers, half of AVX2's

/// The results' places in memory, which the optimiser must not bring back: the functions need the registers.
std::vector<StageEmitter::Point> at_rest(Kernel& k, std::vector<StageEmitter::Point> points) {
  for (StageEmitter::Point& point : points)
    for (Value*& result : point.results) {
      Value* place = k.variable(result->getType());
      k.b.CreateStore(result, place, true);
      result = place;
    }
  return points;
}

/// The same element of a row, or another of the same row: dimensions differ where one runs along all of them.
bool same_row(const Stage& stage, const Read& a, const Read& b) {
  if (a.stage != b.stage || a.index != b.index || a.map.dims.size() != b.map.dims.size()) return false;
  const auto domain = static_cast<int>(stage.domain.size());
  for (size_t d = 0; d < a.map.dims.size(); ++d) {
    if (a.map.dims[d] == b.map.dims[d]) continue;
    const IndexExpr& all = b.map.dims[d];
    if (all.dynamic || all.terms.size() != 1 || all.terms[0].axis < domain || !(all.offset == Dim(0))) return false;
  }
  return true;
}

/// The value `all` runs along a row; `x` is one of them.
bool is_one_of(const Stage& stage, const Expr& x, const Expr& all) {
  if (x.op() != all.op() || x.dtype() != all.dtype() || x.args().size() != all.args().size()) return false;
  if (x.op() == ExprOp::read)
    return same_row(stage, stage.reads[static_cast<size_t>(x.index())], stage.reads[static_cast<size_t>(all.index())]);
  if (x.args().empty()) return x.text() == all.text();
  for (size_t i = 0; i < x.args().size(); ++i)
    if (!is_one_of(stage, x.args()[i], all.args()[i])) return false;
  return true;
}

/// x - max(x of the row): softmax. Its exponentials may be 0 where they are below the normal numbers, of which some
/// cores compute each with a hundred cycles.
bool is_below_maximum(const Stage& stage, const Expr& x) {
  if (x.op() != ExprOp::sub || x.args()[1].op() != ExprOp::result) return false;
  const Reduction& top = stage.reductions[static_cast<size_t>(x.args()[1].index())];
  return top.kind == ReduceKind::max && is_one_of(stage, x.args()[0], top.value);
}

/// An operand read at an index that is itself computed.
bool is_looked_up(const Stage& stage) {
  return std::any_of(stage.reads.begin(), stage.reads.end(), [](const Read& r) {
    return std::any_of(r.map.dims.begin(), r.map.dims.end(), [](const IndexExpr& d) { return d.dynamic; });
  });
}

bool stores_codes(const StageOutput& output) {
  return output.value.dtype() == DType::u8 || output.value.dtype() == DType::i8;
}

}  // namespace

bool has_long_epilogue(const Stage& stage) {
  bool found = false;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) { found |= is_function(e.op()) && (e.op() != ExprOp::erf || stores_codes(o)); });
  return found;
}

StageEmitter::StageEmitter(Kernel& kernel, int index, const Locals& locals)
    : StageEmitter(kernel, kernel.spec.region.stages.at(static_cast<size_t>(index)), index, locals) {}

StageEmitter::StageEmitter(Kernel& kernel, const Stage& made, int index, const Locals& locals)
    : k(kernel), stage(made) {
  for (const Read& r : stage.reads) reads.push_back(r.stage < 0 ? k.operand(r.index) : locals.at({r.stage, r.index}));
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    const int param = stage.outputs[i].param;
    outputs.push_back(param >= 0 ? k.operand(param) : locals.at({index, static_cast<int>(i)}));
  }
  guarded_ = guarded_reads(stage);
  const auto is_constant = [&](const Expr& read) {
    const Read& r = stage.reads[static_cast<size_t>(read.index())];
    return r.stage < 0 && k.spec.region.params[static_cast<size_t>(r.index)].role == ParamRole::constant;
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    tables_.push_back(outputs[i].dtype == stage.outputs[i].value.dtype()
                          ? code_table(stage.outputs[i].value, is_constant)
                          : std::nullopt);
}

Env StageEmitter::fresh_env(int width) const {
  Env env;
  env.width = width;
  env.extents = axis_extents(stage);
  env.axes.assign(axis_count(), {k.i64(0), false, 0});
  return env;
}

ExprEmitter StageEmitter::at(const Env& env, const std::vector<Value*>& results, const std::map<int, Value*>& given) {
  const EmitIndex index = [this, env, results](const Expr& e) {
    ExprEmitter inner = at(env, results);
    return inner.emit(e, DType::i64);
  };
  ExprEmitter emitter{k,
                      [this, env, results, given, index](const Expr& leaf) -> Value* {
                        const int i = leaf.index();
                        switch (leaf.op()) {
                          case ExprOp::result:
                            return results.at(static_cast<size_t>(i));
                          case ExprOp::coord: {
                            const AxisValue& axis = env.axes.at(static_cast<size_t>(i));
                            Value* base = k.add(axis.base, k.i64(axis.plus));
                            return axis.lanes ? k.b.CreateAdd(k.splat(base, env.width), k.iota(env.width)) : base;
                          }
                          case ExprOp::in_bounds:
                            return inside(k, reads[i], stage.reads[i].map, env, index);
                          default:
                            break;
                        }
                        OPFUSE_CHECK(leaf.op() == ExprOp::read, "leaf {}", leaf.text());
                        if (auto it = given.find(i); it != given.end()) return it->second;
                        const IndexMap& map = stage.reads.at(static_cast<size_t>(i)).map;
                        Value* guard = guarded_.count(i) ? inside(k, reads[i], map, env, index) : nullptr;
                        const Address address = address_of(k, reads[i], map, env, index);
                        Value* nearby =
                            jumps && !guard && !env.mask ? load_nearby(k, reads[i], address, env.width) : nullptr;
                        return nearby ? nearby : load(k, reads[i], address, env, guard);
                      },
                      [this](const Expr& x) { return is_below_maximum(stage, x); }, jumps};
  if (std::none_of(env.axes.begin(), env.axes.end(), [](const AxisValue& axis) { return axis.interior.has_value(); }))
    return emitter;
  std::vector<std::optional<AxisRange>> known;
  for (const AxisValue& axis : env.axes) known.push_back(axis.interior);
  emitter.know([numbers = KnownNumbers(std::move(known))](const Expr& e) mutable { return numbers.value(e); });
  return emitter;
}

/// Null: it is not stored.
Value* StageEmitter::value_at(size_t output, ExprEmitter& point) {
  if (!outputs[output].base) return nullptr;
  if (const auto& table = tables_[output]) return look_up(k, *table, point.emit(table->code));
  return point.emit(stage.outputs[output].value, outputs[output].dtype);
}

/// All values before the first store: an output may lie in an operand's buffer.
std::vector<Value*> StageEmitter::values_at(const Point& p, const std::map<int, Value*>& given) {
  ExprEmitter point = at(p.env, p.results, given);
  std::vector<Value*> emitted;
  for (size_t i = 0; i < outputs.size(); ++i) emitted.push_back(value_at(i, point));
  return emitted;
}

void StageEmitter::store_outputs_of(const Point& point) {
  Value* inside = clips() ? inside_outputs(point.env) : nullptr;
  if (!inside) return store_inside(point);
  if (width_of(inside) == 1) return k.branch(inside, [&] { store_inside(point); });
  Point some = point;
  some.env.mask = some.env.mask ? k.b.CreateAnd(some.env.mask, inside) : inside;
  store_inside(some);
}

bool StageEmitter::clips() const {
  return std::any_of(stage.outputs.begin(), stage.outputs.end(), [](const StageOutput& o) { return o.clipped; });
}

/// Results of one stage lie alike, so a point is inside all of them or none.
Value* StageEmitter::inside_outputs(const Env& env) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (stage.outputs[i].clipped && outputs[i].base) return inside(k, outputs[i], stage.outputs[i].map, env, nullptr);
  return nullptr;
}

void StageEmitter::store_output(size_t i, const Point& point, Value* value) {
  if (outputs[i].base)
    store(k, outputs[i], address_of(k, outputs[i], stage.outputs[i].map, point.env, nullptr), point.env, value);
}

void StageEmitter::store_inside(const Point& point, const std::map<int, Value*>& given) {
  if (outputs.size() > kResultsAtOnce && guarded_.empty() && !is_looked_up(stage)) return store_in_turn(point, given);
  const std::vector<Value*> emitted = values_at(point, given);
  for (size_t i = 0; i < outputs.size(); ++i) store_output(i, point, emitted[i]);
}

/// Of many results one after the other: together they leave the registers, and LLVM's allocator is slow at it. An
/// output may lie in an operand's buffer, so the operands are read before.
void StageEmitter::store_in_turn(const Point& point, const std::map<int, Value*>& given) {
  ExprEmitter emitter = at(point.env, point.results, given);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].base) continue;
    stage.outputs[i].value.visit([&](const Expr& e) {
      if (e.op() == ExprOp::read) emitter.emit(e);
    });
  }
  for (size_t i = 0; i < outputs.size(); ++i) store_output(i, point, value_at(i, emitter));
}

void StageEmitter::store_outputs(const std::vector<Point>& points) {
  const bool short_chains = !has_long_epilogue(stage) || (tables_.size() == 1 && tables_[0]);
  if (short_chains || points.size() == 1 || clips()) {
    for (size_t i = 0; i < points.size();) {
      size_t stored = store_codes(points, i);
      if (stored == 0) stored = store_halves(points, i);
      if (stored == 0) stored = store_turned(*this, points, i, [&](const Point& p) { return values_at(p, {})[0]; });
      if (stored == 0) store_outputs_of(points[i]);
      i += std::max<size_t>(stored, 1);
    }
    return;
  }
  const std::vector<Point> resting = at_rest(k, points);
  take_turns(k, points.size(), [&](size_t i) {
    Point point = resting[i];
    for (size_t r = 0; r < point.results.size(); ++r)
      point.results[r] = k.b.CreateLoad(points[i].results[r]->getType(), point.results[r], true);
    store_outputs_of(point);
  });
}

void StageEmitter::store_resting(Point point, llvm::Type* type) {
  for (Value*& result : point.results) result = k.b.CreateLoad(type, result, true);
  store_outputs_of(point);
}

Value* identity_of(Kernel& k, const Reduction& r, int width) {
  const DType dtype = r.value.dtype();
  llvm::Type* type = k.lanes(k.value_type(dtype), width);
  const bool real = is_float(dtype);
  const auto extreme = [&](bool lowest) -> Value* {
    if (real) return llvm::ConstantFP::getInfinity(type, lowest);
    const unsigned bits = type->getScalarSizeInBits();
    const bool s = is_signed(dtype) && dtype != DType::boolean;
    const llvm::APInt v = lowest ? (s ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits))
                                 : (s ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
    return llvm::ConstantInt::get(type, v);
  };
  switch (r.kind) {
    case ReduceKind::sum:
      return k.zero(type);
    case ReduceKind::product:
      return real ? llvm::ConstantFP::get(type, 1) : llvm::ConstantInt::get(type, 1);
    case ReduceKind::max:
      return extreme(true);
    case ReduceKind::min:
      return extreme(false);
  }
  return nullptr;
}

Value* combine(Kernel& k, ReduceKind kind, DType dtype, Value* x, Value* y) {
  auto& b = k.b;
  unify(k, x, y);
  const bool real = is_float(dtype);
  switch (kind) {
    case ReduceKind::sum:
      return real ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case ReduceKind::product:
      return real ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    default:
      break;
  }
  const bool max = kind == ReduceKind::max;
  if (real) return emit_extremum(k, max, x, y, false);
  const bool s = is_signed(dtype) && dtype != DType::boolean;
  Value* first =
      max ? (s ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y)) : (s ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y));
  return b.CreateSelect(first, x, y);
}

Value* accumulate(Kernel& k, const Reduction& r, const Expr& value, Value* acc, ExprEmitter& point, Value* mask) {
  const DType dtype = r.value.dtype();
  if (r.kind == ReduceKind::sum && is_float(dtype) && value.op() == ExprOp::mul && !mask) {
    Value* x = point.emit(value.args()[0], dtype);
    Value* y = point.emit(value.args()[1], dtype);
    return k.fma(k.splat(x, width_of(acc)), k.splat(y, width_of(acc)), acc);
  }
  Value* v = k.splat(point.emit(value, dtype), width_of(acc));
  if (mask) v = k.b.CreateSelect(mask, v, identity_of(k, r, width_of(acc)));
  return combine(k, r.kind, dtype, acc, v);
}

std::vector<Value*> combine_lanes(Kernel& k, ReduceKind kind, DType dtype, std::vector<Value*> rows) {
  const auto count = static_cast<int>(rows.size());
  int width = width_of(rows[0]), segment = width;  // lanes of one row within a vector
  for (; segment > 1; segment /= 2) {
    // halves of every segment side by side: of two vectors while there are two, then of one that shrinks
    const bool pairs = rows.size() > 1;
    std::vector<int> low, high;
    for (int from = 0; from < (pairs ? 2 * width : width); from += segment)
      for (int i = 0; i < segment / 2; ++i) low.push_back(from + i), high.push_back(from + segment / 2 + i);
    std::vector<Value*> next;
    for (size_t i = 0; i < rows.size(); i += 2) {
      Value* other = pairs ? rows[i + 1] : rows[i];
      next.push_back(combine(k, kind, dtype, k.b.CreateShuffleVector(rows[i], other, low),
                             k.b.CreateShuffleVector(rows[i], other, high)));
    }
    if (!pairs) width /= 2;
    rows = std::move(next);
  }
  std::vector<Value*> results;
  for (int i = 0; i < count; ++i) results.push_back(k.b.CreateExtractElement(rows[0], k.i64(i)));
  return results;
}

}  // namespace opfuse::cpu
