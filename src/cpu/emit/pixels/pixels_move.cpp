// Into and out of the packed form. Blocked channels are turned in squares of lanes x lanes:
//
//   pack    lanes pixels of one channel block -> lanes channels of as many pixels; what leaves the image is zero
//   store   lanes outputs of as many pixels -> one vector of outputs per pixel, then the epilogue (pixels_rows.cpp has
//           dense results)
#include <llvm/IR/Constants.h>

#include <algorithm>

#include "cpu/emit/masked.hpp"
#include "cpu/emit/pixels/pixels.hpp"
#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {
namespace {

/// Packs rows; emitted once per phase.
class Packer {
 public:
  /// `to`: where the image's channels go; `exists`: whether it is there, null: it is.
  Packer(PixelFrame& f, Value* image, const Band& band, int64_t to, Value* exists)
      : f_(f),
        k_(f.k),
        image_(image),
        band_(band),
        to_(to),
        exists_(exists),
        blocked_(!f.data().layout.blocks.empty()) {}

  void emit(Value* first, int64_t count) {
    if (!blocked_)
      return k_.loop(k_.i64(0), k_.i64(count), 1, [&](Value* c) {
        emit_rows(k_.mul(k_.add(first, c), f_.stride(f_.data(), 1)), k_.mul(c, k_.i64(f_.packing.channel)));
      });
    Value* begin = k_.div(first, k_.i64(f_.lanes));
    Value* end = k_.div(k_.add(first, k_.i64(count + f_.lanes - 1)), k_.i64(f_.lanes));
    k_.loop(begin, end, 1, [&](Value* block) {
      emit_rows(k_.mul(block, f_.stride(f_.data(), 1)),
                k_.mul(k_.sub(block, begin), k_.i64(f_.lanes * f_.packing.channel)));
    });
  }

 private:
  PixelFrame& f_;
  Kernel& k_;
  Value* image_;
  Band band_;
  int64_t to_;
  Value* exists_;
  bool blocked_;

  void emit_rows(Value* channel, Value* to) {
    to = k_.add(to, k_.i64(to_));
    const SlidingDim& d = f_.view.rows;
    const int64_t span = (f_.view.rows.taps - 1) * d.dilation + 1;
    Value* rows = k_.add(k_.sub(band_.end, band_.begin), k_.i64((span + d.stride - 1) / d.stride - 1));
    Value* top = k_.add(k_.mul(band_.begin, k_.i64(d.stride)), k_.i64(d.offset));
    const std::vector<int64_t> used = phases(d, f_.view.rows.taps);
    for (size_t number = 0; number < used.size(); ++number)
      k_.loop(k_.i64(0), rows, 1, [&](Value* j) {
        Value* y = k_.add(k_.add(top, k_.mul(j, k_.i64(d.stride))), k_.i64(used[number]));
        Value* row =
            k_.add(to, k_.add(k_.mul(j, k_.i64(f_.packing.pitch)),
                              k_.i64(static_cast<int64_t>(number) * f_.packing.column_phases * f_.packing.plane)));
        Value* from = k_.add(k_.add(image_, channel), k_.mul(y, f_.row_stride()));
        Value* inside = k_.b.CreateICmpULT(y, k_.dim(d.extent));
        k_.branch(
            exists_ ? k_.b.CreateAnd(inside, exists_) : inside, [&] { emit_columns(from, row, true); },
            [&] { emit_columns(from, row, false); });
      });
  }

  bool inside(int64_t x, int64_t phase) const {
    const SlidingDim& d = f_.view.columns;
    const int64_t at = x * d.stride + phase + d.offset;
    return at >= 0 && at < d.extent.value();
  }

