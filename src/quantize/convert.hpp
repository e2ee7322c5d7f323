// Other files than those with pairs: 16-bit floats, or codes for weights alone; for the APIs, as `--to` of the command
// line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "quantize/code_weights.hpp"
#include "quantize/narrow_floats.hpp"
#include "quantize/observed_model.hpp"
#include "quantize/samples.hpp"

namespace opfuse::quantization {

struct ConvertChoice {
  std::string to;                       ///< f16, bf16, int8-weights, int4-weights
  std::optional<int64_t> block;         ///< of codes; that of the type otherwise
  std::vector<std::string> skip, only;  ///< products, for codes
  std::optional<int64_t> min_linear;    ///< the same
  int64_t compare_samples = 8;          ///< to measure agreement on; 0: it is not measured
};

struct ConvertedModel {
  Graph graph;
  nlohmann::ordered_json report;  ///< of opfuse.convert/1 or opfuse.code-weights/1, the schema included
  std::vector<std::string> warnings;
};

/// `data` say which errors of weights count (null: alike); `judging` judges (null: nothing does). E::bad_option.
ConvertedModel convert_model(const Graph& model, const ConvertChoice& choice, const Samples* data,
                             const Samples* judging, const RunOptions& run);

/// Fields of the reports (docs/json.md) but for schema, model and files.
nlohmann::ordered_json converted_json(const NarrowedModel& made);
nlohmann::ordered_json coded_json(const CodedModel& made, int64_t block);

}  // namespace opfuse::quantization
