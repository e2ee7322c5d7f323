// What a model's results may differ by: its own sensitivity, measured by running it with every value a little off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::fuzz {

struct Expected {
  std::vector<Tensor> outputs;     ///< exact, reals in double
  std::vector<Tensor> tolerances;  ///< one per element, in double; infinite where the model leaps or is not finite
};

struct SensitivityOptions {
  int samples = 3;
  double scale = 1;  ///< of the noise
  uint64_t seed = 1;
};

/// Runs the graph in double, then again `samples` times with relative noise on all values: some rounding steps of the
/// value's type. A result may be off by a multiple of what that changes.
Expected expected_of(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& symbols,
                     const SensitivityOptions& options = {});

/// Tolerances of 0; nothing when a value needs more bits than sums have room for, as at sizes that the graph was not
/// drawn for.
std::optional<Expected> exactly(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& symbols);

/// Empty when `got` is within the tolerances, else where it is not and by how much.
std::string judge(const Expected& expected, const std::vector<Tensor>& got, const Graph& graph);

}  // namespace opfuse::fuzz
