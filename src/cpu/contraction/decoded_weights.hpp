// Products with weights that lie as codes in words (kernel/coded_weights.hpp). Of few rows they are decoded in
// registers, so that a step reads the codes' bytes alone; for many rows a part decodes a block once into scratch, and
// the ordinary product goes over it. An open number of rows decides when the kernel runs.
//
// Sums of codes without byte products (codes.hpp) have their blocks widened to i16 in the same way.
//
//   words, scales, zero points    [N/block][rows][block]        each block of columns is one stream
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"
#include "cpu/contraction/operand_fit.hpp"

namespace opfuse {

/// ContractionSchedule::decode.
enum class Decode : int64_t { none, in_registers, into_scratch, by_rows };

/// Rows that are multiplied with codes in registers; for more, blocks are decoded into scratch.
int64_t rows_in_registers(const TargetInfo& target);

Decode decode_of(const Stage& stage, const ContractionView& view, const TargetInfo& target);

/// Rows of the product, a known number or not.
Dim rows_of_product(const Stage& stage, const ContractionView& view);

/// Why a region has no kernel that decodes its weights, were its operands laid out as it wishes.
std::optional<std::string> no_decoding_kernel(const Region& region, const TargetInfo& target);

void wish_decoded(const Region& region, const ContractionView& view, const TargetInfo& target, LayoutWish& wish);

/// None: the operands do not lie so, or data are not read word by word.
std::optional<OperandFit> fit_decoded(const Region& region, const ContractionView& view,
                                      const std::vector<ParamLayout>& layouts, const TargetInfo& target);

}  // namespace opfuse
