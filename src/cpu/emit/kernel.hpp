// Emission state of one kernel: the function being built, its arguments, structured loops and the
// values of dimensions. Everything else in this folder works through a Kernel.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse::cpu {

using llvm::Value;

/// A tensor in memory as a stage sees it: a region parameter or a tile-local buffer.
struct Operand {
  Value* base = nullptr;  ///< pointer to logical coordinate 0
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;
  std::vector<Dim> strides;
  bool constant = false;  ///< never written while the kernel runs
  Value* safe = nullptr;  ///< offset of an element that may always be read; null: 0
};

class Kernel {
 public:
  Kernel(llvm::Module& module, const KernelSpec& spec, const TargetInfo& target, const std::string& symbol);

  llvm::IRBuilder<> b;
  const KernelSpec& spec;
  const TargetInfo& target;
  /// By vcvtneps2bf16: below 2^-126 bf16 products read 0, and kernels that store sums in bf16 store it.
  const bool rounds_halves;
  llvm::Function* function = nullptr;
  Value* part = nullptr;
  Value* scratch = nullptr;
  int64_t scratch_bytes = 0;
  Dim parts = 1;

  llvm::LLVMContext& context() { return function->getContext(); }
  Operand operand(int param);
  /// Ends the function; no emission afterwards.
  void finish();

  // Integers (i64), folding what is constant.
  Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  Value* dim(const Dim& dim);  ///< emitted once, in the entry block
  Value* add(Value* x, Value* y);
  Value* sub(Value* x, Value* y);
  Value* mul(Value* x, Value* y);
  Value* div(Value* x, Value* y);  ///< both non-negative
  Value* rem(Value* x, Value* y);
  Value* min(Value* x, Value* y);
  Value* max(Value* x, Value* y);
  Value* floor_div(Value* x, int64_t y);  ///< any sign of x, y > 0

  // Structure.
  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body);
  void branch(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  llvm::AllocaInst* variable(llvm::Type* type);
  llvm::AllocaInst* zeroed_variable(llvm::Type* type);  ///< on entry; for volatile accesses

  // Types.
  llvm::Type* memory_type(DType dtype);
  llvm::Type* value_type(DType dtype);  ///< what expressions compute in: f16 and bf16 as float, bool as i1
  llvm::Type* lanes(llvm::Type* type, int width);
  Value* splat(Value* scalar, int width);
  Value* iota(int width);  ///< <0, 1, ...> of i64
  Value* zero(llvm::Type* type) { return llvm::Constant::getNullValue(type); }
  /// x * y + z: one rounding where the target has FMA, two elsewhere.
  Value* fma(Value* x, Value* y, Value* z);
  /// base + offset elements.
  Value* element(Value* base, DType dtype, Value* offset);

 private:
  llvm::BasicBlock* entry_ = nullptr;
  Value* symbols_ = nullptr;
  Value* pointers_ = nullptr;
  std::vector<Value*> params_;
  std::map<std::string, Value*> dims_;
  Value* emit_dim(const Dim& dim);
};

/// Vector lanes of 32-bit elements on a target.
inline int lanes_of(const TargetInfo& target) { return static_cast<int>(target.vector_bytes / 4); }
int width_of(const Value* value);  ///< 1 for a scalar

}  // namespace opfuse::cpu