  /// The vectors of one row: those wholly inside share a loop.
  void emit_columns(Value* from, Value* row, bool exists) {
    int64_t number = 0;
    for (const int64_t phase : phases(f_.view.columns, f_.view.columns.taps)) {
      Value* to = k_.add(row, k_.i64(number++ * f_.packing.plane));
      for (int64_t i = 0; i < f_.packing.row_vectors;) {
        int64_t last = i;
        const std::vector<char> valid = exists ? lanes_inside(i, phase) : std::vector<char>(lanes());
        while (last < f_.packing.row_vectors &&
               (exists ? lanes_inside(last, phase) : std::vector<char>(lanes())) == valid)
          ++last;
        k_.loop(k_.i64(i), k_.i64(last), 1, [&](Value* vector) { emit_vector(from, to, vector, phase, valid); });
        i = last;
      }
    }
  }

  size_t lanes() const { return static_cast<size_t>(f_.lanes); }
  std::vector<char> lanes_inside(int64_t vector, int64_t phase) const {
    std::vector<char> valid;
    for (int64_t t = 0; t < f_.lanes; ++t) valid.push_back(inside(vector * f_.lanes + t, phase));
    return valid;
  }

  void emit_vector(Value* from, Value* to, Value* vector, int64_t phase, const std::vector<char>& valid) {
    const SlidingDim& d = f_.view.columns;
    Value* x = k_.mul(vector, k_.i64(f_.lanes));
    Value* column = k_.add(k_.mul(x, k_.i64(d.stride)), k_.i64(phase + d.offset));
    Value* source = k_.add(from, k_.mul(column, f_.column_stride()));
    Value* target = f_.at(f_.packed, k_.add(to, x));
    if (!blocked_) return f_.store(dense_vector(source, valid), target);
    std::vector<Value*> pixels;
    for (int64_t t = 0; t < f_.lanes; ++t) {
      Value* at = k_.add(source, k_.mul(k_.i64(t * d.stride), f_.column_stride()));
      pixels.push_back(valid[static_cast<size_t>(t)] ? f_.load(f_.at(f_.data().base, at)) : k_.zero(f_.vector()));
    }
    const bool any = std::find(valid.begin(), valid.end(), 1) != valid.end();
    const std::vector<Value*> channels = any ? transpose(k_, pixels) : pixels;
    for (int64_t c = 0; c < f_.lanes; ++c)
      f_.store(channels[static_cast<size_t>(c)], f_.at(target, k_.i64(c * f_.packing.channel)));
  }

  /// Two vectors of neighbours, of which no more is read than is used.
  Value* every_second(Value* base, const std::vector<char>& valid) {
    std::vector<llvm::Constant*> bits;
    std::vector<int> even;
    for (int64_t t = 0; t < f_.lanes; ++t) {
      bits.push_back(k_.b.getInt1(valid[static_cast<size_t>(t)] != 0));
      bits.push_back(k_.b.getFalse());
      even.push_back(static_cast<int>(2 * t));
    }
    llvm::Type* wide = k_.lanes(k_.b.getFloatTy(), static_cast<int>(2 * f_.lanes));
    Value* mask = llvm::ConstantVector::get(bits);
    Value* both = masked_load(k_, wide, base, llvm::Align(4), mask);
    return k_.b.CreateShuffleVector(both, even);
  }

  Value* dense_vector(Value* source, const std::vector<char>& valid) {
    std::vector<llvm::Constant*> bits;
    for (char v : valid) bits.push_back(k_.b.getInt1(v != 0));
    const auto inside = static_cast<int64_t>(std::count(valid.begin(), valid.end(), 1));
    if (inside == 0) return k_.zero(f_.vector());
    Value* base = f_.at(f_.data().base, source);
    Value* mask = llvm::ConstantVector::get(bits);
    const int64_t stride = f_.view.columns.stride;
    if (stride == 1 && inside == f_.lanes) return f_.load(base);
    if (stride == 1) return k_.b.CreateMaskedLoad(f_.vector(), base, llvm::Align(4), mask, k_.zero(f_.vector()));
    if (stride == 2) return every_second(base, valid);
    const int width = static_cast<int>(f_.lanes);
    Value* offsets = k_.b.CreateMul(k_.iota(width), k_.splat(k_.i64(stride), width));
    Value* pointers = k_.b.CreateGEP(k_.b.getFloatTy(), base, offsets);
    return k_.b.CreateMaskedGather(f_.vector(), pointers, llvm::Align(4), mask, k_.zero(f_.vector()));
  }
};

/// Stores rows of results turned to vectors of outputs.
class Storer {
 public:
  Storer(PixelFrame& f, const Env& env, const Band& band) : f_(f), k_(f.k), env_(env), band_(band) {
    env_.width = static_cast<int>(f.lanes);
    env_.block = f.lanes;
  }

