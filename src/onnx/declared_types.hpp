// Types that a file declares for values beside those that follow from its nodes.
#pragma once

#include <optional>

#include "onnx/wire.hpp"
#include "tensor/tensor.hpp"

namespace opfuse::onnx {

/// What contradicts: the declared element type (or a declared sequence) and the extents.
struct Contradiction {
  std::string declared, found;
  bool of_shape = false;  ///< element types agree
};

/// Nullopt where the declaration may hold: names of dimensions and what is not known agree with everything.
std::optional<Contradiction> contradiction(const ValueInfo& declared, const TensorType& found);

}  // namespace opfuse::onnx
