// A row of floats as whole numbers of three bytes (cpu/emit/contraction/digits.cpp), which products of bytes multiply
// with weights that lie as codes.
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"
#include "kernel/coded_weights.hpp"
#include "kernel/spec.hpp"
#include "kernel/views.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Of a schedule: ContractionSchedule::digits.
inline constexpr std::string_view kDigits = "digits";

/// Rows whose data share an exponent, of a block of rows with one scale; 0: none.
int64_t chunk_of_digits(const CodedWeights& coded);
inline constexpr int64_t kLongestChunk = 64;

/// The zero point that sums of digits have taken off already: that of all, or the code in the middle.
int64_t common_zero(const CodedWeights& coded);

/// A row whose elements are neighbours, alone or where the run says so, on a target that sums products of bytes as they
/// lie.
bool may_multiply_digits(const Stage& stage, const ContractionView& view, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target);

}  // namespace opfuse
