#include "cpu/input_copy.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/algorithms.hpp"
#include "cpu/generator.hpp"
#include "cpu/memory_rates.hpp"

namespace opfuse {
namespace {

std::vector<ParamLayout> placed(const Region& region, const std::vector<Layout>& layouts) {
  std::vector<ParamLayout> all;
  for (size_t p = 0; p < layouts.size(); ++p)
    all.push_back({layouts[p], dense_strides(layouts[p], region.params[p].type.shape)});
  return all;
}

AlgorithmOptions options_of(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                            int64_t threads) {
  return algorithm_options(region, layouts, choose_schedule(region, layouts, target), target, threads);
}

double fastest(const AlgorithmOptions& options) {
  double least = HUGE_VAL;
  for (const AlgorithmOption& option : options.options) least = std::min(least, option.cycles);
  return least;
}

}  // namespace

bool copy_of_input_pays(const Region& region, size_t data, const std::vector<Layout>& layouts, const TargetInfo& target,
                        int64_t threads) {
  const TensorType& type = region.params[data].type;
  if (!is_convolution(region) || !region.symbols().empty() || type.dtype != DType::f32) return false;
  if (layouts[data].blocks.size() != 1) return false;
  const Block& block = layouts[data].blocks[0];
  if (type.shape[static_cast<size_t>(block.axis)].value() % block.factor != 0) return false;  // lanes of padding
  const AlgorithmOptions copied = options_of(region, placed(region, layouts), target, threads);
  if (copied.options.size() < 2) return false;
  std::vector<Layout> dense = layouts;
  dense[data] = Layout::dense(type.shape.rank());
  const AlgorithmOptions as_given = options_of(region, placed(region, dense), target, threads);
  if (as_given.options.empty()) return false;
  const auto bytes = static_cast<double>(4 * type.shape.elements().value());
  const double copy = 2 * bytes / memory_bytes_per_cycle(target, threads) +
                      bytes / target.kernels.turned_rate / static_cast<double>(threads) +
                      target.kernels.winograd_launch;
  return fastest(copied) + copy < (1 - target.kernels.copy_gain) * fastest(as_given);
}

}  // namespace opfuse
