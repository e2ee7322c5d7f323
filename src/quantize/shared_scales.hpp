// Scales that several tensors share, so that nothing between them is quantised again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/placement.hpp"
#include "quantize/ranges.hpp"

namespace opfuse::quantization {

enum class Sharing {
  off,
  moves,  ///< where elements are only moved: concats, reshapes, transposes, slices, max-pools; costs what a range is
          ///< wider
  adds,   ///< also a residual addition's skip operand and result
};
/// "off", "moves", "adds". E::bad_option.
Sharing parse_sharing(std::string_view text);

/// Placed tensors, by index, whose codes are the same.
struct SharedScale {
  std::vector<size_t> tensors;
  bool adds = false;  ///< an addition links some of them
  std::vector<double>
      cost;  ///< by tensor: what its own codes had more, dB of its rounding alone; 0 before codes are chosen
  double most() const;
};

/// Groups of placed tensors of `graph`, ids as in `placement`. A concat whose result has a pair that all its readers
/// share reads codes too: its other operands get pairs, and it becomes a reader of all. That changes no value.
std::vector<SharedScale> link_scales(const Graph& graph, Placement& placement, Sharing sharing);

/// One choice for each group, of least error relative to each tensor's energy; costs are filled in. A tensor that would
/// lose more than 15 dB by it leaves its group, and keeps its own.
void share_codes(const Placement& placement, const std::vector<TensorStatistics>& statistics,
                 const MethodChoice& method, std::vector<SharedScale>& groups, std::vector<Codes>& codes);

}  // namespace opfuse::quantization
