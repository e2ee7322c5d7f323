// Room for extra octets grows in steps, so that layers of one shape share a kernel: a block takes no more time for room
// that it does not use.
#include "cpu/contraction/paired_weights.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "tensor/paired_codes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kSteps = 64;  ///< of as many extra octets as a block has others

}  // namespace

PairedWeights pair_weights(const ContractionView& view, int64_t outputs, int64_t depth, const Tensor& codes,
                           const TargetInfo& target) {
  const int64_t block = tile_of_pairs(outputs, target).vectors * view.types.lanes(target);
  const int64_t octets = depth / paired::kOctet, step = std::max<int64_t>(1, octets / kSteps);
  PairedWeights weights{code_weights(view, static_cast<size_t>(codes.rank()), block, paired::kOctet)};
  const paired::Extras extras = paired::count_extras(codes, weights.layout);
  weights.layout.pairs = 1 + ceil_of(extras.most, step) * step;
  weights.extras = extras.mean / static_cast<double>(octets);
  return weights;
}

}  // namespace opfuse
