// Networks built call by call, and models from and into memory.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <opfuse/bytes.hpp>
#include <opfuse/network.hpp>

#include "arrays.hpp"
#include "errors.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

using Sizes = std::vector<std::variant<int64_t, std::string>>;

std::vector<Size> sizes_of(const Sizes& shape) {
  std::vector<Size> sizes;
  for (const auto& size : shape) std::visit([&](const auto& s) { sizes.push_back(Size(s)); }, size);
  return sizes;
}

/// Attributes as Python writes them: numbers, bool, text, lists of numbers.
Attribute attribute_of(const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  std::vector<int64_t> integers;
  if (nb::try_cast(value, integers)) return integers;
  std::vector<double> reals;
  if (nb::try_cast(value, reals)) return reals;
  throw bad_binding("attribute '" + name + "' is neither a number nor text nor a list of numbers",
                    "axis=1, pads=[1, 1, 1, 1]");
}

Attributes attributes_of(const nb::kwargs& arguments) {
  Attributes attributes;
  for (const auto& [key, value] : arguments) {
    const std::string name = nb::cast<std::string>(key);
    attributes.emplace_back(name, attribute_of(name, value));
  }
  return attributes;
}

/// None: an operand that is left out.
std::vector<NetworkValue> operands_of(const nb::args& arguments) {
  std::vector<NetworkValue> values;
  for (nb::handle argument : arguments)
    values.push_back(argument.is_none() ? NetworkValue() : nb::cast<NetworkValue>(argument));
  return values;
}

DType dtype_named(const std::string& name) {
  for (int i = 0; i < static_cast<int>(DType::unknown); ++i)
    if (name == numpy_name(static_cast<DType>(i))) return static_cast<DType>(i);
  throw bad_binding("there is no element type '" + name + "'", "\"float32\", \"int64\" ...");
}

ArrayView view_or_none(const char* what, nb::handle array, std::vector<HeldArray>& held) {
  if (array.is_none()) return {};
  held.push_back(array_in_place(what, array, false));
  return held.back().view;
}

NetworkValue conv(Network& net, NetworkValue x, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                  int64_t dilation, int64_t group, nb::object weights, nb::object bias, const std::string& name) {
  std::vector<HeldArray> held;
  ConvSpec spec{.out = out, .kernel = kernel, .stride = stride, .pad = pad, .dilation = dilation, .group = group};
  spec.weights = view_or_none("weights", weights, held);
  spec.bias = view_or_none("bias", bias, held);
  spec.name = name;
  return net.conv(x, spec);
}

NetworkValue batch_norm(Network& net, NetworkValue x, nb::object scale, nb::object bias, nb::object mean,
                        nb::object variance, double epsilon, const std::string& name) {
  std::vector<HeldArray> held;
  BatchNormSpec spec;
  spec.scale = view_or_none("scale", scale, held);
  spec.bias = view_or_none("bias", bias, held);
  spec.mean = view_or_none("mean", mean, held);
  spec.variance = view_or_none("variance", variance, held);
  spec.epsilon = epsilon;
  spec.name = name;
  return net.batch_norm(x, spec);
}

void bind_network(nb::module_& m) {
  nb::class_<NetworkValue>(m, "NetworkValue", "A tensor of a network under construction.")
      .def_prop_ro("info", &NetworkValue::info)
      .def("__repr__", [](const NetworkValue& v) { return "<opfuse.NetworkValue " + v.info().name + ">"; });

  nb::class_<Network>(m, "Network", "A model built in code. Every call checks types and shapes at once.")
      .def(nb::init<const std::string&>(), "name"_a = "network")
      .def(
          "input",
          [](Network& net, const std::string& name, const Sizes& shape, const std::string& dtype) {
            return net.input(name, sizes_of(shape), dtype_named(dtype));
          },
          "name"_a, "shape"_a, "dtype"_a = "float32", nb::keep_alive<0, 1>(),
          "Sizes are numbers or names of open dimensions.")
      .def(
          "constant",
          [](Network& net, nb::object array, const std::string& name) {
            std::vector<HeldArray> held;
            return net.constant(view_or_none("a constant", array, held), name);
          },
          "array"_a, "name"_a = "", nb::keep_alive<0, 1>(), "The array is copied.")
      .def("conv", &conv, "x"_a, "out"_a = 0, "kernel"_a = 1, "stride"_a = 1, "pad"_a = -1, "dilation"_a = 1,
           "group"_a = 1, "weights"_a = nb::none(), "bias"_a = nb::none(), "name"_a = "", nb::keep_alive<0, 1>(),
           "pad: -1 keeps the size at stride 1. weights: [out, in / group, kernel ...]; without them they are drawn.")
      .def("batch_norm", &batch_norm, "x"_a, "scale"_a = nb::none(), "bias"_a = nb::none(), "mean"_a = nb::none(),
           "variance"_a = nb::none(), "epsilon"_a = 1e-5, "name"_a = "", nb::keep_alive<0, 1>())
      .def("add", &Network::add, "a"_a, "b"_a, "name"_a = "", nb::keep_alive<0, 1>())
      .def(
          "op",
          [](Network& net, const std::string& op, const nb::args& inputs, const nb::kwargs& attributes) {
            return net.op(op, operands_of(inputs), attributes_of(attributes));
          },
          "op"_a, "inputs"_a, "attributes"_a, nb::keep_alive<0, 1>(),
          "Any operator of `opfuse ops`: net.op(\"softmax\", x, axis=-1). None: an operand that is left out.")
      .def(
          "named_op",
          [](Network& net, const std::string& op, const std::string& name, const std::vector<NetworkValue>& inputs,
             const nb::dict& attributes) {
            Attributes list;
            for (const auto& [key, value] : attributes) {
              const std::string attribute = nb::cast<std::string>(key);
              list.emplace_back(attribute, attribute_of(attribute, value));
            }
            return net.op(op, inputs, list, name);
          },
          "op"_a, "name"_a, "inputs"_a, "attributes"_a, nb::keep_alive<0, 1>(),
          "The same with a name for the node, which plans and reports use.")
      .def(
          "output", [](Network& net, const std::string& name, NetworkValue value) { net.output(name, value); },
          "name"_a, "value"_a)
      .def("model", &Network::model, "A copy of what was built so far.")
      .def(
          "save", [](const Network& net, const std::string& path) { net.save(path); }, "path"_a, "Writes ONNX.");
}

void bind_bytes(nb::module_& m) {
  m.def(
      "load_bytes",
      [](nb::bytes bytes, const std::map<std::string, nb::object>& fixed_inputs,
         const std::map<std::string, int64_t>& limits, const std::string& folder,
         const std::vector<std::string>& operators) {
        std::vector<HeldArray> held;
        const LoadOptions options{views_of(fixed_inputs, held), limits, operators};
        std::string text(bytes.c_str(), bytes.size());
        nb::gil_scoped_release release;
        return load_bytes(std::move(text), options, folder);
      },
      "bytes"_a, "fixed_inputs"_a, "limits"_a, "folder"_a, "operators"_a);
  m.def(
      "save_bytes",
      [](const Model& model, bool flatten) {
        const std::string text = save_bytes(model, flatten);
        return nb::bytes(text.data(), text.size());
      },
      "model"_a, "flatten"_a = false);
}

}  // namespace

void bind_networks(nb::module_& m) {
  bind_network(m);
  bind_bytes(m);
}

}  // namespace opfuse::python
