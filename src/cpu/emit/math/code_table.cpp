// AVX-512 looks up words, of which two registers hold 64: the table's 128 are two lookups and a choice by the index's
// highest bit; even and odd codes take turns. AVX2 looks up the low four bits in each of 16 rows and keeps the row of
// the high four. Others load byte by byte.
#include "cpu/emit/math/code_table.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/emit/math/quantise.hpp"
#include "expr/domain.hpp"
#include "expr/evaluator.hpp"

namespace opfuse::cpu {
namespace {

constexpr int kShortest = 7;         // operations: an entry costs as much as six
constexpr int kInnerRead = 1 << 24;  // stands for the code; stages have no such read
constexpr int kWideBytes = 64, kWords = 32, kRow = 16, kBits = 8;

/// min(max(round_even(x), low), low + 255) of f32.
bool is_code(const Expr& e) {
  const auto bounded = [](const Expr& x, ExprOp op) {
    return x.op() == op && x.dtype() == DType::f32 && x.args()[1].is_constant();
  };
  if (!bounded(e, ExprOp::min) || !bounded(e.args()[0], ExprOp::max)) return false;
  const Expr& most = e.args()[0];
  return most.args()[0].op() == ExprOp::round_even && e.args()[1].value() - most.args()[1].value() == kCodes - 1;
}

double lowest(const Expr& code) { return code.args()[0].args()[1].value(); }

/// Numbers of finite leaves: what makes NaN of them is not among these operations.
bool is_number_of(const Expr& x, const std::function<bool(const Expr&)>& is_number) {
  bool good = true;
  x.visit([&](const Expr& e) {
    switch (e.op()) {
      case ExprOp::constant:
      case ExprOp::result:
        good = good && (e.op() == ExprOp::constant || !is_float(e.dtype()));
        break;
      case ExprOp::read:
        good = good && (!is_float(e.dtype()) || is_number(e));
        break;
      case ExprOp::add:
      case ExprOp::sub:
      case ExprOp::mul:
      case ExprOp::min:
      case ExprOp::max:
      case ExprOp::round_even:
      case ExprOp::cast:
        break;
      default:
        good = false;
    }
  });
  return good;
}

/// `e` as a function of the code alone; nothing: it depends on something else too.
std::optional<Expr> function_of(const Expr& e, const Expr& code, const Expr& by) {
  const Expr whole = replaced(e, code, by);
  bool alone = true;
  int operations = 0;
  whole.visit([&](const Expr& x) {
    if (!x.args().empty()) ++operations;
    alone = alone && (!x.args().empty() || x.is_constant() || x.node() == by.node());
  });
  return alone && operations >= kShortest ? std::optional(whole) : std::nullopt;
}

CodeTable table_of(const Expr& function, const Expr& code) {
  const double low = lowest(code);
  CodeTable table{cast(code + Expr::constant(DType::f32, 0.0 - low), DType::u8)};
  const Evaluator evaluator(function);
  for (int i = 0; i < kCodes; ++i) {
    const auto value = evaluator(Precision::typed, [&](const Expr&) { return ScalarValue{DType::f32, low + i, 0}; });
    table.bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(value.integer);
  }
  return table;
}

llvm::Constant* bytes_of(Kernel& k, const CodeTable& table, int from, int count) {
  return llvm::ConstantDataVector::get(k.context(),
                                       llvm::ArrayRef<uint8_t>(table.bytes.data() + from, static_cast<size_t>(count)));
}

Value* resized(Kernel& k, Value* bytes, int width) {
  std::vector<int> order;
  for (int i = 0; i < width; ++i) order.push_back(i < width_of(bytes) ? i : -1);
  return k.b.CreateShuffleVector(bytes, order);
}

/// The low bytes of 32 words, by 32 codes.
Value* look_up_words(Kernel& k, const CodeTable& table, Value* codes) {
  auto& b = k.b;
  llvm::Type* type = codes->getType();
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  const auto part = [&](int i) {
    return llvm::ConstantExpr::getBitCast(bytes_of(k, table, i * kWideBytes, kWideBytes), type);
  };
  Value* index = b.CreateLShr(codes, number(1));
  const auto half = [&](int i) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_hi_512, {}, {part(i), index, part(i + 1)});
  };
  Value* high = b.CreateICmpUGE(codes, number(kCodes / 2));
  Value* pair = b.CreateSelect(high, half(2), half(0));
  Value* odd = b.CreateICmpNE(b.CreateAnd(codes, number(1)), number(0));
  return b.CreateAnd(b.CreateSelect(odd, b.CreateLShr(pair, number(kBits)), pair), number(0xFF));
}

