// The engines of the conformance suite.
#include "conformance/engines.hpp"

#include "interp/interpreter.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "proof/compare.hpp"

namespace opfuse::conformance {
namespace {

using Tensors = std::vector<Tensor>;

// The expected outputs were computed in the declared types, and so do we: rounding to integers shows the difference.
Tensors interpreted(const Graph& g, const Tensors& inputs) {
  return interpret(g, inputs, {.precision = Precision::typed});
}

Tensors written_and_read_back(const Graph& g, const Tensors& inputs) {
  return interpreted(read_onnx_bytes(write_onnx_bytes(g)), inputs);
}

Tensors compiled(const Model& model, const Tensors& inputs, bool fused) {
  CompileOptions options;
  options.cache = false;
  options.fused = fused;
  for (const auto& [symbol, value] : bind_symbols(model.graph(), inputs)) options.dims[symbol] = value;
  return run_executable(compile(model, Target::host(), options), inputs);
}

Tensors compiled_unfused(const Graph& g, const Tensors& inputs) {
  return compiled(Model::from_graph(g.clone()), inputs, false);
}

Tensors compiled_fused(const Graph& g, const Tensors& inputs) {
  const Model model = Model::from_graph(g.clone());
  return compiled(apply(model, plan(model, Target::host())).model, inputs, true);
}

}  // namespace

const std::vector<Engine>& engines() {
  static const std::vector<Engine> list = {{"Interpreted", interpreted},
                                           {"WrittenAndReadBack", written_and_read_back},
                                           {"CompiledUnfused", compiled_unfused},
                                           {"CompiledFused", compiled_fused}};
  return list;
}

}  // namespace opfuse::conformance
