//   d = places - place of lane 0
//   all d in [0, W), and a vector from there exists:  permute(load(place of lane 0), d)
//   else: lane by lane, which takes three to four instructions each
#include "cpu/emit/nearby.hpp"

#include <llvm/IR/IntrinsicsX86.h>

namespace opfuse::cpu {
namespace {

/// From the operand's first element to its last.
std::optional<int64_t> last_place(const Operand& operand) {
  if (!operand.layout.blocks.empty()) return std::nullopt;
  int64_t last = 0;
  for (size_t i = 0; i < operand.layout.order.size(); ++i) {
    const auto extent = operand.shape[static_cast<size_t>(operand.layout.order[i])].constant();
    const auto stride = operand.strides[i].constant();
    if (!extent || !stride || *extent < 1 || *stride < 0) return std::nullopt;
    last += (*extent - 1) * *stride;
  }
  return last;
}

std::optional<unsigned> permutation(const Kernel& k, int width) {
  if (width == 8 && k.target.has("avx2")) return llvm::Intrinsic::x86_avx2_permps;
  if (width == 16 && k.target.has("avx512f")) return llvm::Intrinsic::x86_avx512_permvar_sf_512;
  return std::nullopt;
}

/// All lanes are in [0, limit), a power of two: no other bit is set. Of one register, the halves together.
Value* is_below(Kernel& k, Value* lanes, int limit) {
  auto& b = k.b;
  Value* bits = b.CreateAnd(lanes, k.splat(k.i64(~int64_t{limit - 1}), width_of(lanes)));
  const int half = width_of(lanes) / 2;
  std::vector<int> low, high;
  for (int i = 0; i < half; ++i) low.push_back(i), high.push_back(half + i);
  bits = b.CreateOr(b.CreateShuffleVector(bits, low), b.CreateShuffleVector(bits, high));
  llvm::Type* whole = b.getIntNTy(static_cast<unsigned>(64 * half));
  return b.CreateICmpEQ(b.CreateBitCast(bits, whole), llvm::ConstantInt::get(whole, 0));
}

}  // namespace

Value* load_nearby(Kernel& k, const Operand& operand, const Address& address, int width) {
  auto& b = k.b;
  const auto last = last_place(operand);
  const auto permute = permutation(k, width);
  if (operand.dtype != DType::f32 || !address.lanes || !permute || !last || *last < width - 1) return nullptr;
  llvm::Type* vector = k.lanes(b.getFloatTy(), width);
  Value* from = k.add(address.scalar, k.i64(address.constant));
  Value* lane0 = b.CreateExtractElement(address.lanes, uint64_t{0});
  Value* apart = b.CreateSub(address.lanes, k.splat(lane0, width));
  Value* start = k.add(from, lane0);
  Value* exists = b.CreateICmpSLE(start, k.i64(*last - (width - 1)));
  Value* near = b.CreateAnd(is_below(k, apart, width), exists);
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(k.context(), name, k.function); };
  llvm::BasicBlock *together = block("together"), *each = block("each"), *after = block("loaded");
  b.CreateCondBr(near, together, each);
  b.SetInsertPoint(together);
  const llvm::Align align(4);
  Value* all = b.CreateAlignedLoad(vector, k.element(operand.base, operand.dtype, start), align);
  Value* order = b.CreateTrunc(apart, k.lanes(b.getInt32Ty(), width));
  Value* permuted = b.CreateIntrinsic(*permute, {}, {all, order});
  b.CreateBr(after);
  b.SetInsertPoint(each);
  Value* pointers = b.CreateGEP(b.getFloatTy(), k.element(operand.base, operand.dtype, from), address.lanes);
  Value* gathered = b.CreateMaskedGather(vector, pointers, align, k.splat(b.getTrue(), width), k.zero(vector));
  b.CreateBr(after);
  b.SetInsertPoint(after);
  auto* loaded = b.CreatePHI(vector, 2);
  loaded->addIncoming(permuted, together);
  loaded->addIncoming(gathered, each);
  return loaded;
}

}  // namespace opfuse::cpu
