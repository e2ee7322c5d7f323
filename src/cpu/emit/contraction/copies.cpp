// Copies of the rows that a chunk reads (cpu/contraction/data_copies.hpp):
//
//   for blocks of channels: for input rows:
//     pixels outside | pixels of the data | pixels outside          rows outside: all of them
//
// Codes of i8 are stored + 128, as products take them. Planes of few channels become words of a pixel:
//
//   r0 r1 ..  g0 g1 ..  b0 b1 ..    ->    r0 g0 b0 0  r1 g1 b1 0  ..
#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/emit/contraction/policies.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kPixelsAtOnce = 4;

/// Pixels of a copied row that lie inside the data: [low, high).
struct Inside {
  int64_t low, high;
};

class Copying {
 public:
  explicit Copying(const ContractionPlan& plan) : plan_(plan), c_(*plan.copies), k_(plan.k) {
    const int64_t bytes = c_.step * plan.types().data_bytes();
    words_ = k_.lanes(k_.b.getInt32Ty(), static_cast<int>(bytes / kWordBytes));
    outside_ = llvm::Constant::getNullValue(words_);
    if (!plan.product.outside) return;
    outside_ = k_.splat(plan.product.outside, static_cast<int>(bytes / kWordBytes));
    if (flips()) outside_ = k_.b.CreateXor(outside_, llvm::ConstantInt::get(words_, kSignBits));
  }

  void rows(const Env& env, Value* first, Value* end) const {
    Value* count = k_.sub(end, first);
    if (c_.row.tap >= 0)
      count = k_.add(k_.mul(k_.sub(count, k_.i64(1)), k_.i64(c_.row.stride)),
                     k_.i64((c_.row_taps - 1) * c_.row.dilation + 1));
    Value* start = k_.mul(first, k_.i64(c_.row.stride));
    k_.loop(k_.i64(0), k_.i64(c_.blocks), 1, [&](Value* block) {
      Env at = env;
      at.axes[static_cast<size_t>(plan_.view.channel)] = {k_.mul(block, k_.i64(c_.step)), false, c_.step};
      const Address origin = address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at, nullptr);
      Value* from = k_.add(origin.scalar, k_.i64(origin.constant));
      k_.loop(k_.i64(0), count, 1, [&](Value* i) {
        Value* ahead = k_.add(start, k_.mul(i, k_.i64(c_.row_step())));  // rows from the origin's
        Value* row = k_.add(ahead, k_.i64(c_.row.offset));
        Value* place = k_.add(k_.mul(k_.rem(i, k_.i64(c_.phases)), k_.i64(c_.rows)), k_.div(i, k_.i64(c_.phases)));
        Value* to = k_.add(k_.mul(block, k_.i64(c_.block_elements())), k_.mul(place, k_.i64(c_.row_elements())));
        const auto copy = [&] { copy_row(k_.add(from, k_.mul(ahead, stride(c_.row.dim))), to); };
        if (!plan_.view.guarded) return copy();
        k_.branch(k_.b.CreateICmpULT(row, k_.dim(c_.row.extent)), copy, [&] { fill(to, 0, c_.width); });
      });
    });
  }

 private:
  const ContractionPlan& plan_;
  const DataCopies& c_;
  Kernel& k_;
  llvm::Type* words_ = nullptr;  ///< of a pixel
  Value* outside_ = nullptr;

  bool flips() const { return plan_.types().data == DType::i8; }
  Value* copied(Value* offset) const { return k_.element(k_.scratch, plan_.types().data, offset); }
  Value* read(Value* offset) const { return k_.element(plan_.data().base, plan_.types().data, offset); }

  Value* stride(int dim) const {
    const auto& order = plan_.data().layout.order;
    const auto at = std::find(order.begin(), order.end(), dim) - order.begin();
    return k_.dim(plan_.data().strides[static_cast<size_t>(at)]);
  }

  Inside inside() const {
    const int64_t first = c_.column.offset, step = c_.column_step();
    const int64_t last = c_.column.extent.value() - 1 - first;
    const int64_t low = first >= 0 ? 0 : std::min(c_.width, ceil_of(-first, step));
    return {low, last < 0 ? low : std::max(low, std::min(c_.width, last / step + 1))};
  }

  /// `from`: of the first column, outside the data or not.
  void copy_row(Value* from, Value* to) const {
    const Inside all = inside();
    fill(to, 0, all.low);
    if (c_.joined)
      interleave(from, to, all);
    else
      copy(from, to, all);
    fill(to, all.high, c_.width);
  }

  /// body(pixel) for pixels [low, high), some at once.
  void over_pixels(int64_t low, int64_t high, const std::function<void(Value*)>& body) const {
    const int64_t whole = (high - low) / kPixelsAtOnce * kPixelsAtOnce;
    const auto some = [&](Value* first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) body(k_.add(first, k_.i64(i)));
    };
    if (whole > kPixelsAtOnce)
      k_.loop(k_.i64(low), k_.i64(low + whole), kPixelsAtOnce, [&](Value* x) { some(x, kPixelsAtOnce); });
    else
      some(k_.i64(low), whole);
    some(k_.i64(low + whole), high - low - whole);
  }

  void fill(Value* to, int64_t low, int64_t high) const {
    over_pixels(low, high, [&](Value* x) {
      k_.b.CreateAlignedStore(outside_, copied(k_.add(to, k_.mul(x, k_.i64(c_.step)))), llvm::Align(kWordBytes));
    });
  }

  void copy(Value* from, Value* to, const Inside& all) const {
    Value* next = k_.mul(stride(c_.column.dim), k_.i64(c_.column_step()));
    over_pixels(all.low, all.high, [&](Value* x) {
      Value* pixel = k_.b.CreateAlignedLoad(words_, read(k_.add(from, k_.mul(x, next))), plan_.data_align());
      if (flips()) pixel = k_.b.CreateXor(pixel, llvm::ConstantInt::get(words_, kSignBits));
      k_.b.CreateAlignedStore(pixel, copied(k_.add(to, k_.mul(x, k_.i64(c_.step)))), llvm::Align(kWordBytes));
    });
  }

  /// Whole vectors, the last one from where it ends with the row; fewer pixels than a vector go one by one.
  void interleave(Value* from, Value* to, const Inside& all) const {
    const int64_t lanes = plan_.lanes, count = all.high - all.low, whole = count / lanes * lanes;
    const auto some = [&](Value* x, int64_t pixels) {
      interleave_some(k_.add(from, x), k_.add(to, k_.mul(x, k_.i64(c_.step))), pixels);
    };
    k_.loop(k_.i64(all.low), k_.i64(all.low + whole), lanes, [&](Value* x) { some(x, lanes); });
    if (count == whole) return;
    if (whole > 0) return some(k_.i64(all.high - lanes), lanes);
    for (int64_t x = all.low; x < all.high; ++x) some(k_.i64(x), 1);
  }

  void interleave_some(Value* from, Value* to, int64_t pixels) const {
    auto& b = k_.b;
    const auto width = static_cast<int>(pixels);
    const auto bits = static_cast<unsigned>(8 * plan_.types().data_bytes());
    llvm::Type* part = k_.lanes(b.getIntNTy(bits), width);
    const int64_t unit = plan_.product.unit, channels = plan_.depth();
    std::vector<Value*> words;
    for (int64_t first = 0; first < c_.step; first += unit) {
      Value* word = k_.zero(k_.lanes(b.getInt32Ty(), width));
      for (int64_t i = 0; i < unit && first + i < channels; ++i) {
        Value* plane = k_.add(from, k_.mul(k_.i64(first + i), stride(plan_.view.data_channel_dim)));
        Value* x = b.CreateZExt(b.CreateAlignedLoad(part, read(plane), plan_.data_align()), word->getType());
        word = b.CreateOr(word, b.CreateShl(x, static_cast<uint64_t>(i * bits)));
      }
      if (flips()) word = b.CreateXor(word, llvm::ConstantInt::get(word->getType(), kSignBits));
      words.push_back(word);
    }
    if (words.size() == 1) {
      b.CreateAlignedStore(words[0], copied(to), llvm::Align(kWordBytes));
      return;
    }
    if (pixels == 1) {
      for (size_t i = 0; i < words.size(); ++i)
        b.CreateAlignedStore(words[i], copied(k_.add(to, k_.i64(static_cast<int64_t>(i) * unit))),
                             llvm::Align(kWordBytes));
      return;
    }
    std::vector<int> order;  // two words of each pixel
    for (int x = 0; x < width; ++x) order.insert(order.end(), {x, width + x});
    b.CreateAlignedStore(b.CreateShuffleVector(words[0], words[1], order), copied(to), llvm::Align(kWordBytes));
  }
};

}  // namespace

