// `compare Q --against M --data PATH`: a quantised model against its float model on samples, layer by layer.
#pragma once

#include <string>

#include "compile_model.hpp"
#include "quantize_flags.hpp"

namespace opfuse::cli {

struct LayerFlags {
  SampleFlags data;
  PictureFlags pictures;
  double least_sqnr = 20;  ///< dB, of each output and each layer
};

void add_layer_flags(FlagSet& app, LayerFlags& flags);
/// Prints the agreement; kCheckFailed where an output is below `least_sqnr`.
int compare_layers(const std::string& quantised, const std::string& against, const LayerFlags& flags,
                   const DimensionFlags& dimensions, const CompileFlags& compile, bool all, bool json);

}  // namespace opfuse::cli
