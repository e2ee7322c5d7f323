// A float graph to one with Q/DQ pairs: plan, placement, calibration, codes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "opfuse/opfuse.hpp"
#include "quantize/calibrate.hpp"
#include "quantize/data_codes.hpp"
#include "quantize/equalize.hpp"
#include "quantize/insert_pairs.hpp"
#include "quantize/placement.hpp"
#include "quantize/ranges.hpp"
#include "quantize/shared_scales.hpp"

namespace opfuse::quantization {

struct QuantizeOptions {
  std::string compiler = "cpu";          ///< as rules_of() takes it
  std::optional<DataCodes> activations;  ///< instead of the compiler's
  MethodChoice method;
  bool bias_correction = false;
  Sharing sharing = Sharing::moves;  ///< of scales
  EqualizeChoice equalize;
  std::optional<std::vector<std::string>> presets;  ///< kept in float; none: the compiler's
  std::vector<std::string> skip, only;              ///< as in PlacementRequest
  std::optional<int64_t> min_linear;                ///< the compiler's otherwise
  bool add_missing = false;
  SymbolValues dims;
  PlanRequest plan;
  std::shared_ptr<const FusionPlan> given_plan;  ///< instead of a new one
  std::string scales_file;
  double seconds_between_files = 30;  ///< while samples are taken
  bool window_sums = true;            ///< weights of a window are rounded so that its sum keeps
  std::optional<bool> int16_pairs;    ///< of weights, instead of the compiler's
  RunOptions run;
};

/// What a model is called by before channels are equalised: then values get new names, and ids stay.
struct NamesBefore {
  std::vector<std::string> tensors;    ///< by placed tensor
  std::map<int, std::string> outputs;  ///< of nodes of `reference`, by id
};

struct QuantizedModel {
  Graph graph;      ///< with pairs
  Graph reference;  ///< the same in float: values have the same names
  FusionPlan plan;
  Placement placement;
  std::vector<SharedScale> shared;
  std::vector<EqualizedTensor> equalized;
  NamesBefore before;
  std::vector<Codes> codes;  ///< by placed tensor
  Calibration calibration;
  std::vector<QuantizedProduct> products;
  std::vector<std::string> warnings;  ///< what a user should look at: constants, dead channels, tensors never seen
};

/// What places are chosen in: the same whatever options skip or keep in float.
struct PreparedModel {
  Graph graph;
  FusionPlan plan;
};
PreparedModel prepare_model(const Graph& model, const QuantizeOptions& options);

/// The first stages alone: plan and placement, no codes.
QuantizedModel place_graph(const PreparedModel& prepared, const QuantizeOptions& options);
QuantizedModel place_graph(const Graph& model, const QuantizeOptions& options);

/// The graph with pairs and what became of products, from places, codes and statistics.
void write_codes(QuantizedModel& made, const QuantizeOptions& options);

/// Errors: those of planning and compiling, E::bad_binding, E::bad_option.
QuantizedModel quantize_graph(const Graph& model, const Samples& samples, const QuantizeOptions& options);

}  // namespace opfuse::quantization
