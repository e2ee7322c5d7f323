// Convolution with neighbouring pixels in the lanes (cpu/pixels/pixel_view.hpp has the picture):
//
//   for images and bands of rows (parts):
//     for groups:
//       pack the group's channels of the band (or all of them, once)
//       for blocks of result vectors, tiles of outputs:
//         acc[output][vector] += broadcast(weight) * packed[channel, tap][vector]
//     epilogue and stores, a row at a time
#include "cpu/emit/pixels/pixels.hpp"

#include <array>
#include <set>

#include "base/fail.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/fence.hpp"
#include "cpu/emit/parts.hpp"
#include "cpu/pixels/pixel_schedule.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kUnrolledProducts = 800;  // multiply-adds of all taps; beyond, rows of taps are a loop
constexpr size_t kTied = 6;

/// Register tiles over a block of result vectors.
class PixelTiles {
 public:
  PixelTiles(PixelFrame& f, Value* group, Value* first_packed)
      : f_(f),
        k_(f.k),
        group_(group),
        first_packed_(first_packed),
        outputs_(typed<PixelSchedule>(f.k.spec.schedule).tile_o),
        vectors_(typed<PixelSchedule>(f.k.spec.schedule).pixels) {
    for (int64_t i = 0; i < outputs_ * vectors_; ++i) acc_.push_back(k_.variable(f.vector()));
  }

  void emit(const Band& band) {
    Value* rows = k_.sub(band.end, band.begin);
    const int64_t least = f_.view.rows.positions / f_.bands, most = (f_.view.rows.positions + f_.bands - 1) / f_.bands;
    Value* total = k_.i64(result_vectors(f_.view, f_.packing, most));
    if (least != most) {
      Value* elements =
          k_.add(k_.mul(k_.sub(rows, k_.i64(1)), k_.i64(f_.packing.pitch)), k_.i64(f_.view.columns.positions));
      total = k_.div(k_.add(elements, k_.i64(f_.lanes - 1)), k_.i64(f_.lanes));
    }
    Value* full = k_.div(total, k_.i64(vectors_));
    k_.loop(k_.i64(0), full, 1, [&](Value* block) { emit_block(start_of(block), vectors_); });
    std::set<int64_t> rests;
    for (int64_t count : {least, most}) rests.insert(result_vectors(f_.view, f_.packing, count) % vectors_);
    Value* rest = k_.sub(total, k_.mul(full, k_.i64(vectors_)));
    for (int64_t count : rests)
      if (count > 0) k_.branch(k_.b.CreateICmpEQ(rest, k_.i64(count)), [&] { emit_block(start_of(full), count); });
  }

 private:
  PixelFrame& f_;
  Kernel& k_;
  Value *group_, *first_packed_;
  int64_t outputs_, vectors_;
  std::vector<llvm::AllocaInst*> acc_;
  struct Phase {
    Value* number = nullptr;
    int64_t first_tap = 0;
  };
  std::array<Phase, 3> phase_;  ///< of planes, rows and columns, at the tile that is emitted

  const PixelDim& dim(size_t axis) const {
    const PixelDim* dims[] = {&f_.view.planes, &f_.view.rows, &f_.view.columns};
    return *dims[axis];
  }

  Value* start_of(Value* block) { return k_.mul(block, k_.i64(vectors_ * f_.lanes)); }

  void emit_block(Value* start, int64_t vectors) {
    if (f_.view.plain()) return emit_outputs(start, vectors);
    each_phase(0, start, vectors);
  }

  /// Phases of one axis that have the same taps share their code.
  void each_phase(size_t axis, Value* start, int64_t vectors) {
    if (axis == phase_.size()) return emit_outputs(start, vectors);
    const ResultPhases& phases = dim(axis).phases;
    const auto emit = [&](int64_t first, int64_t last, int64_t first_tap) {
      phase_[axis].first_tap = first_tap;
      k_.loop(k_.i64(first), k_.i64(last), 1, [&](Value* phase) {
        phase_[axis].number = phase;
        each_phase(axis + 1, start, vectors);
      });
    };
    emit(0, phases.missing, 1);
    emit(phases.missing, phases.count, 0);
  }

  void emit_outputs(Value* start, int64_t vectors) {
    const int64_t all = f_.view.outputs, whole = all / outputs_ * outputs_;
    k_.loop(k_.i64(0), k_.i64(whole), outputs_, [&](Value* o) { emit_tile(start, o, outputs_, vectors); });
    if (all > whole) emit_tile(start, k_.i64(whole), all - whole, vectors);
  }

