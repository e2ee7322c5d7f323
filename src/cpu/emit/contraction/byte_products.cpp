// Sums of codes: a word of four channels of a pixel is broadcast, and a vector of weights holds those channels of each
// output.
//
//   byte products     acc += u8 * i8, four at once (vpdpbusd; never the saturating form)
//   words             acc += lo * lo + hi * hi, channels 0, 2 and 1, 3 of every word as i16 (pmaddwd)

#include "cpu/contraction/codes.hpp"
#include "cpu/emit/contraction/product.hpp"
#include "cpu/emit/fence.hpp"
#include "cpu/emit/multiply_bytes.hpp"
#include "cpu/emit/multiply_pairs.hpp"

namespace opfuse::cpu {
namespace {

constexpr uint32_t kEvenBytes = 0x00FF00FF;

void add_bytes(Product& p, Kernel& k, int lanes) {
  p.spread = [&k, lanes](Value* x) { return Factor{k.splat(x, lanes)}; };
  p.unpack = [](Value* w) { return Factor{w}; };
  p.add = [&k](Value* sums, const Factor& x, const Factor& w) { return multiply_bytes(k, sums, x[0], w[0]); };
}

Value* constant_like(Value* x, uint32_t bits) { return llvm::ConstantInt::get(x->getType(), bits); }

/// A word as it is loaded, not what is computed from it: a load does that at no cost.
Value* in_all_lanes(Kernel& k, Value* x, int lanes) {
  const bool vector = x->getType()->isVectorTy() || llvm::isa<llvm::Constant>(x);
  return vector ? k.splat(x, lanes) : opaque_vector(k, k.splat(x, lanes));
}

/// Factors are the even and the odd bytes of every word, as vectors of i16. Words are loaded into all lanes and taken
/// apart there: a broadcast of a general register is an instruction of a unit that multiplies.
void add_words(Product& p, Kernel& k, int lanes) {
  llvm::Type* words = k.lanes(k.b.getInt16Ty(), 2 * lanes);
  p.spread = [&k, lanes, words](Value* x) {
    Value* all = in_all_lanes(k, x, lanes);
    Value* even = k.b.CreateBitCast(k.b.CreateAnd(all, constant_like(all, kEvenBytes)), words);
    return Factor{even, k.b.CreateLShr(k.b.CreateBitCast(all, words), 8)};
  };
  p.unpack = [&k, words](Value* w) {
    Value* pairs = k.b.CreateBitCast(w, words);
    Value* even = k.b.CreateAShr(k.b.CreateShl(pairs, 8), 8);
    return Factor{even, k.b.CreateAShr(pairs, 8)};
  };
  p.add = [&k](Value* sums, const Factor& x, const Factor& w) {
    for (size_t i = 0; i < x.size(); ++i) {
      Value* product = multiply_pairs(k, x[i], w[i]);
      sums = k.b.CreateAdd(sums, product);
      if (k.target.vector_registers > 16) sums = keep_until(k, product, sums);  // else there is none to keep it in
    }
    return sums;
  };
}

}  // namespace

Product byte_products(Kernel& k, const ElementTypes& types) {
  const auto lanes = static_cast<int>(types.lanes(k.target));
  Product p;
  p.unit = types.unit();
  p.word = k.b.getInt32Ty();
  p.sums = p.weights = k.lanes(k.b.getInt32Ty(), lanes);
  if (has_byte_products(k.target))
    add_bytes(p, k, lanes);
  else
    add_words(p, k, lanes);
  if (types.data == DType::i8)  // + 128 they are u8
    p.spread = [&k, lanes, spread = p.spread](Value* x) {
      if (!has_byte_products(k.target)) x = in_all_lanes(k, x, lanes);
      return spread(k.b.CreateXor(x, constant_like(x, kSignBits)));
    };
  return p;
}

Product byte_products(Kernel& k, const ContractionView& view) {
  Product p = byte_products(k, view.types);
  const uint32_t flipped = view.types.data == DType::i8 ? kSignBits : 0;
  if (view.guarded && view.padding != 0)
    p.outside = k.b.getInt32((kEveryByte * static_cast<uint32_t>(view.padding)) ^ flipped);
  return p;
}

}  // namespace opfuse::cpu
