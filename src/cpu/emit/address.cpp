// A coordinate is `base + coef * lane` as long as that can be kept (terms linear in the lane axis, or
// divisions and moduli that a whole aligned chunk shares), and a vector of coordinates otherwise.
#include "cpu/emit/address.hpp"

#include <algorithm>
#include <numeric>

#include "base/fail.hpp"
#include "cpu/emit/masked.hpp"
#include "cpu/emit/math/half_float.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

/// One tensor coordinate for all lanes.
struct Coordinate {
  Value* base = nullptr;
  int64_t coef = 0;        ///< lane l is at base + l * coef ...
  Value* lanes = nullptr;  ///< ... or at base + lanes[l]
  int64_t multiple = 0;    ///< gcd of what base is a multiple of; 0: base is 0
  int64_t plus = 0;        ///< added to base
};

int64_t gcd(int64_t x, int64_t y) { return std::gcd(x, y); }

bool aligned(int64_t multiple, int64_t width) { return multiple % width == 0; }

Value* vector_index(Kernel& k, const AxisValue& axis, int width) {
  return k.b.CreateAdd(k.splat(axis.base, width), k.iota(width));
}

void add_lanes(Kernel& k, Coordinate& c, Value* lanes, int width) {
  if (c.coef) {
    Value* linear = k.b.CreateMul(k.iota(width), k.splat(k.i64(c.coef), width));
    c.lanes = c.lanes ? k.b.CreateAdd(c.lanes, linear) : linear;
    c.coef = 0;
  }
  c.lanes = c.lanes ? k.b.CreateAdd(c.lanes, lanes) : lanes;
}

/// The lane axis under a division or modulus, or with a symbolic coefficient.
void add_lane_term(Kernel& k, Coordinate& c, const IndexTerm& t, const AxisValue& axis, int width) {
  const auto div = t.div.constant(), mod = t.mod.constant(), coef = t.coef.constant();
  if (div && mod && coef && aligned(axis.multiple, width)) {
    if (*div != 1 && *div % width == 0) {  // the chunk shares one quotient
      Value* q = k.div(axis.base, k.i64(*div));
      if (*mod) q = k.rem(q, k.i64(*mod));
      c.base = k.add(c.base, k.mul(q, k.i64(*coef)));
      c.multiple = gcd(c.multiple, *coef);
      return;
    }
    if (*div == 1 && (*mod == 0 || *mod % width == 0)) {
      Value* base = *mod ? k.rem(axis.base, k.i64(*mod)) : axis.base;
      c.base = k.add(c.base, k.mul(base, k.i64(*coef)));
      c.multiple = gcd(c.multiple, *coef * gcd(axis.multiple, *mod));
      if (c.lanes)
        add_lanes(k, c, k.b.CreateMul(k.iota(width), k.splat(k.i64(*coef), width)), width);
      else
        c.coef += *coef;
      return;
    }
  }
  if (div == 1 && mod == 0 && coef) {
    c.base = k.add(c.base, k.mul(axis.base, k.i64(*coef)));
    c.multiple = gcd(c.multiple, *coef * axis.multiple);
    if (c.lanes)
      add_lanes(k, c, k.b.CreateMul(k.iota(width), k.splat(k.i64(*coef), width)), width);
    else
      c.coef += *coef;
    return;
  }
  Value* x = vector_index(k, axis, width);
  if (div != 1) x = k.b.CreateUDiv(x, k.splat(k.dim(t.div), width));
  if (mod != 0) x = k.b.CreateURem(x, k.splat(k.dim(t.mod), width));
  add_lanes(k, c, k.b.CreateMul(x, k.splat(k.dim(t.coef), width)), width);
}

