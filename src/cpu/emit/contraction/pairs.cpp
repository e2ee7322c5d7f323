// Products of weights in pairs (tensor/paired_codes.hpp): four codes of a pixel are broadcast, u8 times i8 are added up
// in pairs as i16 (pmaddubsw) and these in pairs as i32 (pmaddwd by ones), three operations for four products.
//
//   extras:   data of the extra octets in use, in their order, onto the stack
//   octets:   data of as many octets as stay in L1, each in its own order (pshufb), then their products
//   extras:   their products
//
// A block of weights has orders of its own, so data are put in order once per tile. Rows of features lie pixel by pixel
// on the stack, images octet by octet, as they lie in memory: a vector of either is put in order at once.
#include "cpu/emit/contraction/pairs.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

#include "cpu/contraction/codes.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/fence.hpp"
#include "tensor/paired_codes.hpp"

namespace opfuse::cpu {
namespace {

using paired::kOctet;

constexpr int64_t kBytesAhead = 8192;  ///< a quarter of L1: the weights stream through the rest
constexpr int64_t kHalf = 4;           ///< channels of a broadcast
constexpr int64_t kLaneBytes = 16;     ///< within which pshufb moves bytes

int64_t pixels_of(const ContractionPlan& plan) { return plan.schedule.tile_w * plan.schedule.tile_h; }

paired::BlockBytes block_bytes(const ContractionPlan& plan) {
  const Operand& weights = plan.s.reads[static_cast<size_t>(plan.view.weights)];
  return {plan.depth() / kOctet, weights.layout.pairs - 1, plan.block};
}

/// Octets that are put in order before the first of their products.
int64_t octets_ahead(const ContractionPlan& plan) {
  const int64_t vector = plan.k.target.vector_bytes / kOctet;
  const int64_t most = kBytesAhead / (pixels_of(plan) * kOctet) / vector * vector;
  return std::min(most, plan.depth() / kOctet);
}

class PairedProducts {
 public:
  PairedProducts(const ContractionPlan& plan, const Tile& tile, const Env& env)
      : plan_(plan),
        tile_(tile),
        env_(env),
        k_(plan.k),
        bytes_(block_bytes(plan)),
        steps_(plan, tile),
        weights_(start_of_weights()),
        extras_(k_.element(plan.widened, DType::u8, k_.i64(octets_ahead(plan) * pixels_of(plan) * kOctet))),
        ones_(opaque_vector(k_, k_.splat(k_.b.getInt16(1), static_cast<int>(k_.target.vector_bytes / 2)))) {}

  void add() const {
    const int64_t ahead = octets_ahead(plan_), octets = bytes_.octets;
    Value* used = bytes_.extras ? extras_in_use() : nullptr;
    if (used) k_.loop(k_.i64(0), used, 1, [&](Value* extra) { order_extra(extra); });
    k_.loop(k_.i64(0), k_.i64(octets), ahead, [&](Value* first) {
      Value* end = octets % ahead ? k_.min(k_.i64(octets), k_.add(first, k_.i64(ahead))) : k_.add(first, k_.i64(ahead));
      order_octets(first, end);
      k_.loop(first, end, 1, [&](Value* octet) {
        Value* at = k_.mul(k_.sub(octet, first), k_.i64(octet_step()));
        multiply(octet, k_.element(plan_.widened, DType::u8, at), pixel_step());
      });
    });
    if (used)
      k_.loop(k_.i64(0), used, 1, [&](Value* extra) {
        Value* at = k_.element(extras_, DType::u8, k_.mul(extra, k_.i64(tile_.pixels() * kOctet)));
        multiply(k_.add(extra, k_.i64(octets)), at, kOctet);
      });
  }

 private:
  const ContractionPlan& plan_;
  const Tile& tile_;
  const Env& env_;
  Kernel& k_;
  const paired::BlockBytes bytes_;
  const PixelSteps steps_;
  Value* const weights_;  ///< of the block
  Value* const extras_;   ///< data of extra octets
  Value* const ones_;

  bool in_rows() const { return plan_.data().layout.blocks.empty(); }
  int64_t octet_step() const { return in_rows() ? kOctet : tile_.pixels() * kOctet; }
  int64_t pixel_step() const { return in_rows() ? octets_ahead(plan_) * kOctet : kOctet; }
  llvm::Type* bytes(int64_t count) const { return k_.lanes(k_.b.getInt8Ty(), static_cast<int>(count)); }