void copy_data(const ContractionPlan& plan, const Env& env, Value* first, Value* end) {
  Kernel& k = plan.k;
  const int64_t behind = kMatrixRows * kMatrixRowBytes;
  k.scratch_bytes = std::max(k.scratch_bytes, plan.copies->bytes(plan.types()) + behind);
  k.b.CreateStore(first, plan.matrix.first_row);
  Copying(plan).rows(env, first, end);
}

Value* copied_data(const ContractionPlan& plan, const Env& env) {
  Kernel& k = plan.k;
  const DataCopies& c = *plan.copies;
  const auto at = [&](int axis) { return env.axes[static_cast<size_t>(axis)].base; };
  Value* offset = k.mul(at(plan.view.channel), k.i64(c.block_elements() / c.step));
  if (c.column.tap >= 0 && !c.joined)
    offset = k.add(offset, k.mul(at(c.column.tap), k.i64(c.column.dilation * c.step)));
  Value* row = k.sub(at(c.row.axis), k.b.CreateLoad(k.b.getInt64Ty(), plan.matrix.first_row));
  if (c.row.tap >= 0) {
    Value* ahead = k.mul(at(c.row.tap), k.i64(c.row.dilation));
    Value* phase = k.rem(ahead, k.i64(c.phases));
    row = k.add(k.add(row, k.div(ahead, k.i64(c.phases))), k.mul(phase, k.i64(c.rows)));
  }
  offset = k.add(offset, k.mul(row, k.i64(c.row_elements())));
  offset = k.add(offset, k.mul(at(plan.view.pixel), k.i64(c.pixel * c.step)));
  return k.element(k.scratch, plan.types().data, offset);
}

}  // namespace opfuse::cpu
