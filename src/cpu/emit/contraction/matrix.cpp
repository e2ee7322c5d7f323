// Sums stay in matrix registers over all channels and taps of a tile; the epilogue reads them from memory.
//
//     registers   0..3 sums: vectors * (pixels / 16) + vector     4, 5 data     6, 7 weights
//
// Rows of data that lie at equal distances are loaded as they are; others (edges of a map, several rows of one, the
// last pixels) are put together first. Pixels without data have zeros there, or the code of zero.
#include "cpu/contraction/matrix.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "base/integers.hpp"
#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kSums = 0, kData = 4, kWeights = 6, kRegisters = 8, kWordBytes = 4;
constexpr uint32_t kSignBits = 0x80808080;

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

/// Registers that hold so many pixels.
int64_t registers_of(int64_t pixels) { return ceil_of(pixels, kMatrixRows); }
int64_t most_pixels(const ContractionPlan& plan) { return plan.schedule.tile_w * plan.schedule.tile_h; }

/// Bytes of the channels of a step.
int64_t row_bytes(const ContractionPlan& plan) { return plan.schedule.step * plan.types().data_bytes(); }

uint64_t pixels_of(int64_t part) { return ((uint64_t{1} << kMatrixRows) - 1) << (part * kMatrixRows); }

/// Palette 1, then bytes of a row (16 bits each) from byte 16, rows from byte 48.
void configure(const ContractionPlan& plan) {
  constexpr int64_t kRowBytesAt = 16, kRowsAt = 48;
  std::vector<uint8_t> bytes(kMatrixRowBytes, 0);
  bytes[0] = 1;
  for (int64_t r = 0; r < kRegisters; ++r) {
    const bool data = r == kData || r == kData + 1, weights = r >= kWeights;
    bytes[static_cast<size_t>(kRowBytesAt + 2 * r)] = static_cast<uint8_t>(data ? row_bytes(plan) : kMatrixRowBytes);
    bytes[static_cast<size_t>(kRowsAt + r)] =
        static_cast<uint8_t>(weights ? plan.schedule.step / plan.product.unit : kMatrixRows);
  }
  Kernel& k = plan.k;
  auto* text = llvm::ConstantDataArray::get(k.context(), llvm::ArrayRef<uint8_t>(bytes));
  k.b.CreateAlignedStore(text, plan.matrix.shapes, llvm::Align(kMatrixRowBytes));
  Matrices{k}.call(llvm::Intrinsic::x86_ldtilecfg, {plan.matrix.shapes});
}

void emit_tile(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  const Matrices m{plan.k};
  const int64_t vectors = tile.form.vectors, parts = registers_of(tile.pixels());
  if (plan.schedule.fetch_outputs) fetch_epilogue(plan, tile, env);
  for (int64_t i = 0; i < parts * vectors; ++i) m.zero(kSums + i);
  TileProducts(plan, tile).add_inside(env);
  for (int64_t i = 0; i < parts * vectors; ++i) {
    const int64_t place = i / vectors * kMatrixRows * vectors + i % vectors;
    m.store(kSums + i, m.bytes_from(plan.matrix.sums, place * kMatrixRowBytes), plan.k.i64(vectors * kMatrixRowBytes));
  }
  emit_epilogue(plan, tile, env);
}

