// The order of an octet is one of the 105 ways to make four pairs of eight channels, the first with the fewest pairs
// that are too large for some output.
#include "tensor/paired_codes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse::paired {
namespace {

constexpr int kMostOfPair = 128;
constexpr size_t kPairs = 4, kCutsOfHalf = 2, kHalf = 4;
using Order = std::array<uint8_t, kOctet>;

void add_orders(Order order, size_t known, std::vector<Order>& all) {
  if (known == order.size()) return all.push_back(order);
  for (size_t i = known + 1; i < order.size(); ++i) {
    Order next = order;  // the rest stays ascending
    std::rotate(next.begin() + static_cast<ptrdiff_t>(known) + 1, next.begin() + static_cast<ptrdiff_t>(i),
                next.begin() + static_cast<ptrdiff_t>(i) + 1);
    add_orders(next, known + 2, all);
  }
}

const std::vector<Order>& orders() {
  static const std::vector<Order> all = [] {
    std::vector<Order> found;
    Order first{};
    std::iota(first.begin(), first.end(), uint8_t{0});
    add_orders(first, 0, found);
    return found;
  }();
  return all;
}

/// What is too much of a pair of one output.
int excess(int a, int b) {
  const int sum = a + b;
  return sum > kMostOfPair ? sum - kMostOfPair : sum < -kMostOfPair ? sum + kMostOfPair : 0;
}

/// Codes of a block of outputs, as [channel][output].
struct Block {
  int64_t channels = 0, outputs = 0;
  std::vector<int8_t> codes;

  const int8_t* channel(int64_t c) const { return codes.data() + c * outputs; }
};

struct Octet {
  Order order{};
  std::vector<size_t> cut;  ///< pairs that are too large
};

bool too_large(const Block& block, int64_t a, int64_t b) {
  const int8_t *x = block.channel(a), *y = block.channel(b);
  int any = 0;
  for (int64_t o = 0; o < block.outputs; ++o) any |= std::abs(x[o] + y[o]) > kMostOfPair;
  return any != 0;
}

Octet order_of(const Block& block, int64_t first) {
  std::array<std::array<bool, kOctet>, kOctet> large{};
  for (size_t a = 0; a < kOctet; ++a)
    for (size_t b = a + 1; b < kOctet; ++b)
      large[a][b] = large[b][a] = too_large(block, first + static_cast<int64_t>(a), first + static_cast<int64_t>(b));
  const auto is_large = [&](const Order& order, size_t pair) { return large[order[2 * pair]][order[2 * pair + 1]]; };
  const Order* best = nullptr;
  int64_t fewest = kOctet;
  for (const Order& order : orders()) {
    int64_t count = 0;
    for (size_t pair = 0; pair < kPairs; ++pair) count += is_large(order, pair);
    if (count < fewest) fewest = count, best = &order;
    if (count == 0) break;
  }
  Octet octet{*best, {}};
  for (size_t pair = 0; pair < kPairs; ++pair)
    if (is_large(*best, pair)) octet.cut.push_back(pair);
  return octet;
}

int64_t halves_of(const Octet& octet) {
  return static_cast<int64_t>((octet.cut.size() + kCutsOfHalf - 1) / kCutsOfHalf);
}

/// How the codes of a tensor are cut into blocks.
struct Blocks {
  int64_t channels = 0, outputs = 0, block = 0;  ///< of all; outputs of a block
  int64_t channel_stride = 0, output_stride = 0;

  Blocks(const Tensor& codes, const Layout& layout) {
    const auto output = static_cast<size_t>(layout.order[0]), channel = static_cast<size_t>(layout.order[1]);
    const std::vector<int64_t>& sizes = codes.sizes();
    channels = sizes[channel], outputs = sizes[output], block = layout.block_of(layout.order[0]);
    channel_stride = output_stride = 1;
    for (size_t d = channel + 1; d < sizes.size(); ++d) channel_stride *= sizes[d];
    for (size_t d = output + 1; d < sizes.size(); ++d) output_stride *= sizes[d];
    OPFUSE_CHECK(codes.dtype() == DType::i8 && channels * outputs == codes.elements() && channels % kOctet == 0,
                 "codes in pairs of {}", codes.type().text());
  }

  int64_t count() const { return (outputs + block - 1) / block; }
  int64_t octets() const { return channels / kOctet; }

  Block at(const Tensor& codes, int64_t index) const {
    Block found{channels, block, std::vector<int8_t>(static_cast<size_t>(channels * block))};
    const auto* from = static_cast<const int8_t*>(codes.data());
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t o = 0; o < std::min(block, outputs - index * block); ++o)
        found.codes[static_cast<size_t>(c * block + o)] =
            from[c * channel_stride + (index * block + o) * output_stride];
    return found;
  }
};

