// Inline assembly without text: each accumulator is an output tied to itself as input.
#include "codegen/cpu/fence.hpp"

#include <llvm/IR/InlineAsm.h>

namespace opfuse::cpu {

void hold_back(Kernel& k, const std::vector<Value**>& accumulators) {
  if (accumulators.empty()) return;
  std::vector<Value*> tied;
  std::vector<llvm::Type*> types;
  std::string outputs, inputs;
  for (Value** value : accumulators) {
    inputs += std::to_string(tied.size()) + ",";
    outputs += k.target.vector_bytes == 64 ? "=v," : "=x,";
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

}  // namespace opfuse::cpu
