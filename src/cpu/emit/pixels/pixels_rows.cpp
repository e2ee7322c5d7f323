// Results into dense tensors, a row of one output at a time. The phases of a transposed convolution lie in rows of
// their own; with s of them along a row,
//
//   result[s*p + q - before] = staged[phase s-1-q][p]       q = 0 .. s-1
//
// so vectors of s phases are interleaved into s vectors of neighbours, and the epilogue runs on those.
#include <llvm/IR/Constants.h>

#include <algorithm>

#include "base/fail.hpp"
#include "cpu/emit/pixels/pixels.hpp"

namespace opfuse::cpu {
namespace {

/// Element i of vector q becomes element i * count + q of the whole.
std::vector<Value*> interleave(Kernel& k, std::vector<Value*> vectors) {
  const auto count = static_cast<int>(vectors.size());
  if (count == 1) return vectors;
  const int lanes = width_of(vectors[0]);
  if (count % 2 == 0) {
    std::vector<Value*> halves[2], result;
    for (int q = 0; q < count; ++q) halves[q % 2].push_back(vectors[static_cast<size_t>(q)]);
    for (auto& half : halves) half = interleave(k, half);
    for (int i = 0; i < count / 2; ++i)
      for (const int from : {0, lanes / 2}) {
        std::vector<int> order;
        for (int l = 0; l < lanes; ++l) order.push_back(from + l / 2 + l % 2 * lanes);
        const auto at = static_cast<size_t>(i);
        result.push_back(k.b.CreateShuffleVector(halves[0][at], halves[1][at], order));
      }
    return result;
  }
  std::vector<Value*> result;
  for (int first = 0; first < count * lanes; first += lanes) {
    Value* merged = vectors[0];
    for (int q = 0; q < count; ++q) {
      std::vector<int> order;
      for (int at = first; at < first + lanes; ++at)
        order.push_back(at % count == q ? (q ? lanes : 0) + at / count : (q ? at - first : 0));
      merged = k.b.CreateShuffleVector(merged, vectors[static_cast<size_t>(q)], order);
    }
    result.push_back(merged);
  }
  return result;
}

class RowStorer {
 public:
  RowStorer(PixelFrame& f, StageEmitter& s, const Env& env, const Band& band)
      : f_(f), k_(f.k), s_(s), env_(s.fresh_env(static_cast<int>(f.lanes))), band_(band) {
    env_.axes[0] = env.axes[0];
    if (planes().axis >= 0) position_ = env.axes[static_cast<size_t>(planes().axis)].base;
  }

  void emit() {
    k_.loop(k_.i64(0), k_.i64(f_.view.all_outputs()), 1, [&](Value* output) {
      env_.axes[1] = {output, false, 1};
      if (planes().axis < 0) return emit_plane(output);
      each_phase(planes(), position_, output, 2, [&](Value* phase) { emit_plane(phase); });
    });
  }

 private:
  PixelFrame& f_;
  Kernel& k_;
  StageEmitter& s_;
  Env env_;
  Band band_;
  Value* position_ = nullptr;  ///< of the plane

  const PixelDim& planes() const { return f_.view.planes; }
  const PixelDim& rows() const { return f_.view.rows; }
  const PixelDim& columns() const { return f_.view.columns; }

  /// The results of a position along `d`, ascending, those outside left out: sets axis `axis` and numbers the phase
  /// behind `number`, which counts outputs and phases of outer axes.
  void each_phase(const PixelDim& d, Value* position, Value* number, size_t axis,
                  const std::function<void(Value*)>& body) {
    const int64_t count = d.phases.count;
    Value* first = k_.sub(k_.mul(position, k_.i64(count)), k_.i64(d.phases.before()));
    const bool clipped = d.positions * count != d.results;
    k_.loop(k_.i64(0), k_.i64(count), 1, [&](Value* q) {
      Value* at = k_.add(first, q);
      env_.axes[axis] = {at, false, 1};
      Value* phase = k_.add(k_.mul(number, k_.i64(count)), k_.sub(k_.i64(count - 1), q));
      if (!clipped) return body(phase);
      k_.branch(k_.b.CreateICmpULT(at, k_.i64(d.results)), [&] { body(phase); });
    });
  }

