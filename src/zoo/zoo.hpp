// Models built in code: torchvision's topologies under the names PyTorch's exporter gives, with seeded random weights.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/graph.hpp"

namespace opfuse {

struct ZooOptions {
  Dim batch = 1;           ///< may be a symbol
  int64_t resolution = 0;  ///< height and width of the input, tokens of a text; 0: the model's own
  int64_t classes = 0;     ///< 0: the model's own
  double width = 1.0;      ///< scales the channel counts (rounded to multiples of 8); small variants for tests
  uint64_t seed = 0;
  int64_t opset = 17;  ///< 13 or 17: how the exporter spells LayerNorm
};

struct ZooModel {
  std::string_view name;
  std::string_view description;
  Graph (*build)(const ZooOptions&);
};

/// All models, in the order of `opfuse zoo`.
std::span<const ZooModel> zoo_models();

/// E::unknown_name with a did-you-mean; E::bad_option for a resolution or width the model cannot have. Images are
/// "input" -> "output", texts input_ids, attention_mask, token_type_ids -> last_hidden_state, pooler_output (the names
/// are those of the exporters). Weights are drawn so that activations keep their scale through the net, two different
/// inputs give clearly different outputs and hardly any channel is dead (tests/zoo asserts it).
Graph build_zoo(std::string_view name, const ZooOptions& options = {});

}  // namespace opfuse
