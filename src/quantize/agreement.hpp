// How near a quantised model is to its float model: layer by layer where both hold the same tensor, and at the outputs.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/observed_model.hpp"
#include "quantize/samples.hpp"

namespace opfuse::quantization {

/// Sums over elements of a tensor and of its float value.
struct Noise {
  double signal = 0, noise = 0;  ///< sums of squares: of the float value, of the difference
  double sqnr() const;           ///< dB, bounded by kMostSqnr
  void add(const Noise& other);
};
inline constexpr double kMostSqnr = 200;

/// A tensor with a pair.
struct LayerAgreement {
  std::string tensor;
  Noise noise;                          ///< of its codes against the float model, with all that came before
  double before = kMostSqnr;            ///< least SQNR of the tensors it was made from, dB
  int64_t elements = 0, saturated = 0;  ///< float values beyond the codes
  size_t worst_sample = 0;
  double worst_sqnr = kMostSqnr;
  double drop() const { return before - noise.sqnr(); }
};

struct OutputAgreement {
  std::string output;
  Noise noise;
  double cosine = 1;                             ///< mean over samples
  size_t same_top = 0;                           ///< rows whose largest element is the same
  size_t rows = 0;                               ///< along the last axis
  std::vector<std::pair<double, size_t>> worst;  ///< SQNR and sample, the worst first, at most kWorstSamples
};
inline constexpr size_t kWorstSamples = 5;

struct Agreement {
  std::vector<LayerAgreement> layers;  ///< in topological order
  std::vector<OutputAgreement> outputs;
  size_t samples = 0;
  std::vector<std::string> names;  ///< of the samples that are mentioned, by index

  /// The first layer below `sqnr` dB; null: none is.
  const LayerAgreement* first_below(double sqnr) const;
  /// Where most is lost from what it was made from; null without layers.
  const LayerAgreement* largest_drop() const;
};

/// Tensors in front of QuantizeLinear nodes of `quantised` that `reference` has under the same name are compared, and
/// all outputs. E::bad_binding: no sample, or other interfaces.
Agreement measure_agreement(const Graph& reference, const Graph& quantised, const Samples& samples,
                            const RunOptions& options);

/// The outputs alone, with a reference that stays compiled for the next model.
Agreement measure_outputs(ObservedModel& reference, const Graph& quantised, const Samples& samples,
                          const RunOptions& options);

}  // namespace opfuse::quantization
