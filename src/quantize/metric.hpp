// One number for how good a model is on samples, taken from both models by the same runner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "opfuse/array_view.hpp"
#include "quantize/agreement.hpp"

namespace opfuse::quantization {

struct Metric {
  std::string name;                   ///< "sqnr", "cosine", "top1", the command, or "score"
  double of_float = 0, of_codes = 0;  ///< of a measure against the float model: of_float is what equal models have
};

/// `name` is sqnr (dB), cosine or top1 (share of rows): of the first output, from an agreement. Any other is a
/// command: both models run on all samples, their outputs are written as FOLDER/000000.npz ... and the command is
/// called with the folder; the last line it prints is the number. `score`, where there is one, is called with the
/// outputs of each sample instead: the metric is its mean.
struct MetricChoice {
  std::string name;
  std::function<double(size_t sample, const std::map<std::string, ArrayView>& outputs)> score{};
  explicit operator bool() const { return score || !name.empty(); }
  std::string title() const { return score ? "score" : name; }
};

/// `of_float`: known already. E::bad_option when a command fails or prints no number, or a score is none.
Metric measure_metric(const MetricChoice& choice, const Graph& reference, const Graph& quantised,
                      const Samples& samples, const Agreement& agreement, const RunOptions& options,
                      std::optional<double> of_float = {});

}  // namespace opfuse::quantization
