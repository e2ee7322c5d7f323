// The function frame, structured loops and small integer arithmetic of a kernel.
//
//   entry:  arguments, parameter pointers, dimension values, variables (allocas)
//   body:   whatever the skeletons emit; loops are rotated (tested at the bottom, guarded at the top)
#include "cpu/emit/kernel.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Verifier.h>

#include "base/fail.hpp"
#include "cpu/contraction/codes.hpp"
#include "kernel/launch_size.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {

using llvm::BasicBlock;
using llvm::ConstantInt;
using llvm::Type;

namespace {

std::optional<int64_t> constant_of(Value* value) {
  if (auto* c = llvm::dyn_cast<ConstantInt>(value)) return c->getSExtValue();
  return std::nullopt;
}

std::string joined(const std::vector<std::string>& features) {
  std::string text;
  for (const auto& f : features) text += (text.empty() ? "+" : ",+") + f;
  return text;
}

}  // namespace

int width_of(const Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

Kernel::Kernel(llvm::Module& module, const KernelSpec& s, const TargetInfo& t, const std::string& symbol)
    : b(module.getContext()),
      spec(s),
      target(t),
      rounds_halves(t.has("avx512bf16") && t.vector_bytes == 64 && rounds_sums_to_halves(s.region)) {
  Type* pointer = b.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty(), b.getInt64Ty()}, false);
  function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("no-builtins");
  function->addFnAttr("target-cpu", target.llvm_cpu);
  function->addFnAttr("target-features", joined(needed_features(s.region, s.schedule, target)));
  function->addFnAttr("prefer-vector-width", std::to_string(target.vector_bytes * 8));
  function->addFnAttr("min-legal-vector-width", std::to_string(target.vector_bytes * 8));
  for (unsigned i = 0; i < 3; ++i) {
    function->addParamAttr(i, llvm::Attribute::NoCapture);
    if (i < 2) function->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  pointers_ = function->getArg(0);
  symbols_ = function->getArg(1);
  scratch = function->getArg(2);
  part = function->getArg(3);
  entry_ = BasicBlock::Create(context(), "entry", function);
  auto* body = BasicBlock::Create(context(), "body", function);
  b.SetInsertPoint(entry_);
  for (size_t i = 0; i < spec.region.params.size(); ++i) {
    Value* slot = b.CreateConstGEP1_64(pointer, pointers_, i);
    auto* load = b.CreateLoad(pointer, slot, "p" + std::to_string(i));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
    params_.push_back(load);
  }
  b.CreateBr(body);
  b.SetInsertPoint(body);
}

void Kernel::finish() {
  b.CreateRetVoid();
  std::string problem;
  llvm::raw_string_ostream out(problem);
  OPFUSE_CHECK(!llvm::verifyFunction(*function, &out), "{}", problem);
}

Operand Kernel::operand(int param) {
  const auto& p = spec.region.params[param];
  const auto& l = spec.layouts[param];
  return {params_[param], p.type.dtype, p.type.shape, l.layout, l.strides, never_written(spec.region, param)};
}

Value* Kernel::dim(const Dim& d) {
  if (auto c = d.constant()) return i64(*c);
  auto [it, fresh] = dims_.try_emplace(d.text(), nullptr);
  if (fresh) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(entry_->getTerminator());
    Value* value = emit_dim(d);
    dims_[d.text()] = value;
    return value;
  }
  return it->second;
}

Value* Kernel::emit_dim(const Dim& d) {
  if (d.op() == DimOp::symbol) {
    const auto invariant = [&](llvm::LoadInst* load) {
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
      return load;
    };
    if (d.symbol_name() == kLaunchSize) {
      Value* slot = b.CreateConstGEP1_64(b.getPtrTy(), pointers_, spec.region.params.size());
      Value* place = invariant(b.CreateLoad(b.getPtrTy(), slot));
      return invariant(b.CreateLoad(b.getInt64Ty(), place, kLaunchSize));
    }
    for (size_t i = 0; i < spec.symbols.size(); ++i)
      if (spec.symbols[i] == d.symbol_name())
        return invariant(
            b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), symbols_, i), spec.symbols[i]));
    throw fail(E::codegen_failed, "the kernel uses dimension symbol '{}', which is not an argument of it",
               d.symbol_name());
  }
  Value* result = nullptr;
  for (const Dim& arg : d.args()) {
    Value* x = dim(arg);
    if (!result) {
      result = x;
      continue;
    }
    switch (d.op()) {
      case DimOp::add:
        result = add(result, x);
        break;
      case DimOp::mul:
        result = mul(result, x);
        break;
      case DimOp::min:
        result = min(result, x);
        break;
      case DimOp::max:
        result = max(result, x);
        break;
      case DimOp::floor_div:
      case DimOp::mod: {
        Value* q = b.CreateSDiv(result, x);
        Value* r = b.CreateSub(result, b.CreateMul(q, x));
        Value* wrong = b.CreateAnd(b.CreateICmpNE(r, i64(0)), b.CreateICmpSLT(b.CreateXor(r, x), i64(0)));
        result = d.op() == DimOp::mod ? b.CreateSelect(wrong, b.CreateAdd(r, x), r)
                                      : b.CreateSub(q, b.CreateZExt(wrong, b.getInt64Ty()));
        break;
      }
      default:
        OPFUSE_CHECK(false, "dimension {}", d.text());
    }
  }
  return result;
}

