// Which modules stay in floating point so that a metric holds: sensitivity of each, then a frontier to pick from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quantize/quantize_graph.hpp"

namespace opfuse::quantization {

/// A module quantised alone.
struct Sensitivity {
  std::string module;
  double sqnr = 0;           ///< of the outputs, dB
  double multiply_adds = 0;  ///< per sample; open extents count 1
};

struct FrontierPoint {
  size_t left = 0;   ///< so many modules stay in float
  double share = 0;  ///< of the model's multiply-adds that are in codes
  double metric = 0;
  double drop = 0;       ///< of the float model's metric
  double predicted = 0;  ///< ms of one core, as opfuse would run it here
};

/// A module that was left in float, in codes again.
struct Returned {
  std::string module;
  double metric = 0, drop = 0;
  bool held = false;  ///< else it stays in float
};

struct Search {
  std::vector<Sensitivity> order;       ///< by noise per multiply-add, the first to stay in float first
  std::vector<FrontierPoint> frontier;  ///< from nothing left on, until the drop holds; then each return that held
  std::vector<Returned> returned;
  std::vector<Sensitivity> left;  ///< in float in the chosen model
  size_t chosen = 0;              ///< index into frontier
  double predicted_float = 0;     ///< as FrontierPoint::predicted
};

/// Metric of a quantised model, and of the float model.
using MetricOf = std::function<std::pair<double, double>(const QuantizedModel&)>;

/// `made`: all modules in codes; becomes the chosen model. Ranges stay: nothing is calibrated again. The first `probes`
/// samples measure sensitivity. Factors of equalised channels stay where they are. E::bad_option when no choice holds.
Search search_modules(const Graph& model, const Samples& samples, const QuantizeOptions& options, double most_drop,
                      size_t probes, const MetricOf& metric, QuantizedModel& made);

}  // namespace opfuse::quantization