  void emit() {
    const int64_t all = f_.view.all_outputs();
    const int64_t whole = all / f_.lanes * f_.lanes;
    k_.loop(k_.i64(0), k_.i64(whole), f_.lanes, [&](Value* o) { emit_rows(o, {o, true, f_.lanes}); });
    if (all == whole) return;
    env_.mask = first_lanes(all - whole);
    emit_rows(k_.i64(whole), {k_.i64(whole), true, f_.lanes});
  }

 private:
  PixelFrame& f_;
  Kernel& k_;
  Env env_;
  Band band_;

  Value* first_lanes(int64_t count) {
    std::vector<llvm::Constant*> bits;
    for (int64_t l = 0; l < f_.lanes; ++l) bits.push_back(k_.b.getInt1(l < count));
    return llvm::ConstantVector::get(bits);
  }

  void emit_rows(Value* output, const AxisValue& axis) {
    env_.axes[1] = axis;
    Value* start = k_.mul(output, k_.i64(f_.packing.stage_pitch));
    k_.loop(band_.begin, band_.end, 1, [&](Value* y) {
      env_.axes[2] = {y, false, 1};
      Value* from = k_.add(start, k_.mul(k_.sub(y, band_.begin), k_.i64(f_.packing.pitch)));
      const int64_t width = f_.view.columns.positions, whole = width / f_.lanes * f_.lanes;
      k_.loop(k_.i64(0), k_.i64(whole), f_.lanes, [&](Value* x) { emit_pixels(from, x, f_.lanes); });
      if (width > whole) emit_pixels(from, k_.i64(whole), width - whole);
    });
  }

  void emit_pixels(Value* from, Value* x, int64_t count) {
    Value* source = f_.at(f_.staged, k_.add(from, x));
    Env at = env_;
    std::vector<Value*> outputs;
    for (int64_t l = 0; l < f_.lanes; ++l)
      outputs.push_back(f_.load(f_.at(source, k_.i64(l * f_.packing.stage_pitch))));
    const std::vector<Value*> pixels = transpose(k_, outputs);
    for (int64_t t = 0; t < count; ++t) {
      at.axes[3] = {x, false, 1, t};
      f_.s.store_outputs(at, {pixels[static_cast<size_t>(t)]});
    }
  }
};

}  // namespace

void pack_band(PixelFrame& f, const Env& env, const Band& band, Value* first, int64_t count) {
  Kernel& k = f.k;
  Value* image = k.mul(env.axes[0].base, f.stride(f.data(), 0));
  const PixelDim& planes = f.view.planes;
  if (planes.axis < 0) return Packer(f, image, band, 0, nullptr).emit(first, count);
  Value* top = k.mul(env.axes[static_cast<size_t>(planes.axis)].base, k.i64(planes.stride));
  for (int64_t tap = 0; tap < planes.taps; ++tap) {
    Value* z = k.add(top, k.i64(planes.offset + tap * planes.dilation));
    Value* plane = k.add(image, k.mul(z, f.stride(f.data(), 2)));
    Value* exists = k.b.CreateICmpULT(z, k.dim(planes.extent));
    Packer(f, plane, band, tap * f.packing.packed_channels * f.packing.channel, exists).emit(first, count);
  }
}

void store_band(PixelFrame& f, const Env& env, const Band& band) {
  if (f.s.outputs[0].layout.blocks.empty()) return store_rows(f, env, band);
  Storer(f, env, band).emit();
}

}  // namespace opfuse::cpu
