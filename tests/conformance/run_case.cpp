// Reading a case as its data wants it, running it, comparing with the suite's own tolerances.
#include "conformance/run_case.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "onnx/read.hpp"

namespace opfuse::conformance {
namespace {

std::string difference_of(double got, double want, double rtol, double atol) {
  if (std::isnan(want) || std::isinf(want))
    return got == want || (std::isnan(got) && std::isnan(want)) ? "" : fmt::format("{} for {}", got, want);
  return std::abs(got - want) <= atol + rtol * std::abs(want) ? "" : fmt::format("{:.9g} for {:.9g}", got, want);
}

/// The case's tolerance; of bfloat16 at least two units in the last place, as ONNX's runner has it.
double rtol_of(const Case& c, DType dtype) { return std::max(c.rtol, dtype == DType::bf16 ? 0x1p-6 : 0); }

std::string problem_of(const Tensor& got, const Tensor& want, const Case& c) {
  if (got.type() != want.type()) return fmt::format("{} for {}", got.type().text(), want.type().text());
  const double rtol = rtol_of(c, want.dtype());
  for (int64_t i = 0; i < want.elements(); ++i) {
    std::string problem;
    if (is_float(want.dtype()))
      problem = difference_of(got.real(i), want.real(i), rtol, c.atol);
    else if (got.integer(i) != want.integer(i))
      problem = fmt::format("{} for {}", got.integer(i), want.integer(i));
    if (!problem.empty()) return fmt::format("element {}: {}", i, problem);
  }
  return {};
}

/// The model when all of it is understood and the types of its results are known, else nothing.
std::optional<Graph> read_if_known(const Case& c, const ReadOptions& options) {
  try {
    Graph graph = read_onnx(c.folder + "/model.onnx", options);
    for (const Value* output : graph.outputs())
      if (output->type.dtype == DType::unknown || !output->type.shape.ranked) return std::nullopt;
    for (const Node* node : graph.nodes())
      if (node->is("opaque")) return std::nullopt;
    return graph;
  } catch (const Error& error) {
    if (error.diagnostic().name != "unknown_dimension") throw;
    return std::nullopt;
  }
}

/// Many cases pass shapes and axes as graph inputs. Where the result's shape depends on their values, all inputs but
/// the first are read as constants, and when that is not enough the first one too.
Graph read_case(const Case& c, DataSet& set) {
  const std::vector<std::string> names = input_names(c);
  for (size_t free = set.inputs.size();; free = std::min<size_t>(free - 1, 1)) {
    ReadOptions options;
    for (size_t i = free; i < names.size() && i < set.inputs.size(); ++i)
      options.fixed_inputs[names[i]] = set.inputs[i];
    auto graph = read_if_known(c, options);
    if (!graph && free > 0) continue;
    set.inputs.resize(free);
    return graph ? std::move(*graph) : read_onnx(c.folder + "/model.onnx", options);
  }
}

/// The packaged data holds bfloat16 values as 16 bit integers.
Tensor as_declared(const Tensor& tensor, DType declared) {
  if (declared != DType::bf16 || tensor.dtype() != DType::u16) return tensor;
  return Tensor::wrap(DType::bf16, tensor.sizes(), tensor.data(), std::make_shared<Tensor>(tensor));
}

/// CastLike's second operand, of which only the type matters, has one element where the model declares more.
Tensor as_input(const Tensor& tensor, const TensorType& declared) {
  const bool shortened = tensor.elements() == 1 && declared.shape.is_static() && declared.shape.elements() != 1;
  return shortened ? Tensor(declared.dtype, declared.shape.sizes()) : as_declared(tensor, declared.dtype);
}

/// What the interpreter would say, before its inputs are looked at (they may be strings).
void refuse_opaque_nodes(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->is("opaque"))
      throw fail(E::unsupported_op, "{}", static_cast<const OpaqueAttrs*>(node->attrs())->reason).node(node->name());
}

/// Data of strings or sequences cannot be read; the model is refused, not the data.
void refuse_unknown_values(const Case& c) {
  try {
    refuse_opaque_nodes(read_onnx(c.folder + "/model.onnx"));
  } catch (const Error& error) {
    if (error.diagnostic().name != "unknown_dimension") throw;
  }
}

std::vector<DataSet> readable_data(const Case& c) {
  try {
    return data_sets(c);
  } catch (const Error&) {
    refuse_unknown_values(c);
    throw;
  }
}

}  // namespace

bool is_refusal(const Error& error) { return error.diagnostic().code.starts_with("E03"); }

std::string run_case(const Case& c, const Engine& engine) {
  for (DataSet& set : readable_data(c)) {
    const Graph graph = read_case(c, set);
    verify(graph);
    refuse_opaque_nodes(graph);
    for (size_t i = 0; i < set.inputs.size(); ++i) set.inputs[i] = as_input(set.inputs[i], graph.inputs().at(i)->type);
    const std::vector<Tensor> outputs = engine.run(graph, set.inputs);
    if (outputs.size() != set.outputs.size())
      return fmt::format("{}: {} outputs for {}", set.name, outputs.size(), set.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string problem = problem_of(outputs[i], as_declared(set.outputs[i], outputs[i].dtype()), c);
      if (!problem.empty()) return fmt::format("{} output {}: {}", set.name, i, problem);
    }
  }
  return {};
}

}  // namespace opfuse::conformance
