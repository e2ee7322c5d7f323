// The inner loop of sums of codes: a word of `unit` channels of a pixel is broadcast, and one vector of weights holds
// those channels of each output.
//
//   byte products     acc += u8 * i8, four at once (vpdpbusd; never the saturating form)
//   words             acc += lo * lo + hi * hi, channels 0, 2 and 1, 3 of every word as i16 (pmaddwd)
#include <llvm/IR/IntrinsicsX86.h>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/emit/contraction/contraction.hpp"

namespace opfuse::cpu {
namespace {

constexpr uint32_t kEvenBytes = 0x00FF00FF, kEveryByte = 0x01010101, kSignBits = 0x80808080;

llvm::Intrinsic::ID word_products(const TargetInfo& target) {
  if (target.vector_bytes == 64) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  return target.vector_bytes == 32 ? llvm::Intrinsic::x86_avx2_pmadd_wd : llvm::Intrinsic::x86_sse2_pmadd_wd;
}

/// Of the vectors' width; both encodings have these names.
llvm::Intrinsic::ID byte_products(const TargetInfo& target) {
  if (target.vector_bytes == 64) return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  return target.vector_bytes == 32 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                   : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}

/// The two halves of every word, as vectors of i16.
struct Halves {
  Value* even;
  Value* odd;
};

Halves widened_weights(Kernel& k, Value* w, llvm::Type* words) {
  Value* pairs = k.b.CreateBitCast(w, words);
  return {k.b.CreateAShr(k.b.CreateShl(pairs, 8), 8), k.b.CreateAShr(pairs, 8)};
}

Halves widened_data(Kernel& k, Value* x, int lanes, llvm::Type* words) {
  const auto spread = [&](Value* v) {
    return k.b.CreateBitCast(k.splat(k.b.CreateAnd(v, k.b.getInt32(kEvenBytes)), lanes), words);
  };
  return {spread(x), spread(k.b.CreateLShr(x, 8))};
}

}  // namespace

void ContractionEmitter::emit_codes(const Env& env, uint64_t pixels, const TileRun& run, int64_t channels) {
  auto& b = k_.b;
  const std::vector<Address> w = weights_at(env);
  emit_prefetch(w, channels);
  const IndexMap& map = s_.stage.reads[static_cast<size_t>(view_.data)].map;
  const Address d = address_of(k_, data(), map, env, nullptr);
  if (fetch_data_) prefetch_data(env, d, run);
  const auto lanes = static_cast<int>(lanes_);
  llvm::Type* sums = acc_[0]->getAllocatedType();
  llvm::Type* words = k_.lanes(b.getInt16Ty(), 2 * lanes);
  const bool bytes = has_byte_products(k_.target), shifted = types().data == DType::i8;
  Value* pixel_step = view_.pixel < 0 ? k_.i64(0) : axis_step(k_, data(), map, view_.pixel);
  Value* row_step = row_run_ ? axis_step(k_, data(), map, row_axis_) : k_.i64(0);
  Value* data_at = k_.element(data().base, types().data, k_.add(d.scalar, k_.i64(d.constant)));
  Value* weights_at = k_.element(weights().base, types().weights, k_.add(w[0].scalar, k_.i64(w[0].constant)));
  auto* padding = b.getInt32(kEveryByte * static_cast<uint32_t>(view_.padding));
  const int64_t count = run.width * tile_rows_, unit = types().unit();
  std::vector<Value*> acc = load_accumulators(count);
  for (int64_t u = 0; u < ceil_of(channels, unit); ++u) {
    std::vector<Value*> vectors;
    std::vector<Halves> halves;
    for (int64_t v = 0; v < vectors_; ++v) {
      Value* from = k_.element(weights_at, types().weights, k_.i64((u * block_ + v * lanes_) * unit));
      vectors.push_back(b.CreateAlignedLoad(sums, from, weight_align()));
      if (!bytes) halves.push_back(widened_weights(k_, vectors.back(), words));
    }
    for (int64_t p = 0; p < count; ++p) {
      const bool inside = (pixels >> p & 1) != 0;
      if (!inside && !fills()) continue;
      Value* at = k_.add(k_.mul(pixel_step, k_.i64(p % run.width)), k_.i64(u * unit));
      at = k_.add(at, k_.mul(row_step, k_.i64(p / run.width)));
      Value* x = inside ? b.CreateAlignedLoad(b.getInt32Ty(), k_.element(data_at, types().data, at), data_align())
                        : static_cast<Value*>(padding);
      if (inside && shifted) x = b.CreateXor(x, b.getInt32(kSignBits));
      const Halves wide = bytes ? Halves{} : widened_data(k_, x, lanes, words);
      if (bytes) x = k_.splat(x, lanes);
      for (int64_t v = 0; v < vectors_; ++v) {
        Value*& a = acc[place_of(p, v)];
        if (bytes) {
          a = b.CreateIntrinsic(byte_products(k_.target), {}, {a, x, vectors[static_cast<size_t>(v)]});
          continue;
        }
        const Halves& h = halves[static_cast<size_t>(v)];
        a = b.CreateAdd(a, b.CreateIntrinsic(word_products(k_.target), {}, {wide.even, h.even}));
        a = b.CreateAdd(a, b.CreateIntrinsic(word_products(k_.target), {}, {wide.odd, h.odd}));
      }
    }
    end_step(acc, fills() ? all_pixels(run) : pixels);
  }
  store_accumulators(acc, count);
}

}  // namespace opfuse::cpu
