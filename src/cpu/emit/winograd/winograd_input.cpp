// Input transform: lanes are channels, so a tile of one vector of channels is points_h x points_w loads, the transform
// of rows, then of columns, and as many stores. Tiles that leave the image are a variant of their own, which reads
// zeros where there is no image.
#include "base/integers.hpp"
#include "cpu/emit/winograd/winograd.hpp"
#include "cpu/emit/winograd/winograd_transform.hpp"
#include "tensor/winograd.hpp"

namespace opfuse::cpu {

void WinogradEmitter::emit_input(const Env& env, Value* t0, Value* count) {
  const int channel = view_.contraction.channel;
  Value* vectors = k_.i64(ceil_of(channels_, lanes_));
  k_.loop(k_.i64(0), vectors, 1, [&](Value* vector) {
    Env at = env;
    at.width = static_cast<int>(lanes_);
    at.axes[static_cast<size_t>(channel)] = {k_.mul(vector, k_.i64(lanes_)), true, lanes_};
    Value* to = words(data_, k_.mul(vector, k_.i64(capacity_ * vector_words_)));
    k_.loop(k_.i64(0), count, 1, [&](Value* t) {
      Env here = at;
      move_to_tile(here, k_.add(t0, t));
      Value* place = words(to, k_.mul(t, k_.i64(vector_words_)));
      Value* whole = k_.b.CreateAnd(inside(here, view_.row, 0, winograd::points(tile_.h)),
                                    inside(here, view_.column, 0, winograd::points(tile_.w)));
      k_.branch(
          whole, [&] { emit_input_tile(here, place, false); }, [&] { emit_input_tile(here, place, true); });
    });
  });
}

/// Codes as i16, without a sign.
Value* WinogradEmitter::load_image(Value* at) {
  if (!codes_) return load_vector(at);
  llvm::Type* bytes = k_.lanes(k_.b.getInt8Ty(), static_cast<int>(lanes_));
  Value* x = k_.b.CreateAlignedLoad(bytes, at, llvm::Align(1));
  if (view_.contraction.types.data == DType::i8) x = k_.b.CreateXor(x, llvm::ConstantInt::get(bytes, kHalfOfCodes));
  return k_.b.CreateZExt(x, k_.lanes(k_.b.getInt16Ty(), static_cast<int>(lanes_)));
}

/// Taps [tap, tap + taps) of the window at `env` lie in the image.
Value* WinogradEmitter::inside(const Env& env, const SlidingDim& d, int64_t tap, int64_t taps) {
  const int64_t room = d.extent.value() - taps + 1;
  if (room <= 0) return k_.b.getFalse();
  Value* first = k_.add(env.axes[static_cast<size_t>(d.axis)].base, k_.i64(d.offset + tap));
  return k_.b.CreateICmpULT(first, k_.i64(room));
}

void WinogradEmitter::emit_input_tile(const Env& env, Value* to, bool edge) {
  const ContractionView& c = view_.contraction;
  const int64_t height = winograd::points(tile_.h), width = winograd::points(tile_.w);
  const Address a = address_of(k_, image(), image_map(), env, nullptr);
  const auto elements = [&](Value* from, Value* offset) { return k_.element(from, c.types.data, offset); };
  Value* base = elements(image().base, k_.add(a.scalar, k_.i64(a.constant)));
  Value* row_step = axis_step(k_, image(), image_map(), view_.row.tap);
  Value* column_step = axis_step(k_, image(), image_map(), view_.column.tap);
  Line row_inside, column_inside;
  for (int64_t y = 0; edge && y < height; ++y) row_inside.push_back(inside(env, view_.row, y, 1));
  for (int64_t x = 0; edge && x < width; ++x) column_inside.push_back(inside(env, view_.column, x, 1));
  Env point = env;
  if (channels_ % lanes_) {
    Value* numbers =
        k_.b.CreateAdd(k_.splat(env.axes[static_cast<size_t>(c.channel)].base, env.width), k_.iota(env.width));
    point.mask = k_.b.CreateICmpULT(numbers, k_.splat(k_.i64(channels_), env.width));
  }
  std::vector<Line> rows;
  for (int64_t y = 0; y < height; ++y) {
    Line row;
    for (int64_t x = 0; x < width; ++x) {
      Value* at = elements(base, k_.add(k_.mul(row_step, k_.i64(y)), k_.mul(column_step, k_.i64(x))));
      Value* in =
          edge ? k_.b.CreateAnd(row_inside[static_cast<size_t>(y)], column_inside[static_cast<size_t>(x)]) : nullptr;
      Value* value = load_image(edge ? k_.b.CreateSelect(in, at, outside_) : at);
      if (c.value.op() != ExprOp::read) {
        value = s_.at(point, {}, {{c.data, value}}).emit(c.value, DType::f32);
        value = k_.splat(value, env.width);
        if (edge) value = k_.b.CreateSelect(in, value, k_.zero(value->getType()));
      }
      row.push_back(value);
    }
    rows.push_back(transform_data(k_, tile_.w, codes_, row));
  }
  for (int64_t x = 0; x < width; ++x) {
    Line column;
    for (const Line& row : rows) column.push_back(row[static_cast<size_t>(x)]);
    column = transform_data(k_, tile_.h, codes_, column);
    for (int64_t y = 0; y < height; ++y)
      store_vector(words(to, k_.i64((y * width + x) * data_point_)), column[static_cast<size_t>(y)]);
  }
}

}  // namespace opfuse::cpu