  void emit_tile(Value* start, Value* output, int64_t outputs, int64_t vectors) {
    Value* first = k_.add(k_.mul(group_, k_.i64(f_.view.outputs)), output);
    for (int64_t i = 0; i < outputs * vectors; ++i)
      k_.b.CreateStore(k_.zero(f_.vector()), acc_[static_cast<size_t>(i)]);
    k_.loop(k_.i64(0), k_.i64(f_.view.depth), 1, [&](Value* channel) {
      Value* offset = k_.mul(k_.add(first_packed_, channel), k_.i64(f_.packing.channel));
      Value* x = f_.at(f_.packed, k_.add(offset, start));
      Value* w = weights_at(first, channel);
      if (f_.view.plain()) return emit_taps(x, w, outputs, vectors);
      emit_taps_of_phase(x, w, outputs, vectors);
    });
    for (int64_t i = 0; i < outputs * vectors; ++i) {
      Value* row = k_.add(first, k_.i64(i / vectors));
      for (size_t axis = 0; axis < phase_.size() && !f_.view.plain(); ++axis)
        row = k_.add(k_.mul(row, k_.i64(dim(axis).phases.count)), phase_[axis].number);
      Value* offset = k_.mul(row, k_.i64(f_.packing.stage_pitch));
      offset = k_.add(k_.add(offset, start), k_.i64(i % vectors * f_.lanes));
      f_.store(k_.b.CreateLoad(f_.vector(), acc_[static_cast<size_t>(i)]), f_.at(f_.staged, offset));
    }
  }

  /// Of the phase's first tap.
  Value* weights_at(Value* output, Value* channel) {
    Env env = f_.s.fresh_env(1);
    env.axes[1] = {output, false, 1};
    if (f_.view.channel >= 0) env.axes[static_cast<size_t>(f_.view.channel)] = {channel, false, 1};
    for (size_t axis = 0; axis < phase_.size() && !f_.view.plain(); ++axis) {
      const PixelDim& d = dim(axis);
      if (d.phases.axis >= 0) env.axes[static_cast<size_t>(d.phases.axis)] = {phase_[axis].number, false, 1};
      if (d.tap >= 0) env.axes[static_cast<size_t>(d.tap)] = {k_.i64(phase_[axis].first_tap), false, 1};
    }
    const IndexMap& map = weights_map();
    const Address a = address_of(k_, f_.weights(), map, env, nullptr);
    return f_.at(f_.weights().base, k_.add(a.scalar, k_.i64(a.constant)));
  }

  void emit_taps(Value* x, Value* w, int64_t outputs, int64_t vectors) {
    const PixelView& v = f_.view;
    const bool loop = v.rows.stride == 1 && v.rows.taps * v.columns.taps * outputs * vectors > kUnrolledProducts;
    if (!loop) {
      std::vector<Value*> acc = load(outputs * vectors);
      for (int64_t r = 0; r < v.rows.taps; ++r)
        emit_row_of_taps(acc, row_of(x, r), weight_row(w, k_.i64(r)), outputs, vectors);
      return keep(acc);
    }
    k_.loop(k_.i64(0), k_.i64(v.rows.taps), 1, [&](Value* r) {
      std::vector<Value*> acc = load(outputs * vectors);
      Value* row = f_.at(x, k_.mul(r, k_.i64(v.rows.dilation * f_.packing.pitch)));
      emit_row_of_taps(acc, row, weight_row(w, r), outputs, vectors);
      keep(acc);
    });
  }

  const IndexMap& weights_map() const { return f_.s.stage.reads[static_cast<size_t>(f_.view.weights)].map; }
  /// Elements from one tap (or output) to the next.
  Value* weights_step(int axis) { return axis < 0 ? k_.i64(0) : axis_step(k_, f_.weights(), weights_map(), axis); }

  /// All taps of the phase, unrolled: planes, rows, columns.
  void emit_taps_of_phase(Value* x, Value* w, int64_t outputs, int64_t vectors) {
    std::vector<Value*> acc = load(outputs * vectors);
    const auto tap = [&](size_t axis, int64_t number) {
      return k_.mul(weights_step(dim(axis).tap), k_.i64(number - phase_[axis].first_tap));
    };
    for (int64_t p = phase_[0].first_tap; p < dim(0).taps; ++p)
      for (int64_t r = phase_[1].first_tap; r < dim(1).taps; ++r)
        for (int64_t s = phase_[2].first_tap; s < dim(2).taps; ++s) {
          Value* row = row_of(f_.at(x, k_.i64(p * f_.packing.packed_channels * f_.packing.channel)), r);
          Value* weights = f_.at(w, k_.add(k_.add(tap(0, p), tap(1, r)), tap(2, s)));
          emit_tap(acc, row, s, weights, outputs, vectors);
        }
    keep(acc);
  }

  Value* weight_row(Value* w, Value* r) { return f_.at(w, k_.mul(r, weights_step(f_.view.rows.tap))); }