void add_term(Kernel& k, Coordinate& c, const IndexTerm& t, const Env& env) {
  const AxisValue& axis = env.axes.at(static_cast<size_t>(t.axis));
  if (axis.lanes) return add_lane_term(k, c, t, axis, env.width);
  const bool plain = t.div.constant() == 1 && t.mod.constant() == 0;
  const int64_t coef = t.coef.constant().value_or(1);
  const bool apart = plain && t.coef.is_constant();
  if (apart) c.plus += coef * axis.plus;
  Value* x = apart ? axis.base : k.div(k.add(axis.base, k.i64(axis.plus)), k.dim(t.div));
  if (t.mod.constant() != 0) x = k.rem(x, k.dim(t.mod));
  c.base = k.add(c.base, k.mul(x, k.dim(t.coef)));
  c.multiple = gcd(c.multiple, plain ? coef * axis.multiple : coef);
}

Coordinate coordinate(Kernel& k, const IndexExpr& e, const Env& env, const EmitIndex& index) {
  Coordinate c;
  if (e.dynamic) {
    Value* x = index(e.dynamic);
    c.base = k.i64(0);
    c.multiple = 1;
    if (width_of(x) == 1)
      c.base = x;
    else
      c.lanes = x;
    return c;
  }
  c.base = k.dim(e.offset);
  c.multiple = e.offset.constant().value_or(1);
  for (const IndexTerm& t : e.terms) add_term(k, c, t, env);
  return c;
}

/// Strides of one tensor dimension: its outer extent, then its blocks from the outermost.
struct DimStrides {
  Dim outer = 0;
  std::vector<std::pair<int64_t, Dim>> blocks;  ///< factor, stride
  int64_t factor = 1;                           ///< product
};

DimStrides strides_of(const Operand& operand, int dim) {
  DimStrides s;
  const auto& order = operand.layout.order;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] == dim) s.outer = operand.strides[i];
  for (size_t i = 0; i < operand.layout.blocks.size(); ++i)
    if (operand.layout.blocks[i].axis == dim) {
      s.blocks.emplace_back(operand.layout.blocks[i].factor, operand.strides[order.size() + i]);
      s.factor *= operand.layout.blocks[i].factor;
    }
  return s;
}

Value* blocked_offset(Kernel& k, const DimStrides& s, Value* x) {  // scalar or vector
  const int width = width_of(x);
  const auto c = [&](int64_t v) { return k.splat(k.i64(v), width); };
  const auto times = [&](Value* v, const Dim& d) {
    return d.constant() == 1 ? v : k.b.CreateMul(v, k.splat(k.dim(d), width));
  };
  Value* sum = times(s.factor == 1 ? x : k.b.CreateUDiv(x, c(s.factor)), s.outer);
  int64_t inner = s.factor;
  for (const auto& [factor, stride] : s.blocks) {
    inner /= factor;
    Value* part = inner == 1 ? x : k.b.CreateUDiv(x, c(inner));
    sum = k.b.CreateAdd(sum, times(k.b.CreateURem(part, c(factor)), stride));
  }
  return sum;
}

void add_to_lanes(Kernel& k, Address& a, Value* lanes, int width) {
  if (a.step && *a.step) {
    Value* linear = k.b.CreateMul(k.iota(width), k.splat(k.i64(*a.step), width));
    a.lanes = a.lanes ? k.b.CreateAdd(a.lanes, linear) : linear;
  }
  a.step.reset();
  a.lanes = a.lanes ? k.b.CreateAdd(a.lanes, lanes) : lanes;
}

void add_step(Kernel& k, Address& a, const Dim& step, int width) {
  if (a.step && step.constant()) {
    a.step = *a.step + *step.constant();
    return;
  }
  add_to_lanes(k, a, k.b.CreateMul(k.iota(width), k.splat(k.dim(step), width)), width);
}

