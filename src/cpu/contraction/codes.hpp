// Sums of codes (u8 data, or i8 data + 128, constant i8 weights, i32 sums): one instruction adds the products of `unit`
// neighbouring channels to each lane, so these lie side by side in a word.
//
//   images     [N][C/step][H][W][step]      rows     [..][K]
//   weights    [O/block][C/step][taps][step/unit][block][unit]
//
// A step has the channels of a vector's lanes; of images that matrices multiply, those of a register's row
// (matrix.hpp); of images with few channels, those.
#pragma once

#include <cstdint>
#include <optional>

#include "cpu/contraction/register_tile.hpp"
#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

/// Of a word's codes: flipping them adds 128 to each i8, which is u8 then.
inline constexpr uint32_t kSignBits = 0x80808080;
inline constexpr int64_t kWordBytes = 4;

/// A block of an image with so few channels (colours), without matrices: a word of codes, two of bf16.
inline constexpr int64_t kFewChannels = 4;

/// How constant weights lie; `block`: output channels of a register tile.
Layout code_weights(const ContractionView& view, size_t rank, int64_t block, int64_t step);

struct CodesFit {
  int64_t vectors = 1;  ///< of output channels that a block of the weights holds
  int64_t step = 1;     ///< input channels between two taps
  bool joined = false;  ///< a product takes all taps of a row (data_copies.hpp)
  bool paired = false;  ///< codes lie in pairs that fit i16 (tensor/paired_codes.hpp)
};
/// None: the operands do not lie as above, or the sum is another.
std::optional<CodesFit> fit_codes(const Region& region, const ContractionView& view,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target);

/// The target adds four products at once in i32 (else two in i16 words, after widening).
bool has_byte_products(const TargetInfo& target);

/// Products of codes in pairs: without taps, of whole octets, on a target without byte products but with pmaddubsw.
bool may_pair_codes(const Stage& stage, const ContractionView& view, const TargetInfo& target);

/// The register tile of such products: four pixels are what a vector of octets has.
RegisterTile tile_of_pairs(int64_t channels, const TargetInfo& target);

/// Registers that products take besides sums, weights and data.
int64_t registers_of_products(const ElementTypes& types, int64_t vectors, const TargetInfo& target);

/// The register tile of products without them: an operation and an addition for each of two pairs of channels, three
/// for a vector of weights, and what a pixel's data take to be widened.
RegisterTile tile_of_words(const TileProblem& problem, const TargetInfo& target);

/// Operations of one step of such a tile for each of its sums.
double word_operations(const RegisterTile& tile);

/// A product of codes is the region's first stage.
bool sums_codes(const Region& region);

/// It is one of bf16 numbers, or sums of products are stored as such: both round by the same instructions.
bool rounds_sums_to_halves(const Region& region);

/// Features that the region's kernel may use: those besides the target's own only where it sums
/// codes or products of bf16.
std::vector<std::string> needed_features(const Region& region, const Schedule& schedule, const TargetInfo& target);

/// The schedule of a region whose operands lie as its kernel wishes, and its skeleton.
Schedule schedule_as_wished(const Region& region, const TargetInfo& target);
std::string skeleton_as_wished(const Region& region, const TargetInfo& target);

/// Why a region that sums codes has no kernel of register tiles, were its operands laid out as its kernel wishes.
std::optional<std::string> no_codes_kernel(const Region& region, const TargetInfo& target);

}  // namespace opfuse