  void emit_plane(Value* number) {
    k_.loop(band_.begin, band_.end, 1, [&](Value* y) {
      Value* row = k_.mul(k_.sub(y, band_.begin), k_.i64(f_.packing.pitch));
      each_phase(rows(), y, number, s_.stage.domain.size() - 2, [&](Value* phase) {
        Value* first = k_.mul(phase, k_.i64(columns().phases.count * f_.packing.stage_pitch));
        emit_row(k_.add(first, row));
      });
    });
  }

  /// Lanes of vector `vector` of those made of `chunk` that lie in the row.
  std::vector<char> lanes_inside(int64_t chunk, int64_t vector) const {
    std::vector<char> valid;
    const int64_t first = (chunk * columns().phases.count + vector) * f_.lanes - columns().phases.before();
    for (int64_t at = first; at < first + f_.lanes; ++at) valid.push_back(at >= 0 && at < columns().results);
    return valid;
  }

  std::vector<std::vector<char>> chunk_inside(int64_t chunk) const {
    std::vector<std::vector<char>> valid;
    for (int64_t v = 0; v < columns().phases.count; ++v) valid.push_back(lanes_inside(chunk, v));
    return valid;
  }

  /// Chunks of a vector of positions; neighbours with the same lanes inside share a loop.
  void emit_row(Value* from) {
    const int64_t chunks = (columns().positions + f_.lanes - 1) / f_.lanes;
    for (int64_t i = 0; i < chunks;) {
      const auto valid = chunk_inside(i);
      int64_t last = i;
      while (last < chunks && chunk_inside(last) == valid) ++last;
      k_.loop(k_.i64(i), k_.i64(last), 1, [&](Value* chunk) { emit_chunk(from, chunk, valid); });
      i = last;
    }
  }

  void emit_chunk(Value* from, Value* chunk, const std::vector<std::vector<char>>& valid) {
    const int64_t count = columns().phases.count;
    Value* source = f_.at(f_.staged, k_.add(from, k_.mul(chunk, k_.i64(f_.lanes))));
    std::vector<Value*> vectors;
    for (int64_t q = 0; q < count; ++q)
      vectors.push_back(f_.load(f_.at(source, k_.i64((count - 1 - q) * f_.packing.stage_pitch))));
    vectors = interleave(k_, vectors);
    Value* first = k_.sub(k_.mul(chunk, k_.i64(count * f_.lanes)), k_.i64(columns().phases.before()));
    std::vector<StageEmitter::Point> points;
    for (int64_t v = 0; v < count; ++v) {
      const std::vector<char>& inside = valid[static_cast<size_t>(v)];
      const auto lanes = std::count(inside.begin(), inside.end(), 1);
      if (lanes == 0) continue;
      Env at = env_;
      at.axes.back() = {k_.add(first, k_.i64(v * f_.lanes)), true, columns().phases.before() ? 1 : f_.lanes};
      if (lanes < f_.lanes) at.mask = mask_of(inside);
      points.push_back({at, {vectors[static_cast<size_t>(v)]}});
    }
    s_.store_outputs(points);
  }

  Value* mask_of(const std::vector<char>& valid) {
    std::vector<llvm::Constant*> bits;
    for (char v : valid) bits.push_back(k_.b.getInt1(v != 0));
    return llvm::ConstantVector::get(bits);
  }
};

}  // namespace

void store_rows(PixelFrame& f, const Env& env, const Band& band) {
  const std::optional<Stage> stage = result_stage(f.k.spec.region, f.view);
  OPFUSE_CHECK(stage, "an epilogue that reads where the result is not");
  StageEmitter results(f.k, *stage, 0);
  RowStorer(f, results, env, band).emit();
}

}  // namespace opfuse::cpu