  Env at_channel(Value* channel) const {
    Env at = env_;
    at.axes[static_cast<size_t>(plan_.view.channel)] = {channel, false, kOctet};
    return at;
  }

  Value* start_of_weights() const {
    const Address at = weights_at(plan_, at_channel(k_.i64(0)))[0];
    return k_.element(plan_.weights.base, DType::i8, k_.add(at.scalar, k_.i64(at.constant)));
  }

  Value* in_block(Value* offset, int64_t more) const {
    return k_.element(weights_, DType::i8, k_.add(offset, k_.i64(more)));
  }

  Value* word(Value* at) const {
    return k_.b.CreateSExt(k_.b.CreateAlignedLoad(k_.b.getInt32Ty(), at, llvm::Align(1)), k_.b.getInt64Ty());
  }

  Value* extras_in_use() const { return word(in_block(k_.i64(0), bytes_.count())); }

  /// `bytes` bytes at `at`, an octet or several.
  Value* load(Value* at, int64_t count) const { return k_.b.CreateAlignedLoad(bytes(count), at, llvm::Align(1)); }

  void store(Value* codes, Value* at) const {
    // volatile: else words of a short vector reach their products through general registers, not by a load
    k_.b.CreateAlignedStore(codes, at, llvm::Align(1), true);
  }

  /// Data of `pixel` at octet `octet`.
  Value* data_at(Value* octet, int64_t pixel) const {
    const Address at =
        address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at_channel(k_.mul(octet, k_.i64(kOctet))), nullptr);
    Value* first = k_.element(plan_.data().base, plan_.types().data, k_.add(at.scalar, k_.i64(at.constant)));
    return k_.element(first, plan_.types().data, steps_.offset(k_, tile_, pixel, k_.i64(0)));
  }

  /// Data as u8.
  Value* codes_at(Value* octet, int64_t pixel, int64_t count) const {
    Value* codes = load(data_at(octet, pixel), count);
    if (plan_.types().data != DType::i8) return codes;
    return k_.b.CreateXor(codes, llvm::ConstantInt::get(codes->getType(), kSignBits & 0xFF));
  }

  Value* resized(Value* codes, int64_t count) const {
    std::vector<int> from;
    const auto has = static_cast<int64_t>(llvm::cast<llvm::FixedVectorType>(codes->getType())->getNumElements());
    for (int64_t i = 0; i < count; ++i) from.push_back(static_cast<int>(i % has));
    return count == has ? codes : k_.b.CreateShuffleVector(codes, from);
  }

  /// The orders of a vector of octets; of one octet: of as many pixels. Each second lies behind the first of a lane.
  Value* lanes_of(Value* orders, int64_t count) const {
    std::vector<uint8_t> behind;
    for (int64_t i = 0; i < count; ++i) behind.push_back(i / kOctet % 2 ? kOctet : 0);
    return k_.b.CreateAdd(resized(orders, count), llvm::ConstantDataVector::get(k_.context(), behind));
  }

  Value* in_order(Value* codes, Value* orders, int64_t count) const {
    const int64_t whole = std::max(count, kLaneBytes);
    const bool wide = whole > kLaneBytes;
    const auto id = wide ? llvm::Intrinsic::x86_avx2_pshuf_b : llvm::Intrinsic::x86_ssse3_pshuf_b_128;
    return resized(k_.b.CreateIntrinsic(id, {}, {resized(codes, whole), resized(orders, whole)}), count);
  }

  /// Neighbouring pixels from `pixel` on that one vector takes.
  int64_t together(int64_t pixel) const {
    const auto* apart = llvm::dyn_cast<llvm::ConstantInt>(steps_.pixel);
    if (in_rows() || !apart || apart->getSExtValue() != kOctet) return 1;
    const int64_t width = tile_.run->width, left = width - pixel % width;
    const int64_t most = std::min(left, k_.target.vector_bytes / kOctet);
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  }

  void order_octets(Value* first, Value* end) const {
    const int64_t most = in_rows() ? k_.target.vector_bytes / kOctet : 1;
    if (most == 1 || bytes_.octets < most) return order_by(1, first, end, first);
    // chunks are whole vectors, but the last
    Value* whole = bytes_.octets % most ? k_.mul(k_.div(end, k_.i64(most)), k_.i64(most)) : end;
    order_by(most, first, whole, first);
    if (bytes_.octets % most) order_by(1, whole, end, first);
  }