/// The data of the tile's pixels 16 part .. 16 part + 15.
void load_data(const ContractionPlan& plan, const Tile& tile, Value* data, int64_t part, uint64_t pixels) {
  Kernel& k = plan.k;
  const Matrices m{k};
  const PixelSteps steps(plan, tile);
  const DType type = plan.types().data;
  const int64_t first = part * kMatrixRows, end = first + kMatrixRows, width = tile.run->width, to = kData + part % 2;
  const auto at = [&](int64_t p) { return k.element(data, type, steps.offset(k, tile, p, k.i64(0))); };
  const auto row = constant_of(steps.row), pixel = constant_of(steps.pixel);
  const bool one_row = first / width == (end - 1) / width, dense = row && pixel && *row == *pixel * width;
  const bool all = end <= tile.pixels() && (pixels & pixels_of(part)) == pixels_of(part);
  const bool flips = type == DType::i8;  // i8 data + 128 are u8
  if (all && (one_row || dense) && !flips)
    return m.load(to, at(first), k.mul(steps.pixel, k.i64(plan.types().data_bytes())));
  llvm::Type* words = k.lanes(k.b.getInt32Ty(), static_cast<int>(row_bytes(plan) / kWordBytes));
  auto* sign = llvm::ConstantInt::get(words, kSignBits);
  Value* outside = llvm::Constant::getNullValue(words);
  if (plan.fills()) outside = k.splat(plan.product.outside, static_cast<int>(row_bytes(plan) / kWordBytes));
  Value* rows = plan.matrix.data[static_cast<size_t>(part)];
  for (int64_t p = first; p < std::min(end, tile.pixels()); ++p) {
    const bool inside = (pixels >> p & 1) != 0;
    Value* x = outside;
    if (inside) x = k.b.CreateAlignedLoad(words, at(p), plan.data_align());
    if (flips && (inside || plan.fills())) x = k.b.CreateXor(x, sign);
    k.b.CreateAlignedStore(x, m.bytes_from(rows, (p - first) * row_bytes(plan)), llvm::Align(kMatrixRows));
  }
  m.load(to, rows, k.i64(row_bytes(plan)));
}

}  // namespace

MatrixMemory matrix_memory(const ContractionPlan& plan) {
  const int64_t parts = registers_of(most_pixels(plan));
  MatrixMemory m;
  m.sums = memory(plan.k, parts * kMatrixRows * plan.vectors * kMatrixRowBytes);
  for (int64_t part = 0; part < parts; ++part) m.data.push_back(memory(plan.k, kMatrixRows * kMatrixRowBytes));
  m.shapes = memory(plan.k, kMatrixRowBytes);
  return m;
}

std::vector<Value*> matrix_places(const ContractionPlan& plan) {
  std::vector<Value*> places;
  for (int64_t i = 0; i < most_pixels(plan) * plan.vectors; ++i)
    places.push_back(Matrices{plan.k}.bytes_from(plan.matrix.sums, i * kMatrixRowBytes));
  return places;
}

void emit_matrices(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  configure(plan);
  walk_tiles(plan, env, blocks, items, [&](const Tile& tile, const Env& at) { emit_tile(plan, tile, at); });
  Matrices{plan.k}.call(llvm::Intrinsic::x86_tilerelease, {});
}

void multiply_matrices(const ContractionPlan& plan, const Tile& tile, const Env& env, const Address& weights,
                       uint64_t pixels) {
  if (!pixels && !plan.fills()) return;
  Kernel& k = plan.k;
  const Matrices m{k};
  const Address data = address_of(k, plan.data(), plan.map_of(plan.view.data), env, nullptr);
  if (plan.schedule.fetch_data) fetch_data(plan, tile, env, data);
  Value* data_at = k.element(plan.data().base, plan.types().data, k.add(data.scalar, k.i64(data.constant)));
  Value* from = k.element(plan.weights.base, plan.types().weights, k.add(weights.scalar, k.i64(weights.constant)));
  const int64_t row = plan.block * plan.product.unit * plan.types().weight_bytes();  // of all outputs of the block
  for (int64_t v = 0; v < tile.form.vectors; ++v)
    m.load(kWeights + v, m.bytes_from(from, v * kMatrixRowBytes), k.i64(row));
  for (int64_t part = 0; part < registers_of(tile.pixels()); ++part) {
    if (!(pixels & pixels_of(part)) && !plan.fills()) continue;
    load_data(plan, tile, data_at, part, pixels);
    for (int64_t v = 0; v < tile.form.vectors; ++v)
      m.multiply(kSums + part * tile.form.vectors + v, kData + part % 2, kWeights + v,
                 plan.types().data == DType::bf16);
  }
}

}  // namespace opfuse::cpu
