// Models, their tensors, targets.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opfuse/opfuse.hpp>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

/// Numbers as int, expressions over symbols as str.
nb::typed<nb::tuple, nb::object, nb::ellipsis> shape_of(const TensorInfo& info) {
  nb::list sizes;
  for (const std::string& size : info.shape) {
    const bool number = !size.empty() && size.find_first_not_of("0123456789") == std::string::npos;
    if (number)
      sizes.append(std::stoll(size));
    else
      sizes.append(size);
  }
  return nb::typed<nb::tuple, nb::object, nb::ellipsis>(nb::tuple(sizes));
}

std::string text_of(const TensorInfo& info) {
  std::string text = info.name + ": " + numpy_name(info.dtype) + "[";
  for (size_t i = 0; i < info.shape.size(); ++i) text += (i ? "," : "") + info.shape[i];
  return text + "]";
}

std::string text_of(const Model& model) {
  std::string text = "<opfuse.Model";
  for (const TensorInfo& input : model.inputs()) text += " " + text_of(input);
  text += " ->";
  for (const TensorInfo& output : model.outputs()) text += " " + text_of(output);
  return text + ">";
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "An input or output.")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro(
          "dtype", [](const TensorInfo& info) { return std::string(numpy_name(info.dtype)); },
          "numpy's name, \"float32\".")
      .def_prop_ro("shape", &shape_of, "Numbers, and expressions over symbols as str.")
      .def("__repr__", [](const TensorInfo& info) { return text_of(info); });

  nb::class_<Model>(m, "Model", "A model: a graph read from ONNX, built in, or fused.")
      .def_static(
          "load",
          [](const std::filesystem::path& path, const std::map<std::string, nb::object>& fixed_inputs,
             const std::map<std::string, int64_t>& limits, const std::vector<std::string>& operators) {
            std::vector<HeldArray> held;
            const LoadOptions options{views_of(fixed_inputs, held), limits, operators};
            nb::gil_scoped_release release;
            return Model::load(path.string(), options);
          },
          "path"_a, "fixed_inputs"_a = std::map<std::string, nb::object>{},
          "limits"_a = std::map<std::string, int64_t>{}, "operators"_a = std::vector<std::string>{},
          nb::sig("def load(path: str | os.PathLike[str], fixed_inputs: dict[str, object] = {}, limits: dict[str, int] "
                  "= {}, operators: list[str] = []) -> Model"),
          "Reads an ONNX file. The file must not change while the model lives: weights stay in it. fixed_inputs: "
          "values "
          "of inputs that never change (axes, sizes); they become constants. limits: by name, docs/cli.md. operators: "
          "of custom domains, as "
          "expressions.")
      .def_static(
          "zoo",
          [](const std::string& name) {
            nb::gil_scoped_release release;
            return Model::zoo(name);
          },
          "name"_a, "A built-in model, such as \"resnet50\".")
      .def(
          "save",
          [](const Model& model, const std::filesystem::path& path, bool flatten) {
            nb::gil_scoped_release release;
            model.save(path.string(), flatten);
          },
          "path"_a, "flatten"_a = false,
          nb::sig("def save(self, path: str | os.PathLike[str], flatten: bool = False) -> None"),
          "Writes ONNX: a function per fused module, or plain operators (flatten), which OpenVINO loads too.")
      .def("text", &Model::text, "The graph as text.")
      .def("inputs", &Model::inputs)
      .def("outputs", &Model::outputs)
      .def("modules", &Model::modules, "Fused modules by name; empty before apply.")
      .def("__repr__", [](const Model& model) { return text_of(model); });

  nb::class_<Target>(m, "Target", "What code is generated for.")
      .def_static("host", &Target::host)
      .def_static("named", &Target::named, "name"_a,
                  "\"host\", \"cpu:avx512\", \"cpu:avx2\", \"cpu:baseline\", \"cuda:sm_90\".")
      .def_prop_ro("name", &Target::name)
      .def("__repr__", [](const Target& target) { return "<opfuse.Target " + target.name() + ">"; });
}

}  // namespace opfuse::python