Value* Kernel::add(Value* x, Value* y) {
  if (constant_of(x) == 0) return y;
  if (constant_of(y) == 0) return x;
  return b.CreateAdd(x, y);
}

Value* Kernel::sub(Value* x, Value* y) { return constant_of(y) == 0 ? x : b.CreateSub(x, y); }

Value* Kernel::mul(Value* x, Value* y) {
  if (constant_of(x) == 1) return y;
  if (constant_of(y) == 1) return x;
  return b.CreateMul(x, y);
}

Value* Kernel::div(Value* x, Value* y) { return constant_of(y) == 1 ? x : b.CreateUDiv(x, y); }

Value* Kernel::rem(Value* x, Value* y) { return constant_of(y) == 1 ? i64(0) : b.CreateURem(x, y); }

Value* Kernel::min(Value* x, Value* y) { return x == y ? x : b.CreateSelect(b.CreateICmpSLT(x, y), x, y); }

Value* Kernel::max(Value* x, Value* y) { return x == y ? x : b.CreateSelect(b.CreateICmpSGT(x, y), x, y); }

Value* Kernel::floor_div(Value* x, int64_t y) {
  if (y == 1) return x;
  if ((y & (y - 1)) == 0) return b.CreateAShr(x, static_cast<uint64_t>(__builtin_ctzll(static_cast<uint64_t>(y))));
  Value* q = b.CreateSDiv(x, i64(y));
  Value* below = b.CreateICmpSLT(b.CreateSub(x, b.CreateMul(q, i64(y))), i64(0));
  return b.CreateSub(q, b.CreateZExt(below, b.getInt64Ty()));
}

void Kernel::loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
  auto first = constant_of(begin), last = constant_of(end);
  if (first && last) {
    if (*first >= *last) return;
    if (*first + step >= *last) return body(begin);
  }
  auto* before = b.GetInsertBlock();
  auto* head = BasicBlock::Create(context(), "loop", function);
  auto* after = BasicBlock::Create(context(), "done", function);
  if (first && last)
    b.CreateBr(head);
  else
    b.CreateCondBr(b.CreateICmpSLT(begin, end), head, after);
  b.SetInsertPoint(head);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(begin, before);
  body(i);
  Value* next = b.CreateNSWAdd(i, i64(step));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), head, after);
  b.SetInsertPoint(after);
}

void Kernel::branch(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  if (auto c = constant_of(condition)) {
    if (*c)
      then();
    else if (otherwise)
      otherwise();
    return;
  }
  auto* yes = BasicBlock::Create(context(), "then", function);
  auto* no = otherwise ? BasicBlock::Create(context(), "else", function) : nullptr;
  auto* after = BasicBlock::Create(context(), "join", function);
  b.CreateCondBr(condition, yes, no ? no : after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  if (no) {
    b.SetInsertPoint(no);
    otherwise();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

llvm::AllocaInst* Kernel::variable(Type* type) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_, entry_->begin());
  return b.CreateAlloca(type);
}

llvm::AllocaInst* Kernel::zeroed_variable(Type* type) {
  llvm::AllocaInst* place = variable(type);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_->getTerminator());
  b.CreateStore(zero(type), place, true);
  return place;
}

Type* Kernel::memory_type(DType dtype) {
  switch (byte_size(dtype)) {
    case 1:
      return b.getInt8Ty();
    case 2:
      return b.getInt16Ty();
    case 4:
      return dtype == DType::f32 ? b.getFloatTy() : b.getInt32Ty();
    case 8:
      return dtype == DType::f64 ? b.getDoubleTy() : b.getInt64Ty();
    default:
      throw fail(E::codegen_failed, "no machine type for elements of type {}", name_of(dtype));
  }
}

Type* Kernel::value_type(DType dtype) {
  if (dtype == DType::boolean) return b.getInt1Ty();
  if (is_small_float(dtype)) return b.getFloatTy();
  return memory_type(dtype);
}

Type* Kernel::lanes(Type* type, int width) { return width == 1 ? type : llvm::FixedVectorType::get(type, width); }

Value* Kernel::splat(Value* scalar, int width) {
  if (width == 1 || width_of(scalar) == width) return scalar;
  return b.CreateVectorSplat(static_cast<unsigned>(width), scalar);
}

Value* Kernel::iota(int width) {
  std::vector<uint64_t> values(static_cast<size_t>(width));
  for (size_t i = 0; i < values.size(); ++i) values[i] = i;
  return llvm::ConstantDataVector::get(context(), values);
}

Value* Kernel::fma(Value* x, Value* y, Value* z) {
  if (target.fma) return b.CreateIntrinsic(llvm::Intrinsic::fma, {z->getType()}, {x, y, z});
  return b.CreateFAdd(b.CreateFMul(x, y), z);
}

Value* Kernel::element(Value* base, DType dtype, Value* offset) {
  return constant_of(offset) == 0 ? base : b.CreateGEP(memory_type(dtype), base, offset);
}

}  // namespace opfuse::cpu
