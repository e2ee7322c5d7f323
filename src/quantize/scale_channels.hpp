// Each channel of an observed array by a factor: what equalisation makes of a tensor, without running that model.
#pragma once

#include <optional>
#include <vector>

#include "opfuse/array_view.hpp"
#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

/// In place, of f32. `axis`: of the channels, in the array without blocks.
void scale_channels(const ArrayView& array, const std::optional<ChannelBlocks>& blocks, size_t axis,
                    const std::vector<double>& factors);

}  // namespace opfuse::quantization
