// Statistics of the tensors that get pairs, from samples that are read one after another.
#pragma once

#include <string>
#include <vector>

#include "quantize/observed_model.hpp"
#include "quantize/placement.hpp"
#include "quantize/samples.hpp"
#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

struct Calibration {
  std::vector<TensorStatistics> tensors;  ///< in the placement's order
  std::string model;                      ///< structural hash of the graph
  std::string identity;                   ///< of the samples
  size_t samples = 0;                     ///< that were taken
  bool done = false;                      ///< the last sample was taken
  size_t taken_up = 0;                    ///< samples that a scales file had already
};

struct CalibrateOptions {
  bool histograms = true;
  bool channels = false;              ///< statistics of channels, for bias correction and equalisation
  std::string scales_file;            ///< what was found is kept here and taken up again; empty: nowhere
  double seconds_between_files = 30;  ///< while samples are taken
  RunOptions run;
};

/// `graph`: where the placement's tensors are, by name. E::bad_binding: none, NaN or infinities, or other samples than
/// the scales file's.
Calibration calibrate(const Graph& graph, const Placement& placement, const Samples& samples,
                      const CalibrateOptions& options);

}  // namespace opfuse::quantization
