// How much of a model's multiplying is done with codes: what they save follows from it.
#pragma once

#include "quantize/placement.hpp"

namespace opfuse::quantization {

/// Per sample; open extents count 1.
double multiply_adds(const Node& node);

struct MultiplyAdds {
  double codes = 0, all = 0;  ///< of convolutions, matrix products and recurrent cells
  double share() const { return all > 0 ? codes / all : 0; }
};

/// `reference`: what the placement's ids are of. Products that the model brings quantised count too.
MultiplyAdds multiply_adds_in_codes(const Graph& reference, const Placement& placement);

}  // namespace opfuse::quantization