Value* look_up_wide(Kernel& k, const CodeTable& table, Value* codes) {
  auto& b = k.b;
  llvm::Type* words = k.lanes(b.getInt16Ty(), kWords);
  Value* pairs = b.CreateBitCast(codes, words);
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(words, n); };
  Value* even = look_up_words(k, table, b.CreateAnd(pairs, number(0xFF)));
  Value* odd = look_up_words(k, table, b.CreateLShr(pairs, number(kBits)));
  return b.CreateBitCast(b.CreateOr(even, b.CreateShl(odd, number(kBits))), codes->getType());
}

Value* look_up_rows(Kernel& k, const CodeTable& table, Value* codes) {
  auto& b = k.b;
  llvm::Type* type = codes->getType();
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  Value* low = b.CreateAnd(codes, number(kRow - 1));
  Value* high = b.CreateLShr(codes, number(4));
  Value* found = k.zero(type);
  for (int row = 0; row < kCodes / kRow; ++row) {
    std::vector<llvm::Constant*> bytes;
    for (int i = 0; i < 2 * kRow; ++i)
      bytes.push_back(b.getInt8(table.bytes[static_cast<size_t>(row * kRow + i % kRow)]));
    Value* here = b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_pshuf_b, {}, {llvm::ConstantVector::get(bytes), low});
    found = b.CreateSelect(b.CreateICmpEQ(high, number(static_cast<uint64_t>(row))), here, found);
  }
  return found;
}

Value* look_up_each(Kernel& k, const CodeTable& table, Value* codes) {
  auto& b = k.b;
  auto* type = llvm::ArrayType::get(b.getInt8Ty(), kCodes);
  auto* all = llvm::ConstantDataArray::get(k.context(), llvm::ArrayRef<uint8_t>(table.bytes));
  auto* memory = new llvm::GlobalVariable(*k.function->getParent(), type, true, llvm::GlobalValue::PrivateLinkage, all);
  const auto one = [&](Value* code) -> Value* {
    Value* at = b.CreateGEP(type, memory, {k.i64(0), b.CreateZExt(code, b.getInt64Ty())});
    return b.CreateLoad(b.getInt8Ty(), at);
  };
  if (width_of(codes) == 1) return one(codes);
  Value* found = k.zero(codes->getType());
  for (int i = 0; i < width_of(codes); ++i)
    found = b.CreateInsertElement(found, one(b.CreateExtractElement(codes, k.i64(i))), k.i64(i));
  return found;
}

}  // namespace

std::optional<CodeTable> code_table(const Expr& e, const std::function<bool(const Expr& read)>& is_number) {
  if (e.op() != ExprOp::cast || (e.dtype() != DType::u8 && e.dtype() != DType::i8)) return std::nullopt;
  const Expr by = Expr::read(kInnerRead, DType::f32);
  std::optional<CodeTable> found;
  e.visit([&](const Expr& x) {  // the innermost first, which leaves most to the table
    if (found || !is_code(x) || !is_number_of(x, is_number)) return;
    if (const auto function = function_of(e, x, by)) found = table_of(*function, x);
  });
  return found;
}

Value* look_up(Kernel& k, const CodeTable& table, Value* codes) {
  const int width = width_of(codes), bytes = static_cast<int>(k.target.vector_bytes);
  const bool wide = k.target.has("avx512bw") && bytes == kWideBytes, rows = k.target.has("avx2") && bytes == 2 * kRow;
  if (width == 1 || width > bytes || (!wide && !rows)) return look_up_each(k, table, codes);
  Value* all = width == bytes ? codes : resized(k, codes, bytes);
  Value* found = wide ? look_up_wide(k, table, all) : look_up_rows(k, table, all);
  return width == bytes ? found : resized(k, found, width);
}

}  // namespace opfuse::cpu
