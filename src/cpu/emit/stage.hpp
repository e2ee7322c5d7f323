// One stage during emission: its operands, the leaves of its expressions, its reductions' arithmetic
// and its stores. Skeletons decide loops and lanes; this is what they have in common.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "cpu/emit/address.hpp"
#include "cpu/emit/emit_expr.hpp"
#include "cpu/emit/kernel.hpp"
#include "cpu/emit/math/code_table.hpp"

namespace opfuse::cpu {

class StageEmitter {
 public:
  /// `locals`: what reads of earlier stages and outputs with param -1 refer to, by stage and output; an output whose
  /// operand has no base is not stored.
  using Locals = std::map<std::pair<int, int>, Operand>;
  StageEmitter(Kernel& k, int stage_index, const Locals& locals = {});
  /// Of a stage that a skeleton made out of stage `index`; it must outlive the emitter.
  StageEmitter(Kernel& k, const Stage& made, int index, const Locals& locals = {});

  Kernel& k;
  const Stage& stage;
  std::vector<Operand> reads, outputs;
  bool jumps = false;  ///< values may be emitted as several blocks (ExprEmitter)

  size_t axis_count() const { return stage.domain.size() + stage.reduce.size(); }
  Env fresh_env(int width) const;  ///< all axes at 0
  /// An emitter of expressions at a point; `results` of the reductions so far, `given` replaces reads.
  ExprEmitter at(const Env& env, const std::vector<Value*>& results = {}, const std::map<int, Value*>& given = {});
  /// The caller keeps this read inside its tensor: no guard when it is loaded.
  void unguard(int read) { guarded_.erase(read); }
  struct Point {
    Env env;
    std::vector<Value*> results;
    bool pairs = false;  ///< the next point has the lanes behind these
  };
  void store_outputs(const Env& env, const std::vector<Value*>& results) {
    store_outputs(std::vector<Point>{{env, results}});
  }
  bool clips() const;  ///< some points are outside the results
  /// Neighbours whose values do not depend on each other: their chains of operations take turns.
  void store_outputs(const std::vector<Point>& points);
  void store_outputs_of(const Point& point);  ///< of one point, in the order of its operations
  /// At a point without reductions, with values instead of some reads.
  void store_given(const Env& env, const std::map<int, Value*>& given) { store_inside({env, {}}, given); }
  /// The first result at a point without reductions, not stored.
  Value* value_at(const Env& env) {
    ExprEmitter point = at(env);
    return value_at(0, point);
  }
  /// The same of a point whose results are places in memory that hold values of `type`: they are read there, not kept
  /// in registers from before.
  void store_resting(Point point, llvm::Type* type);

 private:
  Value* value_at(size_t output, ExprEmitter& point);
  std::vector<Value*> values_at(const Point& point, const std::map<int, Value*>& given);
  Value* inside_outputs(const Env& env);
  size_t store_codes(const std::vector<Point>& points, size_t first);   // stage_codes.cpp
  size_t store_halves(const std::vector<Point>& points, size_t first);  // stage_halves.cpp
  bool joins_lanes(size_t output, const Env& env) const;
  void store_inside(const Point& point, const std::map<int, Value*>& given = {});
  void store_in_turn(const Point& point, const std::map<int, Value*>& given);
  void store_output(size_t i, const Point& point, Value* value);
  std::set<int> guarded_;                         ///< reads whose in_bounds appears somewhere
  std::vector<std::optional<CodeTable>> tables_;  ///< of outputs
};

/// Whether outputs are long chains of dependent operations. Not by erf, whose lookups keep their units busy as they
/// are, unless codes are behind it: together those are longer than a core looks ahead.
bool has_long_epilogue(const Stage& stage);

Value* identity_of(Kernel& k, const Reduction& reduction, int width);
/// acc combined with the reduction's value at the emitter's point; a sum of products is an fma.
Value* accumulate(Kernel& k, const Reduction& reduction, const Expr& value, Value* acc, ExprEmitter& point,
                  Value* mask);
Value* combine(Kernel& k, ReduceKind kind, DType dtype, Value* x, Value* y);
/// Combines the lanes of every vector in a fixed binary tree, the same for any number of vectors (a power of two, at
/// most their width): a scalar each.
std::vector<Value*> combine_lanes(Kernel& k, ReduceKind kind, DType dtype, std::vector<Value*> rows);
inline Value* combine_lanes(Kernel& k, ReduceKind kind, DType dtype, Value* row) {
  return combine_lanes(k, kind, dtype, std::vector<Value*>{row})[0];
}

}  // namespace opfuse::cpu
