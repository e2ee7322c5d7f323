// Samples from a folder of pictures, one a file, in the order of their names.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/sample_files.hpp"

namespace opfuse::quantization {

/// For a model with one input that is an image; one picture is in memory at a time. E::bad_binding: another model,
/// sizes that stay open, normalisation that does not fit.
Samples samples_from_pictures(std::vector<std::string> paths, const Graph& interface, const SampleFileOptions& options);

}  // namespace opfuse::quantization