  /// `octets` at a time; what is first of all lies first on the stack.
  void order_by(int64_t octets, Value* from, Value* to, Value* first) const {
    k_.loop(from, to, octets, [&](Value* octet) {
      Value* orders = load(in_block(k_.mul(octet, k_.i64(kOctet)), bytes_.orders()), octets * kOctet);
      Value* place = k_.mul(k_.sub(octet, first), k_.i64(octet_step()));
      for (int64_t p = 0, count = 1; p < tile_.pixels(); p += count) {
        count = together(p);
        const int64_t size = std::max(count, octets) * kOctet;
        Value* codes = in_order(codes_at(octet, p, size), lanes_of(orders, std::max(size, kLaneBytes)), size);
        store(codes, k_.element(plan_.widened, DType::u8, k_.add(place, k_.i64(p * pixel_step()))));
      }
    });
  }

  void order_extra(Value* extra) const {
    Value* entry = in_block(k_.mul(extra, k_.i64(paired::BlockBytes::kExtra)), bytes_.extra());
    const auto part = [&](int64_t offset) { return k_.element(entry, DType::i8, k_.i64(offset)); };
    Value* place = k_.mul(extra, k_.i64(tile_.pixels() * kOctet));
    for (int64_t p = 0, count = 1; p < tile_.pixels(); p += count) {
      count = together(p);
      const int64_t size = count * kOctet;
      Value* both = nullptr;
      for (int64_t half = 0; half < 2; ++half) {
        Value* octet = word(part(paired::BlockBytes::kOctetsOfExtra + half * kHalf));
        Value* orders = lanes_of(load(part(half * kOctet), kOctet), std::max(size, kLaneBytes));
        Value* codes = in_order(codes_at(octet, p, size), orders, size);
        both = both ? k_.b.CreateOr(both, codes) : codes;
      }
      store(both, k_.element(extras_, DType::u8, k_.add(place, k_.i64(p * kOctet))));
    }
  }

  Value* product(Value* x, Value* w) const {
    Value* pairs = k_.b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_pmadd_ub_sw, {}, {x, w});
    return k_.b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_pmadd_wd, {}, {pairs, ones_});
  }

  /// Octet `octet` of the weights with data at `data`.
  void multiply(Value* octet, Value* data, int64_t pixel_step) const {
    const int64_t vectors = tile_.form.vectors, all = k_.target.vector_bytes;
    std::vector<Value*> sums;
    for (int64_t i = 0; i < tile_.accumulators(); ++i)
      sums.push_back(k_.b.CreateLoad(plan_.product.sums, plan_.places[static_cast<size_t>(i)]));
    for (int64_t half = 0; half < kOctet / kHalf; ++half) {
      std::vector<Value*> weights;
      for (int64_t v = 0; v < vectors; ++v)
        weights.push_back(
            load(in_block(k_.mul(octet, k_.i64(bytes_.octet())), half * kHalf * plan_.block + v * all), all));
      for (int64_t p = 0; p < tile_.pixels(); ++p) {
        Value* at = k_.element(data, DType::u8, k_.i64(p * pixel_step + half * kHalf));
        Value* word = k_.b.CreateAlignedLoad(k_.b.getInt32Ty(), at, llvm::Align(1));
        Value* x = k_.b.CreateBitCast(k_.splat(word, static_cast<int>(plan_.lanes)), bytes(all));
        for (int64_t v = 0; v < vectors; ++v) {
          Value*& sum = sums[tile_.form.place_of(p, v)];
          sum = k_.b.CreateAdd(sum, product(x, weights[static_cast<size_t>(v)]));
        }
      }
      hold_last(sums);
    }
    for (int64_t i = 0; i < tile_.accumulators(); ++i)
      k_.b.CreateStore(sums[static_cast<size_t>(i)], plan_.places[static_cast<size_t>(i)]);
  }

  /// Loads of the next half stay behind the last products of this one.
  void hold_last(std::vector<Value*>& sums) const {
    constexpr size_t kTied = 6;
    std::vector<Value**> last;
    for (size_t i = sums.size(); i-- > 0 && last.size() < kTied;) last.push_back(&sums[i]);
    hold_back(k_, last);
  }
};

}  // namespace

int64_t bytes_of_pairs(const ContractionPlan& plan) {
  return (octets_ahead(plan) + block_bytes(plan).extras) * pixels_of(plan) * kOctet;
}

void add_pairs(const ContractionPlan& plan, const Tile& tile, const Env& env) { PairedProducts(plan, tile, env).add(); }

}  // namespace opfuse::cpu
