// Codes of i8 in pairs of channels that no u8 data take out of i16, so that pairs may be added up there (pmaddubsw):
//
//   255 (w0 + w1) <= 32767 where both are positive, >= -32768 where both are negative: |w0 + w1| <= 128
//
// Which channels are neighbours is free. Within eight of them (an octet) a block of outputs has an order in which no
// pair of any output is larger, nearly always; where it has none, what is too much of a pair is cut off and multiplied
// once more, in an extra octet of two halves, each of which takes two cut channels of one octet:
//
//   x0 w0 + x1 w1  =  x0 (w0 - b) + x1 w1  +  x0 b
//
// A block of outputs, in bytes, K channels:
//   [K/8 + extras] [2 halves][outputs][4]   codes
//   [K/8]          [8]                      the channel of an octet that comes first, second ..
//   [8]                                     i32: extra octets that are in use
//   [extras]       [2 halves][8]            channels of two octets, kNoChannel: 0;  [2] i32: which octets
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/layout.hpp"

namespace opfuse::paired {

inline constexpr int64_t kOctet = 8;
inline constexpr uint8_t kNoChannel = 0x80;

/// Where the parts of a block lie.
struct BlockBytes {
  int64_t octets = 0, extras = 0, outputs = 0;

  int64_t octet() const { return kOctet * outputs; }
  int64_t orders() const { return (octets + extras) * octet(); }
  int64_t count() const { return orders() + octets * kOctet; }
  int64_t extra() const { return count() + kOctet; }
  static constexpr int64_t kExtra = 24, kOctetsOfExtra = 16;
  int64_t end() const { return extra() + extras * kExtra; }
  /// Channels whose plain codes would take the block's bytes.
  int64_t channels() const { return (end() + octet() - 1) / octet() * kOctet; }
};

/// Octets that a block of outputs multiplies once more: of the block with the most, and on average.
struct Extras {
  int64_t most = 0;
  double mean = 0;
};
/// `layout`: as codes that are not in pairs lie (cpu/contraction/codes.hpp), outputs and channels first in its order.
Extras count_extras(const Tensor& codes, const Layout& layout);

/// `layout.pairs` is more than count_extras(..).most.
Tensor pair_codes(const Tensor& codes, const Layout& layout);
/// None: it is not.
std::optional<Tensor> try_pair_codes(const Tensor& codes, const Layout& layout);

/// Channels of a layout in pairs whose weights have `channels`.
int64_t stored_channels(const Layout& layout, int64_t channels);

}  // namespace opfuse::paired
