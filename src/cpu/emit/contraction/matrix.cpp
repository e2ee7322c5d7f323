// Sums stay in matrix registers over all channels and taps of a tile; the epilogue reads them from memory.
//
//     registers   0..3 sums: vectors * (pixels / 16) + vector     4, 5 data     6, 7 weights
//
// The pixels of a tile are dealt to its registers evenly: a product takes a cycle for each of them. Pixels that lie at
// equal distances are loaded as they are, from the data or from copies (copies.cpp); others (edges of a map, several
// rows of one) are put together first. Pixels without data have zeros there, or the code of zero.
#include "cpu/contraction/matrix.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kSums = 0, kData = 4, kWeights = 6, kRegisters = 8;

/// The instructions; registers are numbers in them.
struct Matrices {
  Kernel& k;

  Value* number(int64_t i) const { return k.b.getInt8(static_cast<uint8_t>(i)); }
  void call(llvm::Intrinsic::ID id, const std::vector<Value*>& operands) const {
    k.b.CreateIntrinsic(id, {}, operands);
  }
  void zero(int64_t to) const { call(llvm::Intrinsic::x86_tilezero, {number(to)}); }
  void load(int64_t to, Value* from, Value* stride) const {
    call(llvm::Intrinsic::x86_tileloadd64, {number(to), from, stride});
  }
  void store(int64_t from, Value* to, Value* stride) const {
    call(llvm::Intrinsic::x86_tilestored64, {number(from), to, stride});
  }
  void multiply(int64_t sums, int64_t data, int64_t weights, bool halves) const {
    call(halves ? llvm::Intrinsic::x86_tdpbf16ps : llvm::Intrinsic::x86_tdpbusd,
         {number(sums), number(data), number(weights)});
  }
  Value* bytes_from(Value* at, int64_t bytes) const { return k.b.CreateConstGEP1_64(k.b.getInt8Ty(), at, bytes); }
};

Value* memory(Kernel& k, int64_t bytes) {
  llvm::AllocaInst* place = k.variable(llvm::ArrayType::get(k.b.getInt8Ty(), static_cast<uint64_t>(bytes)));
  place->setAlignment(llvm::Align(kMatrixRowBytes));
  return place;
}

std::optional<int64_t> constant_of(const Value* value) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(value)) return c->getSExtValue();
  return std::nullopt;
}

MatrixTile form_of(const ContractionPlan& plan) {
  return {plan.schedule.tile_w, plan.schedule.tile_h, row_distance(plan.copies, plan.schedule)};
}
int64_t most_pixels(const ContractionPlan& plan) { return plan.schedule.tile_w * plan.schedule.tile_h; }
int64_t registers_of(const ContractionPlan& plan, const Tile& tile) {
  return form_of(plan).registers(tile.run->width, tile.rows());
}

/// Channels of a pixel that a product takes, at all taps that it takes.
int64_t row_channels(const ContractionPlan& plan) {
  return plan.schedule.step * (plan.copies && plan.copies->joined ? plan.copies->column_taps : 1);
}
int64_t row_bytes(const ContractionPlan& plan) { return row_channels(plan) * plan.types().data_bytes(); }

/// The pixels of register `part`.
uint64_t pixels_of(const ContractionPlan& plan, const Tile& tile, int64_t part) {
  const MatrixTile form = form_of(plan);
  uint64_t mask = 0;
  for (int64_t p = 0; p < tile.pixels(); ++p)
    if (form.place_of(p, tile.run->width) / kMatrixRows == part) mask |= uint64_t{1} << p;
  return mask;
}

