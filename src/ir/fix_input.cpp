// The metadata of a fixed input is its type and its bytes in hexadecimal: "i64[1]" -> "i64[1] 0200000000000000".
#include "ir/fix_input.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse {

/// The list of inputs is the graph's own.
struct GraphAccess {
  static void remove_input(Graph& graph, Value* input) { std::erase(graph.inputs_, input); }
};

namespace {

constexpr std::string_view kFixed = "onnx:fixed_input:";  ///< + name
constexpr std::string_view kShape = "onnx:shape_input:";  ///< + name

std::string encode(const Tensor& tensor) {
  std::string text = tensor.type().text() + " ";
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  for (size_t i = 0; i < tensor.bytes(); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

Tensor decode(const std::string& text) {
  const size_t space = text.find(' ');
  const TensorType type = parse_type(std::string_view(text).substr(0, space));
  Tensor tensor(type.dtype, type.shape.sizes());
  if (space == std::string::npos || text.size() - space - 1 != 2 * tensor.bytes())
    throw fail(E::bad_text, "the value of a fixed input is not a {}", type.text());
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.bytes(); ++i)
    bytes[i] = static_cast<uint8_t>(std::strtoul(text.substr(space + 1 + 2 * i, 2).c_str(), nullptr, 16));
  return tensor;
}

}  // namespace

void fix_input(Graph& graph, const std::string& name, const Tensor& value) {
  std::vector<std::string> names;
  Value* input = nullptr;
  for (Value* candidate : graph.inputs()) {
    names.push_back(candidate->name);
    if (candidate->name == name) input = candidate;
  }
  if (!input) throw fail(E::unknown_name, "the model has no input \"{}\" to fix", name).hint(did_you_mean(name, names));
  if (!compatible(value.type(), input->type))
    throw fail(E::bad_binding, "input \"{}\" is {}, but {} was given", name, input->type.text(), value.type().text());
  GraphAccess::remove_input(graph, input);
  input->type = value.type();
  input->constant = value;
  graph.metadata.emplace_back(std::string(kFixed) + name, encode(value));
}

std::vector<std::pair<std::string, Tensor>> fixed_inputs(const Graph& graph) {
  std::vector<std::pair<std::string, Tensor>> fixed;
  for (const auto& [key, value] : graph.metadata)
    if (key.starts_with(kFixed)) fixed.emplace_back(key.substr(kFixed.size()), decode(value));
  return fixed;
}

void set_shape_inputs(Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) graph.metadata.emplace_back(std::string(kShape) + name, "");
}

std::vector<std::string> shape_inputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [key, value] : graph.metadata) {
    if (!key.starts_with(kShape)) continue;
    const std::string name = key.substr(kShape.size());
    const auto& inputs = graph.inputs();
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Value* input) { return input->name == name; }))
      names.push_back(name);
  }
  return names;
}

std::string shape_input_hint(const Graph& graph) {
  const std::vector<std::string> names = shape_inputs(graph);
  if (names.empty()) return {};
  const std::string which = names.size() == 1 ? fmt::format("the value of '{}' decides", names[0])
                                              : fmt::format("the values of '{}' decide", fmt::join(names, "', '"));
  return fmt::format("{} shapes: fix it, --input {}=FILE.npy or --input {}=[1,2] (fixed_inputs in C++ and Python)",
                     which, names[0], names[0]);
}

std::string text_of_values(const Tensor& tensor) {
  constexpr int64_t kMost = 16;
  if (tensor.elements() > kMost) return tensor.type().text();
  std::vector<std::string> values;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    values.push_back(is_float(tensor.dtype()) ? fmt::format("{}", tensor.real(i)) : std::to_string(tensor.integer(i)));
  return tensor.rank() == 0 ? values[0] : fmt::format("[{}]", fmt::join(values, ","));
}

}  // namespace opfuse
