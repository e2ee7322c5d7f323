// A word holds the codes of `unit` rows of one column, a vector of words those of as many columns as it has lanes:
//
//   for blocks of rows with one scale:           scale, zero = vectors of them
//     for words:  for codes of a word:           w = f32(words >> bits * i & mask) - zero
//       one row of data      partial += x * w            sums += scale * partial behind the block
//       several              sums[p] += x[p] * (w * scale)
//
// Where codes come from a table (decoder.hpp), zero points of a single row of data are subtracted once for a block of
// rows: sum x (code - h) - (zero - h) sum x, where h is the middle code, so that both parts are as small as the
// products.
#include "cpu/emit/contraction/decode.hpp"

#include <algorithm>

#include "cpu/contraction/packed_weights.hpp"
#include "cpu/emit/contraction/decoder.hpp"

namespace opfuse::cpu {
namespace {

class DecodedProducts {
 public:
  DecodedProducts(const ContractionPlan& plan, const Tile& tile, const Env& env)
      : plan_(plan), tile_(tile), env_(env), k_(plan.k), decoder_(plan, tile.block, tile.form.vectors, one_row()) {
    if (decoder_.apart()) data_sum_ = k_.variable(plan.product.sums);
    for (int64_t v = 0; one_row() && v < tile.form.vectors; ++v) partial_.push_back(k_.variable(plan.product.sums));
  }

  void add() {
    for_blocks(plan_, [&](Value* row, Value* first, int64_t rows) {
      BlockOfRows block = decoder_.block_of_rows(row);
      for (Value* sum : partial_) clear(sum);
      if (data_sum_) clear(data_sum_);
      for_words(plan_, first, rows, [&](Value* word, int64_t codes) { multiply(block, word, codes); });
      for (int64_t v = 0; one_row() && v < tile_.form.vectors; ++v) {
        Value* sum = place(0, v);
        Value* part = load(partial_[static_cast<size_t>(v)]);
        if (data_sum_) part = k_.fma(k_.b.CreateFNeg(block.zeros[static_cast<size_t>(v)]), load(data_sum_), part);
        Value* before = k_.b.CreateLoad(plan_.product.sums, sum);
        k_.b.CreateStore(k_.fma(part, block.scales[static_cast<size_t>(v)], before), sum);
      }
    });
  }

 private:
  const ContractionPlan& plan_;
  const Tile& tile_;
  const Env& env_;
  Kernel& k_;
  const Decoder decoder_;
  std::vector<Value*> partial_;  ///< sums of a block of rows before they are scaled
  Value* data_sum_ = nullptr;    ///< of the block's data

  bool one_row() const { return tile_.pixels() == 1; }
  Value* load(Value* sum) const { return k_.b.CreateLoad(plan_.product.sums, sum); }
  void clear(Value* sum) const { k_.b.CreateStore(k_.zero(plan_.product.sums), sum); }
  Value* place(int64_t pixel, int64_t vector) const { return plan_.places[tile_.form.place_of(pixel, vector)]; }

  void multiply(const BlockOfRows& block, Value* word, int64_t codes) const {
    const std::vector<Value*> words = decoder_.words(word);
    Env at = env_;
    const int64_t unit = plan_.view.coded->unit();
    at.axes[static_cast<size_t>(plan_.view.channel)] = {k_.mul(word, k_.i64(unit)), false, unit};
    const Address data = address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at, nullptr);
    Value* from = k_.add(data.scalar, k_.i64(data.constant));
    for (int64_t code = 0; code < codes; ++code) {
      std::vector<Value*> x;
      for (int64_t p = 0; p < tile_.pixels(); ++p) x.push_back(data_of(at, from, p, code));
      if (data_sum_) k_.b.CreateStore(k_.b.CreateFAdd(load(data_sum_), x[0]), data_sum_);
      for (int64_t v = 0; v < tile_.form.vectors; ++v) {
        const auto i = static_cast<size_t>(v);
        Value* w = decoder_.centred(words[i], code, block.zeros[i]);
        if (!one_row()) w = k_.b.CreateFMul(w, block.scales[i]);
        for (int64_t p = 0; p < tile_.pixels(); ++p) {
          Value* sum = one_row() ? partial_[i] : place(p, v);
          Value* before = k_.b.CreateLoad(plan_.product.sums, sum);
          k_.b.CreateStore(k_.fma(x[static_cast<size_t>(p)], w, before), sum);
        }
      }
    }
  }

  /// In all lanes: row `pixel` at channel `code` of the word that `env` stands at.
  Value* data_of(const Env& env, Value* from, int64_t pixel, int64_t code) const {
    const PixelSteps steps(plan_, tile_);
    Value* step = k_.mul(plan_.data_step(plan_.view.channel), k_.i64(code));
    Value* at = k_.element(plan_.data().base, DType::f32, k_.add(from, steps.offset(k_, tile_, pixel, step)));
    Value* x = k_.b.CreateAlignedLoad(k_.b.getFloatTy(), at, plan_.data_align());
    if (plan_.view.value.op() != ExprOp::read) {
      Env point = env;
      move_to_pixel(plan_, tile_, pixel, point);
      point.axes[static_cast<size_t>(plan_.view.channel)].plus = code;
      x = plan_.s.at(point, {}, {{plan_.view.data, x}}).emit(plan_.view.value, DType::f32);
    }
    return k_.splat(x, static_cast<int>(plan_.lanes));
  }
};

}  // namespace

void add_decoded(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  DecodedProducts(plan, tile, env).add();
}

void decode_block(const ContractionPlan& plan, Value* number) {
  Kernel& k = plan.k;
  k.scratch_bytes = std::max(k.scratch_bytes, packed_bytes(plan.s.stage, plan.view, plan.block));
  const Decoder decoder(plan, number, plan.vectors);
  const int64_t unit = plan.view.coded->unit();
  for_blocks(plan, [&](Value* row, Value* first, int64_t rows) {
    const BlockOfRows block = decoder.block_of_rows(row);
    for_words(plan, first, rows, [&](Value* word, int64_t codes) {
      const std::vector<Value*> words = decoder.words(word);
      Value* channel = k.mul(word, k.i64(unit));
      for (int64_t code = 0; code < codes; ++code)
        for (int64_t v = 0; v < plan.vectors; ++v) {
          const auto i = static_cast<size_t>(v);
          Value* w = k.b.CreateFMul(decoder.centred(words[i], code, block.zeros[i]), block.scales[i]);
          Value* offset = k.mul(k.add(channel, k.i64(code)), k.i64(plan.block));
          k.b.CreateAlignedStore(w, k.element(k.scratch, DType::f32, k.add(offset, k.i64(v * plan.lanes))),
                                 plan.weight_align());
        }
    });
  });
}

}  // namespace opfuse::cpu
