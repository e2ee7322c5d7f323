// Quantising: samples come from a Python function, called with the interpreter's lock; everything else runs without it.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opfuse/quantize.hpp>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

using Names = std::vector<std::string>;

/// `read(index)` gives a dict of arrays, or None behind the last sample.
SampleSource source_of(nb::callable read, std::vector<HeldArray>& held) {
  return [read = std::move(read), &held](size_t index, std::map<std::string, ArrayView>& arrays) {
    nb::gil_scoped_acquire acquire;
    held.clear();
    const nb::object sample = read(index);
    if (sample.is_none()) return false;
    arrays = views_of(nb::cast<std::map<std::string, nb::object>>(sample), held);
    return true;
  };
}

nb::tuple taken_apart(Quantized& made) { return nb::make_tuple(std::move(made.model), made.report, made.warnings); }

nb::tuple quantize_with_files(const Model& model, const std::optional<Plan>& plan, const SampleFiles& files,
                              const QuantizeRequest& request) {
  std::optional<Quantized> made;
  {
    nb::gil_scoped_release release;
    made = plan ? quantize(model, *plan, files, request) : quantize(model, files, request);
  }
  return taken_apart(*made);
}

nb::tuple quantize_model(const Model& model, const std::optional<Plan>& plan, nb::callable read,
                         const QuantizeRequest& request) {
  std::vector<HeldArray> held;
  SampleSource source = source_of(std::move(read), held);
  std::optional<Quantized> made;
  {
    nb::gil_scoped_release release;
    made = plan ? quantize(model, *plan, source, request) : quantize(model, source, request);
  }
  return taken_apart(*made);
}

}  // namespace

void bind_quantizing(nb::module_& m) {
  using R = QuantizeRequest;
  nb::class_<R>(m, "QuantizeRequest")
      .def(nb::init<>())
      .def_rw("compiler", &R::compiler)
      .def_rw("method", &R::method)
      .def_rw("activations", &R::activations)
      .def_rw("bias_correction", &R::bias_correction)
      .def_rw("equalize", &R::equalize)
      .def_rw("share_scales", &R::share_scales)
      .def_rw("weight_rounding", &R::weight_rounding)
      .def_rw("keep_float", &R::keep_float)
      .def_rw("skip", &R::skip)
      .def_rw("only", &R::only)
      .def_rw("min_linear", &R::min_linear)
      .def_rw("add_missing", &R::add_missing)
      .def_rw("compare_samples", &R::compare_samples)
      .def_rw("scales_file", &R::scales_file)
      .def_rw("threads", &R::threads)
      .def_prop_rw(
          "dims", [](R& r) { return r.plan.dims; },
          [](R& r, std::map<std::string, int64_t> v) { r.plan.dims = std::move(v); })
      .def_prop_rw(
          "limits", [](R& r) { return r.plan.limits; },
          [](R& r, std::map<std::string, int64_t> v) { r.plan.limits = std::move(v); })
      .def_prop_rw(
          "pattern_files", [](R& r) { return r.plan.pattern_files; },
          [](R& r, Names v) { r.plan.pattern_files = std::move(v); });
  using F = SampleFiles;
  nb::class_<F>(m, "SampleFiles")
      .def(nb::init<>())
      .def_rw("path", &F::path)
      .def_rw("most", &F::most)
      .def_rw("image_mean", &F::image_mean)
      .def_rw("image_std", &F::image_std)
      .def_rw("image_channels", &F::image_channels)
      .def_rw("image_fit", &F::image_fit)
      .def_rw("image_height", &F::image_height)
      .def_rw("image_width", &F::image_width);
  m.def("quantize_files", &quantize_with_files, "model"_a, "plan"_a.none(), "files"_a, "request"_a);
  m.def("quantize", &quantize_model, "model"_a, "plan"_a.none(), "read"_a, "request"_a);
}

}  // namespace opfuse::python
