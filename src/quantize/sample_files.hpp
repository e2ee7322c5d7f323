// Samples from files: an .npz or .npy that holds many, or a folder of such files or of pictures, in the order of their
// names.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/picture_array.hpp"
#include "quantize/samples.hpp"

namespace opfuse::quantization {

struct SampleFileOptions {
  size_t most = 0;    ///< this many, evenly spread over what there is; 0: all
  SymbolValues dims;  ///< sizes of open dimensions, the batch of a sample among them; an open first dimension is 1
  PictureOptions pictures;  ///< what becomes of JPEG and PNG files
};

/// An array of an input's rank is cut along its first axis into samples of the model's batch; one axis more counts
/// samples, one less is a sample of batch 1. Numbers are widened (f16, f64 -> f32, i32 -> i64), never converted
/// otherwise. Pictures: quantize/picture_samples. `notes` receives what was passed over. E::file_not_found,
/// E::bad_file, E::bad_binding, E::bad_option.
Samples samples_from_files(const std::string& path, const Graph& interface, const SampleFileOptions& options,
                           std::vector<std::string>* notes);

/// `count` samples of random numbers as `opfuse run` draws them: for speed and tests, not for scales to deploy.
Samples random_samples(const Graph& interface, size_t count, uint64_t seed, const SymbolValues& dims);

}  // namespace opfuse::quantization
