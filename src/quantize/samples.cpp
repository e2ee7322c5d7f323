// A sample without a name is called by its number.
#include "quantize/samples.hpp"

#include <fmt/format.h>

namespace opfuse::quantization {

std::string Samples::name_of(size_t index) const { return name ? name(index) : fmt::format("sample {}", index); }

}  // namespace opfuse::quantization