/// Palette 1, then bytes of a row (16 bits each) from byte 16, rows from byte 48.
void configure(const ContractionPlan& plan, int64_t wide, int64_t high) {
  constexpr int64_t kRowBytesAt = 16, kRowsAt = 48;
  std::vector<uint8_t> bytes(kMatrixRowBytes, 0);
  bytes[0] = 1;
  const MatrixTile form = form_of(plan);
  for (int64_t r = 0; r < kRegisters; ++r) {
    const bool data = r == kData || r == kData + 1, weights = r >= kWeights;
    const int64_t part = data ? r - kData : r / plan.vectors;
    const int64_t pixels = part < form.registers(wide, high) ? form.pixels_in(part, wide, high) : 1;
    bytes[static_cast<size_t>(kRowBytesAt + 2 * r)] = static_cast<uint8_t>(data ? row_bytes(plan) : kMatrixRowBytes);
    bytes[static_cast<size_t>(kRowsAt + r)] =
        static_cast<uint8_t>(weights ? row_channels(plan) / plan.product.unit : pixels);
  }
  Kernel& k = plan.k;
  auto* text = llvm::ConstantDataArray::get(k.context(), llvm::ArrayRef<uint8_t>(bytes));
  k.b.CreateAlignedStore(text, plan.matrix.shapes, llvm::Align(kMatrixRowBytes));
  Matrices{k}.call(llvm::Intrinsic::x86_ldtilecfg, {plan.matrix.shapes});
}

void add_products(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  const Matrices m{plan.k};
  if (plan.schedule.fetch_outputs) fetch_epilogue(plan, tile, env);
  for (int64_t part = 0; part < registers_of(plan, tile); ++part)
    for (int64_t v = 0; v < tile.form.vectors; ++v) m.zero(kSums + part * plan.vectors + v);
  TileProducts(plan, tile).add_inside(env);
}

void store_sums(const ContractionPlan& plan, const Tile& tile) {
  const Matrices m{plan.k};
  for (int64_t part = 0; part < registers_of(plan, tile); ++part)
    for (int64_t v = 0; v < tile.form.vectors; ++v)
      m.store(kSums + part * plan.vectors + v,
              m.bytes_from(plan.matrix.sums, (part * kMatrixRows * plan.vectors + v) * kMatrixRowBytes),
              plan.k.i64(plan.vectors * kMatrixRowBytes));
}

void emit_tile(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  const int64_t wide = plan.schedule.tile_w, high = plan.schedule.tile_h;
  const bool other = tile.run->width != wide || tile.rows() != high;  // than the registers are set to
  if (other) configure(plan, tile.run->width, tile.rows());
  add_products(plan, tile, env);
  store_sums(plan, tile);
  if (other) configure(plan, wide, high);
  emit_epilogue(plan, tile, env);
}

/// The data of the pixels of register `part`.
void load_data(const ContractionPlan& plan, const Tile& tile, Value* data, int64_t part, uint64_t pixels) {
  Kernel& k = plan.k;
  const Matrices m{k};
  const MatrixTile form = form_of(plan);
  const PixelSteps steps(plan, tile);
  const DType type = plan.types().data;
  const int64_t width = tile.run->width, to = kData + part % 2;
  const auto at = [&](int64_t p) { return k.element(data, type, steps.offset(k, tile, p, k.i64(0))); };
  const auto row = constant_of(steps.row), pixel = constant_of(steps.pixel);
  const bool even = form.cut() || form.rows == 1 || (row && pixel && *row == *pixel * form.distance);
  const uint64_t own = pixels_of(plan, tile, part);
  const bool flips = type == DType::i8 && !plan.copies;  // i8 data + 128 are u8
  if ((pixels & own) == own && even && !flips)
    return m.load(to, at(form.first_pixel(part, width)), k.mul(steps.pixel, k.i64(plan.types().data_bytes())));
  llvm::Type* words = k.lanes(k.b.getInt32Ty(), static_cast<int>(row_bytes(plan) / kWordBytes));
  auto* sign = llvm::ConstantInt::get(words, kSignBits);
  Value* outside = llvm::Constant::getNullValue(words);
  if (plan.fills()) outside = k.splat(plan.product.outside, static_cast<int>(row_bytes(plan) / kWordBytes));
  Value* rows = plan.matrix.data[static_cast<size_t>(part)];
  for (int64_t p = 0; p < tile.pixels(); ++p) {
    if (!(own >> p & 1)) continue;
    const bool inside = (pixels >> p & 1) != 0;
    Value* x = outside;
    if (inside) x = k.b.CreateAlignedLoad(words, at(p), plan.data_align());
    if (flips && (inside || plan.fills())) x = k.b.CreateXor(x, sign);
    const int64_t place = form.place_of(p, width) % kMatrixRows;
    k.b.CreateAlignedStore(x, m.bytes_from(rows, place * row_bytes(plan)), llvm::Align(kWordBytes));
  }
  m.load(to, rows, k.i64(row_bytes(plan)));
}