/// Writes one block.
class Writer {
 public:
  Writer(const Block& block, const BlockBytes& bytes, int8_t* to) : block_(block), bytes_(bytes), to_(to) {}

  /// Whether there is room for the extra octets.
  bool write() {
    for (int64_t i = 0; i < bytes_.octets; ++i) add(i, order_of(block_, i * kOctet));
    const auto used = static_cast<int32_t>((halves_ + 1) / 2);
    std::memcpy(to_ + bytes_.count(), &used, sizeof(used));
    return used <= bytes_.extras;
  }

 private:
  const Block& block_;
  const BlockBytes& bytes_;
  int8_t* const to_;
  int64_t halves_ = 0;  ///< of extra octets that are in use

  int8_t& code(int64_t octet, size_t place, int64_t output) {
    const auto at = static_cast<int64_t>(place);
    constexpr auto half = static_cast<int64_t>(kHalf);
    return to_[octet * bytes_.octet() + at / half * half * block_.outputs + output * half + at % half];
  }

  void add(int64_t index, const Octet& octet) {
    std::memcpy(to_ + bytes_.orders() + index * kOctet, octet.order.data(), kOctet);
    for (size_t place = 0; place < kOctet; ++place)
      for (int64_t o = 0; o < block_.outputs; ++o)
        code(index, place, o) = block_.channel(index * kOctet + octet.order[place])[o];
    for (size_t i = 0; i < octet.cut.size(); i += kCutsOfHalf) add_half(index, octet, i);
  }

  /// Two cuts from `first` on; each is alone in its pair.
  void add_half(int64_t index, const Octet& octet, size_t first) {
    const int64_t extra = halves_ / 2, half = halves_ % 2;
    ++halves_;
    if (extra >= bytes_.extras) return;  // write() tells
    int8_t* entry = to_ + bytes_.extra() + extra * BlockBytes::kExtra;
    if (half == 0) std::memset(entry, kNoChannel, BlockBytes::kOctetsOfExtra);
    const auto from = static_cast<int32_t>(index);
    std::memcpy(entry + BlockBytes::kOctetsOfExtra + half * static_cast<int64_t>(sizeof(from)), &from, sizeof(from));
    for (size_t i = first; i < std::min(first + kCutsOfHalf, octet.cut.size()); ++i) {
      const size_t place = 2 * octet.cut[i], to = static_cast<size_t>(half) * kHalf + 2 * (i - first);
      entry[half * kOctet + static_cast<int64_t>(to)] = static_cast<int8_t>(octet.order[place]);
      for (int64_t o = 0; o < block_.outputs; ++o) {
        int8_t& code_left = code(index, place, o);
        const int more = excess(code_left, code(index, place + 1, o));
        code_left = static_cast<int8_t>(code_left - more);
        code(bytes_.octets + extra, to, o) = static_cast<int8_t>(more);
      }
    }
  }
};

BlockBytes bytes_of(const Layout& layout, int64_t channels) {
  return {channels / kOctet, layout.pairs - 1, layout.block_of(layout.order[0])};
}

}  // namespace

int64_t stored_channels(const Layout& layout, int64_t channels) { return bytes_of(layout, channels).channels(); }

Extras count_extras(const Tensor& codes, const Layout& layout) {
  const Blocks blocks(codes, layout);
  std::vector<int64_t> counts(static_cast<size_t>(blocks.count()));
  parallel_for(blocks.count(), [&](int64_t i) {
    const Block block = blocks.at(codes, i);
    int64_t halves = 0;
    for (int64_t o = 0; o < blocks.octets(); ++o) halves += halves_of(order_of(block, o * kOctet));
    counts[static_cast<size_t>(i)] = (halves + 1) / 2;
  });
  if (counts.empty()) return {};
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  return {*std::max_element(counts.begin(), counts.end()), sum / static_cast<double>(counts.size())};
}

std::optional<Tensor> try_pair_codes(const Tensor& codes, const Layout& layout) {
  const Blocks blocks(codes, layout);
  const BlockBytes bytes = bytes_of(layout, blocks.channels);
  Tensor out(codes.dtype(), Shape(layout.physical_extents(codes.type().shape)).sizes());
  auto* to = static_cast<int8_t*>(out.mutable_data());
  const int64_t stride = bytes.channels() * bytes.outputs;
  std::atomic<bool> fits = true;
  parallel_for(blocks.count(), [&](int64_t i) {
    const Block block = blocks.at(codes, i);
    if (!Writer(block, bytes, to + i * stride).write()) fits = false;
  });
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

Tensor pair_codes(const Tensor& codes, const Layout& layout) {
  std::optional<Tensor> made = try_pair_codes(codes, layout);
  OPFUSE_CHECK(made, "extra octets beyond {}", layout.pairs - 1);
  return *std::move(made);
}

}  // namespace opfuse::paired
