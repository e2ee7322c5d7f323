// Inline assembly without text: each accumulator is an output tied to itself as input.
#include "cpu/emit/fence.hpp"

#include <llvm/IR/InlineAsm.h>

namespace opfuse::cpu {

void hold_back(Kernel& k, const std::vector<Value**>& accumulators) {
  if (accumulators.empty()) return;
  std::vector<Value*> tied;
  std::vector<llvm::Type*> types;
  std::string outputs, inputs;
  for (Value** value : accumulators) {
    inputs += std::to_string(tied.size()) + ",";
    outputs += k.target.has("avx512f") ? "=v," : "=x,";
    tied.push_back(*value);
    types.push_back(tied.back()->getType());
  }
  llvm::Type* result = types.size() == 1 ? types[0] : llvm::StructType::get(k.context(), types);
  auto* nothing =
      llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), "", outputs + inputs + "~{memory}", true);
  Value* values = k.b.CreateCall(nothing, tied);
  for (size_t i = 0; i < accumulators.size(); ++i)
    *accumulators[i] = types.size() == 1 ? values : k.b.CreateExtractValue(values, static_cast<unsigned>(i));
}

Value* keep_until(Kernel& k, Value* value, Value* later) {
  llvm::Type* type = later->getType();
  auto* nothing = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type, value->getType()}, false), "",
                                       k.target.has("avx512f") ? "=v,0,v" : "=x,0,x", false);
  return k.b.CreateCall(nothing, {later, value});
}

namespace {

Value* same(Kernel& k, Value* value, const char* constraints) {
  llvm::Type* type = value->getType();
  auto* nothing = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", constraints, false);
  llvm::CallInst* same = k.b.CreateCall(nothing, {value});  // one for all of its uses, in front of their loops
  same->setDoesNotAccessMemory();
  same->setDoesNotThrow();
  same->addFnAttr(llvm::Attribute::WillReturn);
  return same;
}

}  // namespace

Value* opaque(Kernel& k, Value* integer) { return same(k, integer, "=r,0"); }

Value* opaque_vector(Kernel& k, Value* vector) { return same(k, vector, k.target.has("avx512f") ? "=v,0" : "=x,0"); }

}  // namespace opfuse::cpu
