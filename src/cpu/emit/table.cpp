#include "cpu/emit/table.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace opfuse::cpu {

Real look_up(const Table& table, Real like, Value* index) {
  std::vector<llvm::Constant*> values;
  for (float v : table) values.push_back(llvm::ConstantFP::get(like.k->b.getFloatTy(), v));
  return like.with(like.k->b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                             {llvm::ConstantVector::get(values), index}));
}

}  // namespace opfuse::cpu
