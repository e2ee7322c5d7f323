// A choice between two values. Where all lanes choose alike and an arm calls functions, only the arm that is needed is
// computed, as for the parts of a concatenation:
//
//     condition ? exp(x) : y       a scalar condition: a jump, a block for each arm
//                                  else: both arms, and a blend
//
// What an arm computed is known in its block alone.
#include <algorithm>

#include "cpu/emit/emit_expr.hpp"
#include "expr/held_ops.hpp"

namespace opfuse::cpu {

Value* ExprEmitter::select(const Expr& e, DType dtype) {
  Value* condition = emit(e.args()[0], DType::boolean);
  if (jumps_ && width_of(condition) == 1 && !llvm::isa<llvm::Constant>(condition) &&
      (calls_function(e.args()[1]) || calls_function(e.args()[2])))
    return jump(condition, e, dtype);
  Value* x = emit(e.args()[1], dtype);
  Value* y = emit(e.args()[2], dtype);
  if (x == y) return x;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(condition)) return c->isZero() ? y : x;
  unify(k_, x, y);
  if (width_of(condition) > width_of(x)) x = k_.splat(x, width_of(condition)), y = k_.splat(y, width_of(condition));
  return k_.b.CreateSelect(condition, x, y);
}

Value* ExprEmitter::jump(Value* condition, const Expr& e, DType dtype) {
  auto& b = k_.b;
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(k_.context(), name, k_.function); };
  llvm::BasicBlock *begins[] = {block("arm"), block("arm")}, *ends[] = {nullptr, nullptr}, *after = block("chosen");
  Value* values[2];
  b.CreateCondBr(condition, begins[0], begins[1]);
  const auto before = memo_;
  for (size_t i = 0; i < 2; ++i) {
    b.SetInsertPoint(begins[i]);
    values[i] = emit(e.args()[i + 1], dtype);
    ends[i] = b.GetInsertBlock();
    memo_ = before;
  }
  const int width = std::max(width_of(values[0]), width_of(values[1]));
  for (size_t i = 0; i < 2; ++i) {
    b.SetInsertPoint(ends[i]);
    values[i] = k_.splat(values[i], width);
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
  auto* chosen = b.CreatePHI(values[0]->getType(), 2);
  for (size_t i = 0; i < 2; ++i) chosen->addIncoming(values[i], ends[i]);
  return chosen;
}

}  // namespace opfuse::cpu
