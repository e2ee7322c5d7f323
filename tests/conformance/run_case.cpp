// Reading a case as its data wants it, running it, comparing with the suite's own tolerances.
#include "conformance/run_case.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "onnx/read.hpp"
#include "proof/error_rules.hpp"

namespace opfuse::conformance {
namespace {

/// Expected values that were computed in f32 are off by roundings of the largest one, not by more.
constexpr double kNoise = 16;

bool close(double got, double want, double rtol, double atol) {
  if (std::isnan(want) || std::isinf(want)) return got == want || (std::isnan(got) && std::isnan(want));
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

/// The case's tolerance; of bfloat16 at least two units in the last place, as ONNX's runner has it.
double rtol_of(const Case& c, DType dtype) { return std::max(c.rtol, dtype == DType::bf16 ? 0x1p-6 : 0); }

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.elements(); ++i)
    if (std::isfinite(t.real(i))) most = std::max(most, std::abs(t.real(i)));
  return most;
}

std::string differing_integer(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < want.elements(); ++i)
    if (got.integer(i) != want.integer(i))
      return fmt::format("element {}: {} for {}", i, got.integer(i), want.integer(i));
  return {};
}

bool all_close(const Tensor& got, const Tensor& want, double rtol, double atol) {
  for (int64_t i = 0; i < want.elements(); ++i)
    if (!close(got.real(i), want.real(i), rtol, atol)) return false;
  return true;
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

CaseResult judge_differences(const Tensor& got, const Tensor& want, const Tensor& exact, double rtol, double atol) {
  const double noise = kNoise * unit_of(want.dtype()) * largest(exact);
  CaseResult result;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.real(i), w = want.real(i), x = exact.real(i);
    if (close(g, w, rtol, atol)) continue;
    const double ours = std::abs(g - x), theirs = std::abs(w - x);
    const bool off = close(g, x, rtol, atol) && !close(w, x, rtol, atol) && theirs <= noise;
    if (!off) return {fmt::format("element {}: {:.9g} for {:.9g}", i, g, w)};
    if (result.off.empty())
      result.off =
          fmt::format("element {}: {:.9g} expected, {:.9g} exact; off by {:.2g}, ours by {:.2g}, allowed {:.2g}", i, w,
                      x, theirs, ours, atol + rtol * std::abs(x));
  }
  return result;
}

CaseResult run_case(const Case& c, const Engine& engine) {
  CaseResult all;
  for (DataSet& set : readable_data(c)) {
    const Graph graph = read_case(c, set);
    verify(graph);
    refuse_opaque_nodes(graph);
    for (size_t i = 0; i < set.inputs.size(); ++i) set.inputs[i] = as_input(set.inputs[i], graph.inputs().at(i)->type);
    const std::vector<Tensor> outputs = engine.run(graph, set.inputs);
    if (outputs.size() != set.outputs.size())
      return {fmt::format("{}: {} outputs for {}", set.name, outputs.size(), set.outputs.size())};
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor want = as_declared(set.outputs[i], outputs[i].dtype());
      CaseResult here;
      if (outputs[i].type() != want.type())
        here.wrong = fmt::format("{} for {}", outputs[i].type().text(), want.type().text());
      else if (!is_float(want.dtype()))
        here.wrong = differing_integer(outputs[i], want);
      else if (const double rtol = rtol_of(c, want.dtype()); !all_close(outputs[i], want, rtol, c.atol))
        here = judge_differences(outputs[i], want, interpret(graph, set.inputs).at(i), rtol, c.atol);
      if (!here.wrong.empty()) return {fmt::format("{} output {}: {}", set.name, i, here.wrong)};
      if (all.off.empty() && !here.off.empty()) all.off = fmt::format("{} output {}: {}", set.name, i, here.off);
    }
  }
  return all;
}

}  // namespace opfuse::conformance
