// Samples to calibrate with, one after another: never all in memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "tensor/tensor.hpp"

namespace opfuse::quantization {

struct Samples {
  /// One array per graph input, in order, of sample `index`; nothing behind the last one. Read twice, in order.
  std::function<std::optional<std::vector<Tensor>>(size_t index)> read;
  std::function<std::string(size_t index)> name;   ///< for messages; empty: "sample 3"
  size_t count = 0;                                ///< 0: known when the last one was read
  std::string identity;                            ///< what they are, for resuming; empty: not known
  std::function<size_t(size_t index)> original{};  ///< number of the sample where some of more were taken; empty: index

  std::string name_of(size_t index) const;
  size_t number_of(size_t index) const;  ///< as whoever gave the samples counts them
};

/// At most so many of them, evenly spread where their number is known.
Samples some_of(const Samples& samples, size_t most);

/// A float input of sample `index` that has NaN or an infinity is E::bad_binding with the sample's name.
void require_finite(const Graph& graph, const Samples& samples, size_t index, const std::vector<Tensor>& sample);

}  // namespace opfuse::quantization
