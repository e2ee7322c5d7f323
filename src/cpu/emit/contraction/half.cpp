// Where half a vector holds the last outputs, two pixels share it (AVX-512, schedule number "half"):
//
//   w        = [w0 .. w7 | w0 .. w7]                 one load
//   x        = [x(p) ..  | x(p+1) ..]                a masked move of one broadcast into another, both used above
//   acc[p]  += x * w                                 sums of pixel p below, of pixel p+1 above
//
// So a pair of pixels takes one multiply-add of that vector instead of two; the epilogue splits them.
#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {

Value* twice_lower(Kernel& k, Value* x, int width) {
  std::vector<int> twice;
  for (int e = 0; e < width; ++e) twice.push_back(e % (width / 2));
  return k.b.CreateShuffleVector(x, twice);
}

Value* TileProducts::load_half(Value* from) const {
  const auto* whole = llvm::cast<llvm::FixedVectorType>(plan_.product.weights);
  const auto elements = static_cast<int>(whole->getNumElements());
  llvm::Type* type = k_.lanes(whole->getElementType(), elements / 2);
  Value* half = k_.b.CreateAlignedLoad(type, from, plan_.weight_align());
  return twice_lower(k_, half, elements);
}

/// Lanes of `x` where `own` says so, else of `other`. A lane may hold several elements.
Value* TileProducts::mix_lanes(Value* own, Value* x, Value* other) const {
  llvm::Type* lanes = k_.lanes(k_.b.getInt32Ty(), static_cast<int>(plan_.lanes));
  Value* mixed = k_.b.CreateSelect(own, k_.b.CreateBitCast(x, lanes), k_.b.CreateBitCast(other, lanes));
  return k_.b.CreateBitCast(mixed, x->getType());
}

/// `first` keeps the first pixel's value until the second one comes. Where that is masked, or there is none, its sums
/// stay as they are.
void TileProducts::multiply_half(std::vector<Value*>& sums, const Factor& x, Factor& first, const Factor& w,
                                 int64_t pixel, uint64_t pixels) const {
  const bool second = pixel % 2 != 0, both = (pixels >> (pixel ^ 1) & 1) != 0;
  if (both && !second) {
    first = x;
    return;
  }
  Value* own = opaque(k_, k_.b.getInt16(second ? 0xFF00 : 0x00FF));
  own = k_.b.CreateBitCast(own, k_.lanes(k_.b.getInt1Ty(), static_cast<int>(plan_.lanes)));
  Value*& sum = sums[tile_.form.place_of(pixel, tile_.form.vectors - 1)];
  if (!both) {
    sum = k_.b.CreateSelect(own, plan_.product.add(sum, x, w), sum);
    return;
  }
  Value* mixed = mix_lanes(own, x[0], first[0]);
  sum = keep_until(k_, mixed, plan_.product.add(sum, {mixed}, w));
}

/// What lies above a pixel's channels is not stored.
void split_pairs(const ContractionPlan& plan, const Tile& tile) {
  Kernel& k = plan.k;
  std::vector<int> upper;
  for (int64_t l = 0; l < plan.lanes; ++l) upper.push_back(static_cast<int>(plan.lanes / 2 + l % (plan.lanes / 2)));
  const int64_t v = tile.form.vectors - 1;
  for (int64_t p = 1; p < tile.pixels(); p += 2) {
    Value* both = k.b.CreateLoad(plan.product.sums, plan.places[tile.form.place_of(p, v)]);
    k.b.CreateStore(k.b.CreateShuffleVector(both, upper), plan.places[static_cast<size_t>(p * tile.form.vectors + v)]);
  }
}

}  // namespace opfuse::cpu