void add_dimension(Kernel& k, Address& a, const DimStrides& s, Coordinate c, const Env& env) {
  const int width = env.width;
  if (c.plus && s.blocks.empty() && s.outer.is_constant()) {
    a.constant += c.plus * *s.outer.constant();
  } else if (c.plus) {
    c.base = k.add(c.base, k.i64(c.plus));
    c.multiple = gcd(c.multiple, c.plus);
  }
  if (!c.lanes && c.coef == 0) {
    a.scalar = k.add(a.scalar, s.blocks.empty() ? k.mul(c.base, k.dim(s.outer)) : blocked_offset(k, s, c.base));
    return;
  }
  if (!c.lanes && s.blocks.empty()) {
    a.scalar = k.add(a.scalar, k.mul(c.base, k.dim(s.outer)));
    return add_step(k, a, Dim(c.coef) * s.outer, width);
  }
  if (!c.lanes && c.coef == 1 && aligned(c.multiple, width) && s.blocks.back().first % width == 0) {
    a.scalar = k.add(a.scalar, blocked_offset(k, s, c.base));
    a.padded = s.factor % env.block == 0;
    return add_step(k, a, s.blocks.back().second, width);
  }
  Value* x = c.lanes ? c.lanes : k.b.CreateMul(k.iota(width), k.splat(k.i64(c.coef), width));
  x = k.b.CreateAdd(x, k.splat(c.base, width));
  add_to_lanes(k, a, blocked_offset(k, s, x), width);
}

Value* both(Kernel& k, Value* x, Value* y) {
  if (!x) return y;
  if (!y) return x;
  const int width = std::max(width_of(x), width_of(y));
  return k.b.CreateAnd(k.splat(x, width), k.splat(y, width));
}

Value* place(Kernel& k, const Operand& operand, const Address& a) {
  Value* base = k.element(operand.base, operand.dtype, a.scalar);
  return k.element(base, operand.dtype, k.i64(a.constant));
}

bool lanes_run_along_one(const Env& env) {
  for (size_t a = 0; a < env.axes.size(); ++a)
    if (env.axes[a].lanes && !(env.extents[a] == Dim(1))) return false;
  return true;
}

Value* pointers(Kernel& k, const Operand& operand, const Address& a, int width) {
  Value* lanes = a.lanes ? a.lanes : k.b.CreateMul(k.iota(width), k.splat(k.i64(*a.step), width));
  Value* base = place(k, operand, a);
  return k.b.CreateGEP(k.memory_type(operand.dtype), base, lanes);
}

Value* from_memory(Kernel& k, DType dtype, Value* v) {
  if (dtype == DType::boolean) return k.b.CreateICmpNE(v, k.zero(v->getType()));
  if (is_small_float(dtype)) return widen_half(k, v, dtype);
  return v;
}

void mark_invariant(Kernel& k, const Operand& operand, Value* v) {
  if (!operand.constant) return;
  if (auto* i = llvm::dyn_cast<llvm::Instruction>(v))
    i->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(k.context(), {}));
}

/// Whether a load under a mask is one instruction.
bool masks_loads(Kernel& k, unsigned bytes) { return k.target.has("avx512f") || (k.target.has("avx2") && bytes >= 4); }

/// Every second element, lane 0 at `p`: the even ones of two loads, of which the second begins early enough to end at
/// the last lane. `mask` or null: lanes whose elements are read, and nothing between them.
Value* load_every_second(Kernel& k, const Operand& operand, Value* p, int width, Value* mask) {
  const llvm::Align align(static_cast<uint64_t>(byte_size(operand.dtype)));
  llvm::Type* vector = k.lanes(k.memory_type(operand.dtype), width);
  Value* halves[2];
  for (int half = 0; half < 2; ++half) {
    Value* from = half == 0 ? p : k.element(p, operand.dtype, k.i64(width - 1));
    if (mask) {
      std::vector<int> of;  // lanes by element; those between are none's
      for (int i = 0; i < width; ++i) {
        const int element = i + half * (width - 1);
        of.push_back(element % 2 == 0 ? element / 2 : width);
      }
      Value* elements = k.b.CreateShuffleVector(mask, k.zero(mask->getType()), of);
      halves[half] = k.b.CreateMaskedLoad(vector, from, align, elements, k.zero(vector));
    } else {
      halves[half] = k.b.CreateAlignedLoad(vector, from, align);
      mark_invariant(k, operand, halves[half]);
    }
  }
  std::vector<int> lanes;
  for (int lane = 0; lane < width; ++lane) lanes.push_back(2 * lane < width ? 2 * lane : 2 * lane + 1);
  return k.b.CreateShuffleVector(halves[0], halves[1], lanes);
}

}  // namespace

