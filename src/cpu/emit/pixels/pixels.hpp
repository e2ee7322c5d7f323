// The pieces of the pixel-lane convolution: packing a band of the input, the register tiles, storing the results.
#pragma once

#include "cpu/emit/stage.hpp"
#include "cpu/pixels/pixel_view.hpp"

namespace opfuse::cpu {

/// Rows of results [begin, end) of one band.
struct Band {
  Value* begin;
  Value* end;
};

/// What all pieces share. Both areas lie in the worker's scratch.
struct PixelFrame {
  PixelFrame(Kernel& k, StageEmitter& stage);

  Kernel& k;
  StageEmitter& s;
  PixelView view;
  PixelPacking packing;
  bool all_groups;
  int64_t lanes, bands;
  Value* packed;  ///< [plane tap][channel][phase][row][pitch]
  Value* staged;  ///< [output][phase][row * pitch + column]

  Operand& data() { return s.reads[static_cast<size_t>(view.data)]; }
  Operand& weights() { return s.reads[static_cast<size_t>(view.weights)]; }
  llvm::Type* vector() { return k.lanes(k.b.getFloatTy(), static_cast<int>(lanes)); }
  Value* at(Value* base, Value* offset) { return k.element(base, DType::f32, offset); }
  Value* load(Value* from) { return k.b.CreateAlignedLoad(vector(), from, llvm::Align(4)); }
  void store(Value* value, Value* to) { k.b.CreateAlignedStore(value, to, llvm::Align(4)); }
  Value* stride(const Operand& o, int dim) { return k.dim(o.strides[static_cast<size_t>(dim)]); }
  int rank() { return static_cast<int>(data().shape.rank()); }
  Value* row_stride() { return stride(data(), rank() - 2); }
  Value* column_stride() { return stride(data(), rank() - 1); }
};

/// Channels [first, first + count) of the image (and plane) that `env` stands at, count a constant.
void pack_band(PixelFrame& f, const Env& env, const Band& band, Value* first, int64_t count);
/// All results of one group; `group` and the packed place of its first channel.
void multiply_band(PixelFrame& f, const Band& band, Value* group, Value* first_packed);
/// Epilogue and stores of the whole band.
void store_band(PixelFrame& f, const Env& env, const Band& band);
/// The same of dense results, whose phases are put together row by row.
void store_rows(PixelFrame& f, const Env& env, const Band& band);

}  // namespace opfuse::cpu
