// Random inputs that a model accepts and that exercise it: images have structure, indices stay inside their tables,
// masks are masks. The same seed gives the same inputs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

struct RandomInputOptions {
  uint64_t seed = 0;
  SymbolValues symbols = {};
  /// Per input name: uniform in [first, second] (integers: both ends included) instead of what is chosen below.
  std::map<std::string, std::pair<double, double>> ranges = {};
};

/// One tensor per graph input, in its declared dtype:
///   floats of rank 4   per image and channel: a few low spatial frequencies, a little noise, random contrast
///   other floats       normal, mean 0, deviation 1
///   booleans, masks    0 or 1; along the last axis a run of ones, then zeros, as padding masks are
///   integers           within every table they index (Gather and its relatives), else 0..9; 8 bit: the whole range
/// E::missing_dimension names a symbol without a value.
std::vector<Tensor> random_inputs(const Graph& graph, const RandomInputOptions& options = {});

/// The number of rows of the smallest table that `value` indexes, directly or through operators that keep values
/// (casts, reshapes, splits); nothing when it indexes none with a known size.
std::optional<int64_t> indexed_rows(const Value& value, const SymbolValues& symbols);

/// Small deterministic generator (splitmix64), seeded by number and name.
class Random {
 public:
  Random(uint64_t seed, std::string_view name);
  uint64_t bits();
  double uniform();                            ///< [0, 1)
  double normal();                             ///< mean 0, deviation 1
  int64_t between(int64_t low, int64_t high);  ///< both included

 private:
  uint64_t state_;
};

}  // namespace opfuse