Address address_of(Kernel& k, const Operand& operand, const IndexMap& map, const Env& env, const EmitIndex& index) {
  Address a{k.i64(0), 0, nullptr, false, 0};
  for (size_t d = 0; d < map.dims.size(); ++d)
    add_dimension(k, a, strides_of(operand, static_cast<int>(d)), coordinate(k, map.dims[d], env, index), env);
  if (env.width == 1) {
    OPFUSE_CHECK(!a.lanes || width_of(a.lanes) == 1);
    if (a.lanes) a.scalar = k.add(a.scalar, a.lanes);
    return {a.scalar, 0, nullptr, a.padded, a.constant};
  }
  return a;
}

static bool is_interior(const IndexExpr& index, const Env& env) {
  return !index.dynamic && std::any_of(index.terms.begin(), index.terms.end(), [&](const IndexTerm& t) {
    return env.axes.at(static_cast<size_t>(t.axis)).interior.has_value();
  });
}

Value* inside(Kernel& k, const Operand& operand, const IndexMap& map, const Env& env, const EmitIndex& index) {
  Value* all = nullptr;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    if (always_inside(map.dims[d], operand.shape[d], env.extents) || is_interior(map.dims[d], env)) continue;
    const Coordinate c = coordinate(k, map.dims[d], env, index);
    Value* x = k.add(c.base, k.i64(c.plus));
    if (c.lanes || c.coef) {
      Value* lanes = c.lanes ? c.lanes : k.b.CreateMul(k.iota(env.width), k.splat(k.i64(c.coef), env.width));
      x = k.b.CreateAdd(k.splat(x, env.width), lanes);
    }
    // one unsigned comparison covers negative coordinates
    all = both(k, all, k.b.CreateICmpULT(x, k.splat(k.dim(operand.shape[d]), width_of(x))));
  }
  return all ? all : k.b.getTrue();
}

Value* load(Kernel& k, const Operand& operand, const Address& a, const Env& env, Value* guard) {
  auto& b = k.b;
  llvm::Type* type = k.memory_type(operand.dtype);
  const auto bytes = static_cast<unsigned>(byte_size(operand.dtype));
  if (auto* c = guard ? llvm::dyn_cast<llvm::ConstantInt>(guard) : nullptr) guard = c->isOne() ? nullptr : guard;
  if (a.step == 0) {
    Value* offset = k.add(a.scalar, k.i64(guard ? a.constant : 0));
    // an unread element is replaced by one that exists; the guard's select drops the value
    if (guard) offset = b.CreateSelect(guard, offset, operand.safe ? operand.safe : k.i64(0));
    Value* p = guard ? k.element(operand.base, operand.dtype, offset) : place(k, operand, a);
    Value* v = b.CreateAlignedLoad(type, p, llvm::Align(bytes));
    mark_invariant(k, operand, v);
    return from_memory(k, operand.dtype, v);
  }
  Value* mask = both(k, guard, a.padded ? nullptr : env.mask);
  if (mask) mask = k.splat(mask, env.width);
  llvm::Type* vector = k.lanes(type, env.width);
  Value* v = nullptr;
  if (a.step == 1) {
    Value* p = place(k, operand, a);
    v = mask ? masked_load(k, vector, p, llvm::Align(bytes), mask) : b.CreateAlignedLoad(vector, p, llvm::Align(bytes));
    if (!mask) mark_invariant(k, operand, v);
  } else if (a.step == 2 && (!mask || masks_loads(k, bytes))) {
    v = load_every_second(k, operand, place(k, operand, a), env.width, mask);
  } else {
    Value* all = mask ? mask : k.splat(b.getTrue(), env.width);
    v = b.CreateMaskedGather(vector, pointers(k, operand, a, env.width), llvm::Align(bytes), all, k.zero(vector));
  }
  return from_memory(k, operand.dtype, v);
}

Value* to_memory(Kernel& k, DType dtype, Value* v) {
  if (dtype == DType::boolean) return k.b.CreateZExt(v, k.lanes(k.b.getInt8Ty(), width_of(v)));
  if (is_small_float(dtype)) return narrow_half(k, v, dtype);
  return v;
}

