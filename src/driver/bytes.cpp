// The reader and the writer of ONNX, on memory.
#include "opfuse/bytes.hpp"

#include "driver/compilation_options.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"

namespace opfuse {

Model load_bytes(std::string bytes, const LoadOptions& options, const std::string& folder) {
  ReadOptions with;
  with.fixed_inputs = copies_of(options.fixed_inputs);
  with.limits = limits_with(options.limits);
  with.operators = options.operators;
  return Model::from_graph(read_onnx_bytes(std::move(bytes), folder, with));
}

std::string save_bytes(const Model& model, bool flatten) {
  return write_onnx_bytes(model.graph(), {.functions = !flatten});
}

}  // namespace opfuse
