// What `opfuse quantize` prints.
#pragma once

#include <optional>

#include "quantize/agreement.hpp"
#include "quantize/quantize_graph.hpp"
#include "quantize/search.hpp"
#include "quantize_flags.hpp"

namespace opfuse::cli {

/// Points, pairs, and what stays in float with the reason; `all`: every tensor.
void print_placement(const quantization::QuantizedModel& made, const quantization::QuantizeOptions& options, bool all);
void print_quantized(const quantization::QuantizedModel& made, const quantization::QuantizeOptions& options,
                     const std::optional<quantization::Agreement>& agreement, const QuantizeFlags& flags);
/// The frontier, the chosen point, what stays in float for it.
void print_search(const quantization::Search& search, const std::string& metric);
/// Outputs, worst samples, where agreement is lost; `all`: every layer.
void print_agreement(const quantization::Agreement& agreement, double lost_below, bool all);

/// Below this SQNR a layer counts as lost, unless told otherwise.
inline constexpr double kLostBelow = 20;

}  // namespace opfuse::cli