/// Sums of a tile wait in memory while the next tile's products start: its epilogue runs beside them. All tiles are
/// alike, and so are all blocks of outputs.
class Waiting {
 public:
  static bool fits(const ContractionPlan& plan) {
    const auto alike = [](const std::vector<TileRun>& runs, int64_t width) {
      return std::all_of(runs.begin(), runs.end(), [&](const TileRun& r) { return r.width == width && !r.before; });
    };
    return plan.channels() % plan.block == 0 && plan.view.pixel >= 0 && alike(plan.runs, plan.schedule.tile_w) &&
           alike(plan.row_runs, plan.schedule.tile_h);
  }

  explicit Waiting(const ContractionPlan& plan)
      : plan_(plan), k_(plan.k), any_(variable()), block_(variable()), row_(variable()), pixel_(variable()) {
    k_.b.CreateStore(k_.i64(0), any_);
    for (llvm::AllocaInst* place : {block_, row_, pixel_}) k_.b.CreateStore(k_.i64(0), place);
  }

  void emit(const Tile& tile, const Env& env) const {
    add_products(plan_, tile, env);
    finish(tile, env);
    store_sums(plan_, tile);
    const auto keep = [&](int axis, llvm::AllocaInst* to) {
      if (axis >= 0) k_.b.CreateStore(env.axes[static_cast<size_t>(axis)].base, to);
    };
    k_.b.CreateStore(k_.i64(1), any_);
    k_.b.CreateStore(tile.block, block_);
    keep(plan_.row_axis, row_);
    keep(plan_.view.pixel, pixel_);
  }

  void finish(const Env& env) const {
    Tile tile;
    tile.form = {plan_.sums, plan_.vectors};
    tile.run = &plan_.runs.front();
    if (!plan_.row_runs.empty()) tile.row_run = &plan_.row_runs.front();
    finish(tile, env);
  }

 private:
  const ContractionPlan& plan_;
  Kernel& k_;
  llvm::AllocaInst *const any_, *const block_, *const row_, *const pixel_;

  llvm::AllocaInst* variable() const { return k_.variable(k_.b.getInt64Ty()); }

  /// The epilogue of the tile that waits, if any; `shape` is as it.
  void finish(const Tile& shape, const Env& env) const {
    const auto load = [&](llvm::AllocaInst* at) { return k_.b.CreateLoad(at->getAllocatedType(), at); };
    k_.branch(k_.b.CreateICmpNE(load(any_), k_.i64(0)), [&] {
      Env at = env;
      at.axes[static_cast<size_t>(plan_.view.pixel)] = {load(pixel_), false, 1};
      if (plan_.row_axis >= 0) at.axes[static_cast<size_t>(plan_.row_axis)] = {load(row_), false, 1};
      Tile tile = shape;
      tile.block = load(block_);
      at.axes[static_cast<size_t>(plan_.view.vec)] = {k_.mul(tile.block, k_.i64(plan_.block)), false, plan_.block};
      emit_epilogue(plan_, tile, at);
    });
  }
};

}  // namespace

