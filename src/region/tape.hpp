// Expressions flattened for the region interpreter: each distinct node once, operands first, evaluated
// into an array of slots. One Tape serves all threads; each thread has its own slots.
#pragma once

#include <unordered_map>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

/// What leaves of an expression evaluate to at one point of a stage's iteration space.
class TapeLeaves {
 public:
  virtual ~TapeLeaves() = default;
  /// Value of read `index`; false when its coordinates leave the tensor (the value is then unusable).
  virtual bool load(int index, ScalarValue& value) = 0;
  virtual bool in_bounds(int index) = 0;
  virtual int64_t coord(int axis) = 0;
  virtual ScalarValue result(int index) = 0;
};

struct TapeSlots {
  std::vector<ScalarValue> values;
  std::vector<char> poisoned;  ///< depends on a read outside its tensor
  std::vector<ScalarValue> args;
};

/// An operation of a flattened expression; operands are earlier ones.
struct FlatStep {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;
  int args[3] = {-1, -1, -1};
  int count = 0;
  int index = 0;  ///< of a leaf
};
using StepNumbers = std::unordered_map<const ExprNode*, int>;
/// What `e` is as a step, but for a constant's value.
FlatStep flat_step(const Expr& e, const StepNumbers& numbers);

class Tape {
 public:
  Tape() = default;
  Tape(const Expr& expr, const SymbolValues& symbols);
  bool empty() const { return steps_.empty(); }
  /// E::internal when the value depends on an unguarded read outside its tensor.
  ScalarValue run(TapeLeaves& leaves, TapeSlots& slots, Precision precision) const;

 private:
  struct Step : FlatStep {
    ScalarValue constant;
  };
  std::vector<Step> steps_;
  void step(const Step& s, size_t at, TapeLeaves& leaves, TapeSlots& slots, Precision precision) const;
};

}  // namespace opfuse