void store(Kernel& k, const Operand& operand, const Address& a, const Env& env, Value* value) {
  auto& b = k.b;
  const auto bytes = static_cast<unsigned>(byte_size(operand.dtype));
  if (env.width == 1) {
    b.CreateAlignedStore(to_memory(k, operand.dtype, value), place(k, operand, a), llvm::Align(bytes));
    return;
  }
  value = to_memory(k, operand.dtype, k.splat(value, env.width));
  Value* mask = env.mask;
  if (a.padded && mask) {
    value = b.CreateSelect(mask, value, k.zero(value->getType()));
    mask = nullptr;
  }
  if (a.step == 1) {
    Value* p = place(k, operand, a);
    if (mask)
      masked_store(k, value, p, llvm::Align(bytes), mask);
    else
      b.CreateAlignedStore(value, p, llvm::Align(bytes));
    return;
  }
  Value* all = mask ? mask : k.splat(b.getTrue(), env.width);
  if (a.step == 0) {  // the map leaves out an axis of extent 1: only the first lane exists
    OPFUSE_CHECK(lanes_run_along_one(env), "lanes stored to one element");
    all = b.CreateAnd(all, b.CreateICmpEQ(k.iota(env.width), k.splat(k.i64(0), env.width)));
  }
  b.CreateMaskedScatter(value, pointers(k, operand, a, env.width), llvm::Align(bytes), all);
}

Value* axis_step(Kernel& k, const Operand& operand, const IndexMap& map, int axis) {
  Value* step = k.i64(0);
  for (size_t d = 0; d < map.dims.size(); ++d)
    for (const IndexTerm& t : map.dims[d].terms) {
      if (t.axis != axis || !(t.div == Dim(1))) continue;
      const auto& order = operand.layout.order;
      const auto at = std::find(order.begin(), order.end(), static_cast<int>(d)) - order.begin();
      Dim stride = operand.strides[static_cast<size_t>(at)];
      for (size_t b = 0; b < operand.layout.blocks.size(); ++b)
        if (operand.layout.blocks[b].axis == static_cast<int>(d)) stride = operand.strides[order.size() + b];
      step = k.add(step, k.dim(stride * t.coef));
    }
  return step;
}

LaneShape lane_shape(const Operand& operand, const IndexMap& map, int axis, int width) {
  LaneShape shape{0, false};
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const IndexExpr& e = map.dims[d];
    const DimStrides s = strides_of(operand, static_cast<int>(d));
    if (e.dynamic) {
      bool uses = false;
      e.dynamic.visit(
          [&](const Expr& x) { uses |= x.op() == ExprOp::read || (x.op() == ExprOp::coord && x.index() == axis); });
      if (uses) return {std::nullopt, false};
      continue;
    }
    int64_t coef = 0, multiple = e.offset.constant().value_or(1);
    for (const IndexTerm& t : e.terms) {
      const auto c = t.coef.constant(), div = t.div.constant(), mod = t.mod.constant();
      if (t.axis != axis) {
        multiple = gcd(multiple, c.value_or(1));
        continue;
      }
      if (!c || !div || !mod) return {std::nullopt, false};
      if (*div != 1 && *div % width == 0) {
        multiple = gcd(multiple, *c);
      } else if (*div == 1 && (*mod == 0 || *mod % width == 0)) {
        coef += *c;
        multiple = gcd(multiple, *c * width);
      } else {
        return {std::nullopt, false};
      }
    }
    if (coef == 0) continue;
    if (s.blocks.empty()) {
      const auto stride = s.outer.constant();
      if (!stride) return {std::nullopt, false};
      *shape.step += coef * *stride;
    } else if (coef == 1 && aligned(multiple, width) && s.blocks.back().first % width == 0 &&
               s.blocks.back().second.is_constant()) {
      *shape.step += *s.blocks.back().second.constant();
      shape.padded = true;
    } else {
      return {std::nullopt, false};
    }
  }
  return shape;
}

}  // namespace opfuse::cpu