MatrixMemory matrix_memory(const ContractionPlan& plan) {
  const int64_t parts = form_of(plan).registers(plan.schedule.tile_w, plan.schedule.tile_h);
  MatrixMemory m;
  m.sums = memory(plan.k, parts * kMatrixRows * plan.vectors * kMatrixRowBytes);
  for (int64_t part = 0; part < parts; ++part) m.data.push_back(memory(plan.k, kMatrixRows * kMatrixRowBytes));
  m.shapes = memory(plan.k, kMatrixRowBytes);
  if (plan.copies) m.first_row = plan.k.variable(plan.k.b.getInt64Ty());
  return m;
}

std::vector<Value*> matrix_places(const ContractionPlan& plan) {
  std::vector<Value*> places;
  const MatrixTile form = form_of(plan);
  for (int64_t p = 0; p < most_pixels(plan); ++p)
    for (int64_t v = 0; v < plan.vectors; ++v)
      places.push_back(Matrices{plan.k}.bytes_from(
          plan.matrix.sums, (form.place_of(p, plan.schedule.tile_w) * plan.vectors + v) * kMatrixRowBytes));
  return places;
}

void emit_matrices(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  Kernel& k = plan.k;
  std::optional<Waiting> waiting;
  if (Waiting::fits(plan)) waiting.emplace(plan);
  const auto walk = [&](PartRange some) {
    walk_tiles(plan, env, blocks, some, [&](const Tile& tile, const Env& at) {
      if (waiting) return waiting->emit(tile, at);
      emit_tile(plan, tile, at);
    });
  };
  configure(plan, plan.schedule.tile_w, plan.schedule.tile_h);
  if (plan.copies) {
    const int64_t chunk = plan.schedule.chunk, height = plan.schedule.tile_h;
    const int64_t all = axis_extent(plan.s.stage, plan.row_axis).value();
    k.loop(items.begin, items.end, chunk, [&](Value* begin) {
      Value* end = k.min(items.end, k.add(begin, k.i64(chunk)));
      copy_data(plan, env, k.mul(begin, k.i64(height)), k.min(k.mul(end, k.i64(height)), k.i64(all)));
      walk({begin, end});
    });
  } else {
    walk(items);
  }
  if (waiting) waiting->finish(env);
  Matrices{plan.k}.call(llvm::Intrinsic::x86_tilerelease, {});
}

void multiply_matrices(const ContractionPlan& plan, const Tile& tile, const Env& env, const Address& weights,
                       uint64_t pixels) {
  if (!pixels && !plan.fills()) return;
  Kernel& k = plan.k;
  const Matrices m{k};
  Value* data_at = nullptr;
  if (plan.copies) {
    data_at = copied_data(plan, env);
  } else {
    const Address data = address_of(k, plan.data(), plan.map_of(plan.view.data), env, nullptr);
    if (plan.schedule.fetch_data) fetch_data(plan, tile, env, data);
    data_at = k.element(plan.data().base, plan.types().data, k.add(data.scalar, k.i64(data.constant)));
  }
  Value* from = k.element(plan.weights.base, plan.types().weights, k.add(weights.scalar, k.i64(weights.constant)));
  const int64_t row = plan.block * plan.product.unit * plan.types().weight_bytes();  // of all outputs of the block
  for (int64_t v = 0; v < tile.form.vectors; ++v)
    m.load(kWeights + v, m.bytes_from(from, v * kMatrixRowBytes), k.i64(row));
  for (int64_t part = 0; part < registers_of(plan, tile); ++part) {
    if (!(pixels & pixels_of(plan, tile, part)) && !plan.fills()) continue;
    load_data(plan, tile, data_at, part, pixels);
    for (int64_t v = 0; v < tile.form.vectors; ++v)
      m.multiply(kSums + part * plan.vectors + v, kData + part % 2, kWeights + v, plan.types().data == DType::bf16);
  }
}

}  // namespace opfuse::cpu
