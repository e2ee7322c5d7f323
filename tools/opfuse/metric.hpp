// One number for how good a model is on samples, taken from both models by the same runner.
#pragma once

#include <string>

#include "quantize/agreement.hpp"

namespace opfuse::cli {

struct Metric {
  std::string name;                   ///< "sqnr", "cosine", "top1", or the command
  double of_float = 0, of_codes = 0;  ///< of a measure against the float model: of_float is what equal models have
};

/// `name` is sqnr (dB), cosine or top1 (share of rows): of the first output, from `agreement`. Anything else is a
/// command: both models run on all samples, their outputs are written as FOLDER/000000.npz ... and the command is
/// called with the folder; the last line it prints is the number. E::bad_option when it fails or prints none.
Metric measure_metric(const std::string& name, const Graph& reference, const Graph& quantised,
                      const quantization::Samples& samples, const quantization::Agreement& agreement,
                      const quantization::RunOptions& options);

}  // namespace opfuse::cli