  Value* row_of(Value* x, int64_t r) {
    const TapPlace place = place_of_tap(f_.view.rows, f_.view.rows.taps, r);
    return f_.at(x, k_.i64(place.phase * f_.packing.column_phases * f_.packing.plane + place.shift * f_.packing.pitch));
  }

  void emit_row_of_taps(std::vector<Value*>& acc, Value* x, Value* w, int64_t outputs, int64_t vectors) {
    for (int64_t s = 0; s < f_.view.columns.taps; ++s)
      emit_tap(acc, x, s, f_.at(w, k_.mul(k_.i64(s), weights_step(f_.view.columns.tap))), outputs, vectors);
  }

  /// Tap s of the packed row `x`.
  void emit_tap(std::vector<Value*>& acc, Value* x, int64_t s, Value* w, int64_t outputs, int64_t vectors) {
    const TapPlace place = place_of_tap(f_.view.columns, f_.view.columns.taps, s);
    Value* from = f_.at(x, k_.i64(place.phase * f_.packing.plane + place.shift));
    std::vector<Value*> data;
    for (int64_t i = 0; i < vectors; ++i) data.push_back(f_.load(f_.at(from, k_.i64(i * f_.lanes))));
    for (int64_t o = 0; o < outputs; ++o) {
      Value* at = f_.at(w, k_.mul(k_.i64(o), weights_step(1)));
      Value* weight = k_.b.CreateAlignedLoad(k_.b.getFloatTy(), at, llvm::Align(4));
      weight = k_.splat(weight, static_cast<int>(f_.lanes));
      for (int64_t i = 0; i < vectors; ++i) {
        Value*& sum = acc[static_cast<size_t>(o * vectors + i)];
        sum = k_.fma(weight, data[static_cast<size_t>(i)], sum);
      }
    }
    std::vector<Value**> last;
    for (size_t i = acc.size(); i-- > 0 && last.size() < kTied;) last.push_back(&acc[i]);
    hold_back(k_, last);
  }

  std::vector<Value*> load(int64_t count) {
    std::vector<Value*> acc;
    for (int64_t i = 0; i < count; ++i) acc.push_back(k_.b.CreateLoad(f_.vector(), acc_[static_cast<size_t>(i)]));
    return acc;
  }
  void keep(const std::vector<Value*>& acc) {
    for (size_t i = 0; i < acc.size(); ++i) k_.b.CreateStore(acc[i], acc_[i]);
  }
};

PixelView required_view(const Kernel& k) {
  const auto view = view_pixels(k.spec.region);
  OPFUSE_CHECK(view, "no two-dimensional convolution");
  return *view;
}

}  // namespace

PixelFrame::PixelFrame(Kernel& kernel, StageEmitter& stage)
    : k(kernel), s(stage), view(required_view(kernel)), lanes(lanes_of(kernel.target)) {
  const auto schedule = typed<PixelSchedule>(k.spec.schedule);
  bands = schedule.bands;
  all_groups = schedule.pack_all != 0;
  packing = pack_pixels(view, lanes, bands, all_groups);
  k.scratch_bytes = packing.scratch_bytes();
  packed = k.scratch;
  staged = at(k.scratch, k.i64(packing.packed_elements()));
}

void multiply_band(PixelFrame& f, const Band& band, Value* group, Value* first_packed) {
  PixelTiles(f, group, first_packed).emit(band);
}

void emit_pixels(Kernel& k) {
  StageEmitter stage(k, 0);
  PixelFrame f(k, stage);
  const auto emit_band = [&](const Env& env, Value* index) {
    const PartRange rows = cut_range(k, Dim(f.view.rows.positions), index, Dim(f.bands));
    const Band band{rows.begin, rows.end};
    if (f.all_groups) pack_band(f, env, band, k.i64(0), f.view.channels());
    k.loop(k.i64(0), k.i64(f.view.groups), 1, [&](Value* group) {
      Value* first = k.mul(group, k.i64(f.view.depth));
      if (!f.all_groups) pack_band(f, env, band, first, f.view.depth);
      Value* inside = f.data().layout.blocks.empty() ? k.i64(0) : k.rem(first, k.i64(f.lanes));
      multiply_band(f, band, group, f.all_groups ? first : inside);
    });
    store_band(f, env, band);
  };
  std::vector<int> images = {0};
  if (f.view.planes.axis >= 0) images.push_back(f.view.planes.axis);
  emit_tiled_parts(k, stage.fresh_env(1), images, Dim(1), Dim(f.bands),
                   [&](const Env& env, PartRange, PartRange pieces) {
                     k.loop(pieces.begin, pieces.end, 1, [&](Value* index) { emit_band(env, index); });
                   });
}

}  // namespace opfuse::cpu
