// A graph under construction. Nodes are named as exporters do, "/Conv", "/Conv_1": plans and reports name them so.
#include "opfuse/network.hpp"

#include <cmath>
#include <set>
#include <unordered_set>

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"

namespace opfuse {

struct Network::State {
  Graph graph;
  std::set<std::string> names;
  std::vector<Value*> outputs;
  std::unordered_set<const Value*> values;  ///< of this network: handles of another one may dangle

  Value* own(Value* value) {
    values.insert(value);
    return value;
  }
  void check_own(const Value* value) const {
    if (value && !values.contains(value))
      throw fail(E::bad_option, "an operand belongs to another network").hint("build both parts in one Network");
  }
  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int n = 1; !names.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }
  /// A name that the caller chose.
  void claim(const std::string& name, const char* what) {
    if (name.empty()) throw fail(E::bad_option, "an {} needs a name", what);
    if (!names.insert(name).second)
      throw fail(E::duplicate_name, "the network has a tensor or node '{}' already", name);
  }
};

namespace {

constexpr int64_t kOpset = 17;

Dim dim_of(const Size& size) {
  const bool number = !size.text.empty() && size.text.find_first_not_of("0123456789") == std::string::npos;
  if (number) return std::stoll(size.text);
  const bool word =
      !size.text.empty() && (std::isalpha(static_cast<unsigned char>(size.text[0])) || size.text[0] == '_');
  if (!word) throw fail(E::bad_dimension, "'{}' is neither a size nor the name of a dimension", size.text);
  return Dim::symbol(size.text);
}

Tensor tensor_of(const ArrayView& array, const std::string& what) {
  for (int64_t size : array.shape)
    if (size < 0) throw fail(E::bad_dimension, "the array given for {} has a negative size", what);
  Tensor tensor(array.dtype, array.shape);
  if (tensor.bytes() > 0 && !array.data) throw fail(E::bad_binding, "the array given for {} has no data", what);
  copy_bytes(tensor.mutable_data(), array.data, tensor.bytes());
  return tensor;
}

/// "batch_norm" -> "BatchNorm": the last part of a node's name.
std::string camel(const std::string& op) {
  std::string text;
  bool upper = true;
  for (char c : op) {
    if (c != '_') text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return text;
}

int64_t channels_of(const Value& x, const char* op) {
  if (x.type.shape.rank() < 2 || !x.type.shape[1].is_constant())
    throw fail(E::unknown_dimension, "{} needs to know the channels of '{}', which is {}", op, x.name, x.type.text());
  return x.type.shape[1].value();
}

Tensor drawn(const std::vector<int64_t>& sizes, const std::string& name) {
  Tensor tensor(DType::f32, sizes);
  double fan_in = 1;
  for (size_t i = 1; i < sizes.size(); ++i) fan_in *= static_cast<double>(sizes[i]);
  Random random(0, name);
  const double scale = std::sqrt(2 / std::max(1.0, fan_in));
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_real(i, scale * random.normal());
  return tensor;
}

Tensor filled(int64_t count, double value) {
  Tensor tensor(DType::f32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.set_real(i, value);
  return tensor;
}

AttrMap attr_map_of(const Attributes& attributes) {
  AttrMap map;
  for (const auto& [name, value] : attributes)
    std::visit([&, key = &name](const auto& v) { map.emplace_back(*key, v); }, value);
  return map;
}

}  // namespace

TensorInfo NetworkValue::info() const {
  if (!value_) throw fail(E::bad_option, "an operand that is left out has no type");
  TensorInfo info{value_->name, value_->type.dtype, {}};
  for (const Dim& dim : value_->type.shape.dims) info.shape.push_back(dim.text());
  return info;
}

Network::Network(const std::string& name) : state_(std::make_unique<State>()) { state_->graph.name = name; }
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

NetworkValue Network::input(const std::string& name, const std::vector<Size>& shape, DType dtype) {
  TensorType type{dtype, Shape{}};
  for (const Size& size : shape) type.shape.dims.push_back(dim_of(size));
  state_->claim(name, "input");
  return NetworkValue(state_->own(state_->graph.add_input(name, std::move(type))));
}

NetworkValue Network::constant(const ArrayView& array, const std::string& name) {
  Tensor tensor = tensor_of(array, name.empty() ? "a constant" : "'" + name + "'");
  return NetworkValue(
      state_->own(state_->graph.add_constant(std::move(tensor), state_->unique(name.empty() ? "constant" : name))));
}

std::vector<NetworkValue> Network::op_results(const std::string& op, const std::vector<NetworkValue>& inputs,
                                              size_t results, const Attributes& attributes, const std::string& name) {
  const OpInfo* info = op_named(op);
  std::vector<Value*> operands;
  for (const NetworkValue& input : inputs) {
    state_->check_own(input.value_);
    operands.push_back(input.value_);
  }
  const std::string node_name = state_->unique(name.empty() ? "/" + camel(op) : name);
  Node* node = nullptr;
  try {
    node = state_->graph.add_node(info, attr_map_of(attributes), std::move(operands), results,
                                  {{node_name, camel(op), "", kOpset}});
  } catch (Error& error) {
    state_->names.erase(node_name);
    throw error.node(node_name);
  }
  std::vector<NetworkValue> values;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    node->outputs[i]->name = state_->unique(fmt::format("{}_output_{}", node_name, i));
    values.push_back(NetworkValue(state_->own(node->outputs[i])));
  }
  return values;
}

NetworkValue Network::op(const std::string& op, const std::vector<NetworkValue>& inputs, const Attributes& attributes,
                         const std::string& name) {
  return op_results(op, inputs, 1, attributes, name).front();
}

NetworkValue Network::add(NetworkValue a, NetworkValue b, const std::string& name) {
  return op("add", {a, b}, {}, name);
}

NetworkValue Network::conv(NetworkValue x, const ConvSpec& spec) {
  if (!x.value_) throw fail(E::bad_option, "a convolution needs an operand");
  state_->check_own(x.value_);
  if (spec.kernel < 1 || spec.stride < 1 || spec.dilation < 1 || spec.group < 1 || spec.pad < -1 || spec.out < 0)
    throw fail(E::bad_attribute, "sizes of a convolution are positive, its padding is not negative");
  const std::string name = spec.name.empty() ? "/Conv" : spec.name;
  Tensor weights;
  if (spec.weights.dtype != DType::unknown) {
    weights = tensor_of(spec.weights, "the weights of '" + name + "'");
  } else {
    if (spec.out < 1)
      throw fail(E::bad_attribute, "a convolution without weights needs its number of channels (out)").node(name);
    const int64_t in = channels_of(*x.value_, "a convolution");
    if (in % spec.group != 0 || spec.out % spec.group != 0)
      throw fail(E::channel_mismatch, "{} and {} channels are not multiples of {} groups", in, spec.out, spec.group)
          .node(name);
    std::vector<int64_t> sizes(x.value_->type.shape.rank(), spec.kernel);
    sizes[0] = spec.out, sizes[1] = in / spec.group;
    weights = drawn(sizes, fmt::format("{} {}", name, state_->names.size()));
  }
  if (weights.sizes().size() < 3)
    throw fail(E::rank_mismatch, "the weights have {} dimensions, at least 3 are needed", weights.sizes().size())
        .node(name);
  if (spec.out > 0 && weights.dim(0) != spec.out)
    throw fail(E::channel_mismatch, "the weights have {} channels of the result, out says {}", weights.dim(0), spec.out)
        .node(name);
  const size_t spatial = weights.sizes().size() - 2;
  std::vector<int64_t> kernel(weights.sizes().begin() + 2, weights.sizes().end()), pads;
  for (int end = 0; end < 2; ++end)
    for (int64_t k : kernel) pads.push_back(spec.pad >= 0 ? spec.pad : (k - 1) / 2 * spec.dilation);
  std::vector<NetworkValue> inputs = {
      x, NetworkValue(state_->own(state_->graph.add_constant(std::move(weights), state_->unique(name + ".weight"))))};
  if (spec.bias.dtype != DType::unknown)
    inputs.push_back(NetworkValue(state_->own(state_->graph.add_constant(
        tensor_of(spec.bias, "the bias of '" + name + "'"), state_->unique(name + ".bias")))));
  return op("conv", inputs,
            {{"dilations", std::vector<int64_t>(spatial, spec.dilation)},
             {"group", spec.group},
             {"kernel_shape", kernel},
             {"pads", pads},
             {"strides", std::vector<int64_t>(spatial, spec.stride)}},
            spec.name);
}

NetworkValue Network::batch_norm(NetworkValue x, const BatchNormSpec& spec) {
  if (!x.value_) throw fail(E::bad_option, "a batch norm needs an operand");
  state_->check_own(x.value_);
  const std::string name = spec.name.empty() ? "/BatchNorm" : spec.name;
  const int64_t channels = channels_of(*x.value_, "a batch norm");
  const auto parameter = [&](const ArrayView& array, double otherwise, const char* part) {
    Tensor tensor = array.dtype == DType::unknown ? filled(channels, otherwise)
                                                  : tensor_of(array, fmt::format("{} of '{}'", part, name));
    return NetworkValue(
        state_->own(state_->graph.add_constant(std::move(tensor), state_->unique(fmt::format("{}.{}", name, part)))));
  };
  return op("batch_norm",
            {x, parameter(spec.scale, 1, "scale"), parameter(spec.bias, 0, "bias"), parameter(spec.mean, 0, "mean"),
             parameter(spec.variance, 1, "variance")},
            {{"epsilon", spec.epsilon}}, spec.name);
}

void Network::output(const std::string& name, NetworkValue value) {
  if (!value.value_) throw fail(E::bad_option, "output '{}' has no value", name);
  state_->check_own(value.value_);
  state_->claim(name, "output");
  Value* result = value.value_;
  const auto& outputs = state_->outputs;
  const bool taken = std::find(outputs.begin(), outputs.end(), result) != outputs.end();
  if (taken || !result->producer)  // an input or constant keeps its name, and so does another output
    result = op("identity", {value}).value_;
  result->name = name;
  state_->outputs.push_back(result);
}

Model Network::model() const {
  if (state_->outputs.empty()) throw fail(E::bad_option, "the network has no output").hint("output(\"y\", value)");
  Graph graph = state_->graph.clone();
  std::vector<Value*> outputs;
  for (const Value* output : state_->outputs) outputs.push_back(graph.find_value(output->name));
  graph.set_outputs(std::move(outputs));
  graph.remove_dead_nodes();
  return Model::from_graph(std::move(graph));
}

}  // namespace opfuse
