// Statistics of the tensors that get pairs, from samples that are read one after another.
#pragma once

#include <optional>
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

/// What a tensor's statistics are of.
struct CalibratedTensor {
  std::string value;                        ///< of the observed model
  size_t axis = 0;                          ///< of the channels that have factors
  std::vector<double> factors{};            ///< by channel; empty: as it is
  std::optional<TensorStatistics> known{};  ///< taken already
};

/// By tensor of the placement, of what `model` makes of the samples; `graph`: the scales file is of this one.
/// E::bad_binding: no sample, NaN or infinities, or other samples than the scales file's.
Calibration calibrate(const Graph& graph, const Placement& placement, const std::vector<CalibratedTensor>& tensors,
                      ObservedModel& model, const Samples& samples, const CalibrateOptions& options);

/// The same of the placement's own tensors, each as it is.
std::vector<CalibratedTensor> calibrated_tensors(const Placement& placement);
std::vector<std::string> names_of(const Placement& placement);

}  // namespace opfuse::quantization
