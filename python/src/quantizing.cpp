// Quantising: samples come from a Python function, called with the interpreter's lock; everything else runs without it.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <opfuse/quantize.hpp>

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

using Names = std::vector<std::string>;

// Functions are handles: they are copied without the interpreter's lock, and the call's arguments keep them alive.

/// `read(index)` gives a dict of arrays, or None behind the last sample. `held` keeps the arrays until the next call.
SampleSource source_of(nb::handle read, size_t count, std::vector<HeldArray>& held) {
  SampleSource source = [read, &held](size_t index, std::map<std::string, ArrayView>& arrays) {
    nb::gil_scoped_acquire acquire;
    held.clear();
    const nb::object sample = read(index);
    if (sample.is_none()) return false;
    arrays = views_of(nb::cast<std::map<std::string, nb::object>>(sample), held);
    return true;
  };
  source.count = count;
  return source;
}

/// `score(index, outputs)` of copies: Python may keep them.
SampleScore score_of(nb::handle score) {
  return [score](size_t index, const std::map<std::string, ArrayView>& outputs) {
    nb::gil_scoped_acquire acquire;
    nb::dict arrays;
    for (const auto& [name, value] : outputs) {
      const HeldArray copy = new_array(name, value.dtype, value.shape);
      if (const size_t bytes = copy.array.nbytes(); bytes > 0) std::memcpy(copy.view.data, value.data, bytes);
      arrays[name.c_str()] = copy.object;
    }
    const nb::object given = score(index, arrays);
    double number = 0;
    if (nb::try_cast<double>(given, number)) return number;
    const std::string what = "the metric of sample " + std::to_string(index) + " is not a number: ";
    throw nb::type_error((what + nb::repr(given).c_str()).c_str());
  };
}

/// What Python gives beside the request: functions, and files instead of them.
struct Given {
  std::vector<HeldArray> calibration, evaluation;  ///< arrays of the sample at hand
  std::exception_ptr raised;                       ///< by `progress`
};

void take_functions(QuantizeRequest& request, Given& given, nb::handle evaluate, size_t count, nb::handle score,
                    nb::handle progress) {
  if (!evaluate.is_none()) request.evaluate = source_of(evaluate, count, given.evaluation);
  if (!score.is_none()) request.score = score_of(score);
  if (progress.is_none()) return;
  request.progress = [&given, progress](const std::string& step, size_t done, size_t total) {
    nb::gil_scoped_acquire acquire;
    if (given.raised) return;
    try {
      progress(step, done, total);
    } catch (...) {
      given.raised = std::current_exception();
    }
  };
}

template <class Source>
Quantized quantized(const Model& model, const std::optional<Plan>& plan, const Source& source,
                    const QuantizeRequest& request, const Given& given) {
  std::optional<Quantized> made;
  {
    nb::gil_scoped_release release;
    made = plan ? quantize(model, *plan, source, request) : quantize(model, source, request);
  }
  if (given.raised) std::rethrow_exception(given.raised);
  return std::move(*made);
}

Quantized quantize_with_files(const Model& model, const std::optional<Plan>& plan, const SampleFiles& files,
                              QuantizeRequest request, nb::handle evaluate, size_t evaluate_count, nb::handle score,
                              nb::handle progress) {
  Given given;
  take_functions(request, given, evaluate, evaluate_count, score, progress);
  return quantized(model, plan, files, request, given);
}

Quantized quantize_model(const Model& model, const std::optional<Plan>& plan, nb::handle read, size_t count,
                         QuantizeRequest request, nb::handle evaluate, size_t evaluate_count, nb::handle score,
                         nb::handle progress) {
  Given given;
  take_functions(request, given, evaluate, evaluate_count, score, progress);
  return quantized(model, plan, source_of(read, count, given.calibration), request, given);
}

Quantized convert_model(const Model& model, QuantizeRequest request, nb::handle evaluate, size_t evaluate_count,
                        nb::handle progress) {
  Given given;
  take_functions(request, given, evaluate, evaluate_count, nb::none(), progress);
  std::optional<Quantized> made;
  {
    nb::gil_scoped_release release;
    made = quantize(model, request);
  }
  if (given.raised) std::rethrow_exception(given.raised);
  return std::move(*made);
}

}  // namespace

void bind_quantizing(nb::module_& m) {
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
  using R = QuantizeRequest;
  nb::class_<R>(m, "QuantizeRequest")
      .def(nb::init<>())
      .def_rw("to", &R::to)
      .def_rw("block", &R::block)
      .def_rw("compiler", &R::compiler)
      .def_rw("method", &R::method)
      .def_rw("activations", &R::activations)
      .def_rw("bias_correction", &R::bias_correction)
      .def_rw("equalize", &R::equalize)
      .def_rw("share_scales", &R::share_scales)
      .def_rw("weight_rounding", &R::weight_rounding)
      .def_rw("pair_sums", &R::pair_sums)
      .def_rw("keep_float", &R::keep_float)
      .def_rw("skip", &R::skip)
      .def_rw("only", &R::only)
      .def_rw("min_linear", &R::min_linear)
      .def_rw("add_missing", &R::add_missing)
      .def_rw("compare_samples", &R::compare_samples)
      .def_rw("evaluate_files", &R::evaluate_files)
      .def_rw("metric", &R::metric)
      .def_rw("max_drop", &R::max_drop)
      .def_rw("lower_bound", &R::lower_bound)
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
  nb::class_<Quantized>(m, "QuantizedModel")
      .def_ro("model", &Quantized::model)
      .def_ro("report", &Quantized::report)
      .def_ro("warnings", &Quantized::warnings)
      .def("save_report", &Quantized::save_report, "path"_a);
  m.def("quantize_files", &quantize_with_files, "model"_a, "plan"_a.none(), "files"_a, "request"_a, "evaluate"_a.none(),
        "evaluate_count"_a, "score"_a.none(), "progress"_a.none());
  m.def("quantize", &quantize_model, "model"_a, "plan"_a.none(), "read"_a, "count"_a, "request"_a, "evaluate"_a.none(),
        "evaluate_count"_a, "score"_a.none(), "progress"_a.none());
  m.def("convert", &convert_model, "model"_a, "request"_a, "evaluate"_a.none(), "evaluate_count"_a,
        "progress"_a.none());
}

}  // namespace opfuse::python
