// Compiling and running. Arrays are read and written where they are. A context belongs to one thread at a time; another
// thread that uses it meanwhile gets an error. What is not the context's is guarded by the interpreter's lock.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <opfuse/optimize.hpp>
#include <optional>

#include "bound_context.hpp"
#include "errors.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opfuse::python {
namespace {

using Arrays = std::map<std::string, nb::object>;
using Results = nb::typed<nb::dict, nb::str, nb::object>;

/// A compiled model, and contexts that no run uses at the moment.
struct SharedExecutable {
  Executable exe;
  std::map<int, std::vector<std::unique_ptr<BoundContext>>> idle;  ///< by device

  explicit SharedExecutable(Executable executable) : exe(std::move(executable)) {}
  SharedExecutable(SharedExecutable&&) = default;
};

void check_names(const SharedExecutable& self, const Arrays& inputs, const Arrays& out) {
  for (const TensorInfo& input : self.exe.inputs())
    if (!inputs.contains(input.name))
      throw bad_binding("input '" + input.name + "' is missing", "inputs: " + names_of(self.exe.inputs()));
  const std::vector<TensorInfo>& outputs = self.exe.outputs();
  for (const auto& [name, array] : out)
    if (std::none_of(outputs.begin(), outputs.end(), [&name = name](const TensorInfo& o) { return o.name == name; }))
      throw bad_binding("the model has no output '" + name + "'", "outputs: " + names_of(outputs));
}

/// The GPU of the first array that lies on one.
int device_of_arrays(const Arrays& inputs, const Arrays& out) {
  for (const Arrays* arrays : {&inputs, &out})
    for (const auto& [name, array] : *arrays)
      if (const int device = device_of(array); device != kHostMemory) return device;
  return 0;
}

Results run(SharedExecutable& self, const Arrays& inputs, const Arrays& out, nb::object stream) {
  check_names(self, inputs, out);
  const int64_t waiting = stream_of(stream);
  ContextOptions options;
  options.device = device_of_arrays(inputs, out);
  auto& idle = self.idle[options.device];
  std::unique_ptr<BoundContext> context;
  if (idle.empty()) {
    context = std::make_unique<BoundContext>(self.exe, options);
  } else {
    context = std::move(idle.back());
    idle.pop_back();
  }
  for (const Arrays* arrays : {&inputs, &out})
    for (const auto& [name, array] : *arrays) context->bind(name, array, waiting);
  context->run(stream);
  nb::dict results;
  for (const TensorInfo& output : self.exe.outputs())
    results[nb::str(output.name.c_str())] = context->output(output.name);
  context->release();
  self.idle[options.device].push_back(std::move(context));  // not after an error: the context may be half bound
  return Results(results);
}

using Names = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// What only Python does with an object of ours: a function of opfuse/NAME.py.
nb::object python_function(const char* module, const char* name) {
  return nb::module_::import_(("opfuse." + std::string(module)).c_str()).attr(name);
}

/// `progress`: called with the interpreter's lock, which compiling does not hold. What it raises ends the calls and is
/// raised at the end.
SharedExecutable compile_model(const Model& model, const Target& target, CompileOptions options,
                               const Arrays& fixed_inputs, nb::object progress) {
  std::vector<HeldArray> held;
  options.fixed_inputs = views_of(fixed_inputs, held);
  std::exception_ptr raised;
  if (!progress.is_none())
    options.progress = [&](const std::string& step, size_t done, size_t total) {
      nb::gil_scoped_acquire lock;
      if (raised) return;
      try {
        progress(step, done, total);
      } catch (...) {
        raised = std::current_exception();
      }
    };
  std::optional<SharedExecutable> made;
  {
    nb::gil_scoped_release release;
    made.emplace(compile(model, target, options));
  }
  if (raised) std::rethrow_exception(raised);
  return std::move(*made);
}

/// Fields have the names of the keyword arguments of opfuse.compile, which fills them.
void bind_compile(nb::module_& m) {
  using O = CompileOptions;
  nb::class_<O>(m, "CompileOptions")
      .def(nb::init<>())
      .def_rw("dims", &O::dims)
      .def_rw("specialize", &O::specialize)
      .def_rw("compile_threads", &O::compile_threads)
      .def_rw("cache", &O::cache)
      .def_rw("emit_dir", &O::emit_dir)
      .def_rw("emit_llvm", &O::emit_llvm)
      .def_rw("emit_assembly", &O::emit_assembly)
      .def_rw("emit_cuda", &O::emit_cuda)
      .def_rw("allow_reference", &O::allow_reference)
      .def_rw("fused", &O::fused)
      .def_prop_rw(
          "only", [](O& o) { return o.plan.only; }, [](O& o, Names v) { o.plan.only = std::move(v); })
      .def_prop_rw(
          "skip", [](O& o) { return o.plan.skip; }, [](O& o, Names v) { o.plan.skip = std::move(v); })
      .def_prop_rw(
          "rules", [](O& o) { return o.plan.rules; }, [](O& o, bool v) { o.plan.rules = v; })
      .def_prop_rw(
          "patterns", [](O& o) { return o.plan.patterns; },
          [](O& o, std::vector<PatternSpec> v) { o.plan.patterns = std::move(v); })
      .def_prop_rw(
          "pattern_files", [](O& o) { return o.plan.pattern_files; },
          [](O& o, Names v) { o.plan.pattern_files = std::move(v); })
      .def_prop_rw(
          "max_group_nodes", [](O& o) { return o.plan.max_group_nodes; },
          [](O& o, size_t v) { o.plan.max_group_nodes = v; })
      .def_prop_rw(
          "precision", [](O& o) { return o.plan.precision; }, [](O& o, Names v) { o.plan.precision = std::move(v); })
      .def_prop_rw(
          "no_fuse", [](O& o) { return o.plan.no_fuse; }, [](O& o, Pairs v) { o.plan.no_fuse = std::move(v); })
      .def_prop_rw(
          "fuse", [](O& o) { return o.plan.fuse; }, [](O& o, Pairs v) { o.plan.fuse = std::move(v); })
      .def_rw("exact", &O::exact)
      .def_rw("no_pass", &O::no_pass)
      .def_rw("chains", &O::chains)
      .def_rw("threads", &O::threads)
      .def_rw("measure", &O::measure)
      .def_rw("timings", &O::timings)
      .def_rw("algorithm", &O::algorithm)
      .def_rw("no_algorithm", &O::no_algorithm)
      .def_rw("max_weight_growth", &O::max_weight_growth)
      .def_rw("workspace", &O::workspace)
      .def_rw("least_memory", &O::least_memory)
      .def_rw("limits", &O::limits)
      .def_rw("dump_dir", &O::dump_dir);
  m.def("compile", &compile_model, "model"_a, "target"_a, "options"_a, "fixed_inputs"_a = Arrays{},
        "progress"_a = nb::none());
}

/// What opfuse.optimize returns: plain numbers, and the executable as Python knows it.
struct OptimizedModel {
  SharedExecutable executable;
  Optimized result;
};

/// `stop`: Python's signals (Ctrl-C) are looked at between runs; the search then ends with what it has.
OptimizedModel optimize_model(const Model& model, const Target& target, CompileOptions compile,
                              const Arrays& fixed_inputs, const Arrays& inputs, uint64_t seed, double seconds,
                              bool prove) {
  std::vector<HeldArray> held;
  compile.fixed_inputs = views_of(fixed_inputs, held);
  bool raised = false;
  OptimizeOptions options{.compile = std::move(compile), .inputs = views_of(inputs, held), .seed = seed};
  options.seconds = seconds;
  options.prove = prove;
  options.stop = [&raised] {
    if (raised) return true;
    nb::gil_scoped_acquire lock;
    return raised = PyErr_CheckSignals() != 0;
  };
  std::optional<Optimized> result;
  {
    nb::gil_scoped_release release;
    result = optimize(model, target, options);
  }
  if (raised) throw nb::python_error();
  return {SharedExecutable(result->executable), *result};
}

void bind_optimize(nb::module_& m) {
  nb::class_<OptimizeCandidate>(m, "OptimizeCandidate", "A way to compile the model that was tried.")
      .def_ro("name", &OptimizeCandidate::name)
      .def_ro("flags", &OptimizeCandidate::flags, "Of `opfuse compile` for the same program.")
      .def_ro("skipped", &OptimizeCandidate::skipped, "Why it was not measured; empty: it was.")
      .def_ro("launches", &OptimizeCandidate::launches)
      .def_ro("ms", &OptimizeCandidate::ms)
      .def_ro("arena", &OptimizeCandidate::arena)
      .def_ro("constants", &OptimizeCandidate::constants);
  nb::class_<OptimizeSide>(m, "OptimizeSide", "How fast and how large a program is.")
      .def_ro("launches", &OptimizeSide::launches)
      .def_ro("ms", &OptimizeSide::ms)
      .def_ro("bytes", &OptimizeSide::bytes)
      .def_ro("arena", &OptimizeSide::arena)
      .def_ro("constants", &OptimizeSide::constants)
      .def_prop_ro("memory", &OptimizeSide::memory);
  using O = OptimizedModel;
  nb::class_<O>(m, "Optimized", "The fastest program that was found, its proof and its measurements.")
      .def_prop_ro(
          "executable", [](O& o) -> SharedExecutable& { return o.executable; }, nb::rv_policy::reference_internal)
      .def_prop_ro("candidates", [](const O& o) { return o.result.candidates; })
      .def_prop_ro("chosen", [](const O& o) { return o.result.chosen; })
      .def_prop_ro("fused", [](const O& o) { return o.result.fused; })
      .def_prop_ro("unfused", [](const O& o) { return o.result.unfused; })
      .def_prop_ro(
          "time",
          [](const O& o) { return nb::make_tuple(o.result.time.low, o.result.time.estimate, o.result.time.high); },
          nb::sig("def time(self) -> tuple[float, float, float]"), "fused / unfused: low, estimate, high.")
      .def_prop_ro(
          "groups", [](const O& o) { return o.result.groups; }, "That were proven.")
      .def_prop_ro("failures", [](const O& o) { return o.result.failures; })
      .def_prop_ro("output_error", [](const O& o) { return o.result.output_error; })
      .def_prop_ro("slower", [](const O& o) { return o.result.slower(); })
      .def_prop_ro("larger", [](const O& o) { return o.result.larger(); })
      .def_prop_ro("ok", [](const O& o) { return o.result.ok(); })
      .def("__str__", [](const O& o) { return o.result.text(); });
  m.def("optimize", &optimize_model, "model"_a, "target"_a, "options"_a, "fixed_inputs"_a, "inputs"_a, "seed"_a,
        "seconds"_a, "prove"_a);
}

void bind_launch(nb::module_& m) {
  nb::class_<LaunchInfo>(m, "LaunchInfo", "One kernel launch of a compiled model.")
      .def_ro("name", &LaunchInfo::name)
      .def_ro("kernel", &LaunchInfo::kernel)
      .def_ro("pattern", &LaunchInfo::pattern)
      .def_ro("schedule", &LaunchInfo::schedule)
      .def_ro("sources", &LaunchInfo::sources)
      .def_ro("flops", &LaunchInfo::flops)
      .def_ro("bytes_read", &LaunchInfo::bytes_read)
      .def_ro("bytes_written", &LaunchInfo::bytes_written)
      .def_ro("parts", &LaunchInfo::parts)
      .def_ro("products", &LaunchInfo::products, "The type of what it multiplies: f32, bf16, f16 or int8.")
      .def("__repr__", [](const LaunchInfo& l) { return "<opfuse.LaunchInfo " + l.name + ">"; });
}

void bind_device_array(nb::module_& m) {
  nb::class_<DeviceArray>(
      m, "DeviceArray", "An array in the memory of a GPU, of opfuse's own: torch.from_dlpack(array) takes it as it is.")
      .def_prop_ro(
          "shape", [](const DeviceArray& a) { return nb::tuple(nb::cast(a.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", &DeviceArray::dtype)
      .def_prop_ro("device", &DeviceArray::device, "The GPU's number.")
      .def("numpy", &DeviceArray::numpy, nb::sig("def numpy(self) -> object"), "A copy in the host's memory.")
      .def(
          "write", [](DeviceArray& a, nb::handle array) { a.write(array_in_place("array", array, false).view); },
          "array"_a, "Copies an array of the host there; waits.")
      .def(
          "__dlpack__", [](const DeviceArray& a, const nb::kwargs&) { return a.dlpack(); },
          nb::sig("def __dlpack__(self, **options: object) -> object"))
      .def(
          "__dlpack_device__", [](const DeviceArray& a) { return nb::make_tuple(2, a.device()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", [](const DeviceArray& a) {
        std::string sizes;
        for (const int64_t size : a.shape()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        return "<opfuse.DeviceArray " + std::string(a.dtype()) + "[" + sizes + "] on device " +
               std::to_string(a.device()) + ">";
      });
}

void bind_context(nb::module_& m) {
  using C = BoundContext;
  nb::class_<C>(m, "Context",
                "One caller's state: arena, bound arrays, threads. A call while another thread uses it raises E0602.")
      .def(
          "bind", [](C& c, const std::string& name, nb::handle array) { c.bind(name, array, kNobodyWaits); }, "name"_a,
          "array"_a,
          "Binds an array to an input or output, in place: it is read or written by run(), and kept alive until then. "
          "Of an array of a GPU nothing is waited for: what wrote it comes before the run in the same stream.")
      .def("run", &C::run, "stream"_a = nb::none(),
           "stream: of a GPU, an int or a stream of torch or cupy; the run is given to it and not waited for.")
      .def_prop_ro("device", &C::device, "The GPU's number; -1: the CPU.")
      .def("output", &C::output, "name"_a,
           "The array of an output: the bound one, or one of the context's own, which the next run() writes again.")
      .def(
          "variant", [](C& c) { return c.with_context([](Context& context) { return context.variant(); }); },
          "The sizes of the variant that runs for the bound inputs; empty: the kernels for all sizes run.")
      .def_prop_ro("threads", [](C& c) { return c.with_context([](Context& context) { return context.threads(); }); })
      .def_prop_ro("arena_bytes", [](C& c) { return c.with_context([](Context& x) { return x.arena_bytes(); }); })
      .def_prop_ro("intermediate_bytes",
                   [](C& c) { return c.with_context([](Context& x) { return x.intermediate_bytes(); }); })
      .def("launches", [](C& c) { return c.with_context([](Context& x) { return x.launches(); }); })
      .def(
          "launch_nanoseconds", [](C& c) { return c.with_context([](Context& x) { return x.launch_nanoseconds(); }); },
          "Of each launch in the last run; needs create_context(profile=True).")
      .def_prop_ro("total_nanoseconds",
                   [](C& c) { return c.with_context([](Context& x) { return x.total_nanoseconds(); }); });
}

/// Runs in other threads, and with times: in Python, on top of `run` and of contexts.
void bind_kinds_of_runs(nb::class_<SharedExecutable>& executable) {
  executable
      .def(
          "submit",
          [](nb::handle self, nb::object inputs, nb::object out) {
            return python_function("_async", "submit")(self, inputs, out);
          },
          "inputs"_a, "out"_a = nb::dict(),
          nb::sig("def submit(self, inputs: collections.abc.Mapping[str, object], "
                  "out: collections.abc.Mapping[str, object] = {}) -> concurrent.futures.Future[dict[str, object]]"),
          "run() in another thread; the arrays must stay as they are until the future has its result.")
      .def(
          "run_async",
          [](nb::handle self, nb::object inputs, nb::object out) {
            return python_function("_async", "run_async")(self, inputs, out);
          },
          "inputs"_a, "out"_a = nb::dict(),
          nb::sig("def run_async(self, inputs: collections.abc.Mapping[str, object], "
                  "out: collections.abc.Mapping[str, object] = {}) -> collections.abc.Awaitable[dict[str, object]]"),
          "The same for asyncio: results = await exe.run_async(inputs).")
      .def(
          "profile",
          [](nb::handle self, nb::object inputs, int runs, int threads) {
            return python_function("_profile", "profile")(self, inputs, runs, threads);
          },
          "inputs"_a, "runs"_a = 10, "threads"_a = 0,
          nb::sig("def profile(self, inputs: collections.abc.Mapping[str, object], runs: int = 10, threads: int = 0) "
                  "-> opfuse._profile.Profile"),
          "Median time of every launch; shown as a table by notebooks and print().");
}

}  // namespace

void bind_running(nb::module_& m) {
  bind_launch(m);
  bind_device_array(m);
  bind_context(m);
  using E = SharedExecutable;
  nb::class_<E> executable(m, "Executable", "A compiled model. Any number of threads may run it at once.");
  executable
      .def_static(
          "load",
          [](const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            return E(Executable::load(path.string()));
          },
          "path"_a, nb::sig("def load(path: str | os.PathLike[str]) -> Executable"),
          "Maps an .opf. It contains machine code: load only what you would run.")
      .def(
          "save",
          [](const E& self, const std::filesystem::path& path) {
            nb::gil_scoped_release release;
            self.exe.save(path.string());
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"))
      .def("inputs", [](const E& self) { return self.exe.inputs(); })
      .def("outputs", [](const E& self) { return self.exe.outputs(); })
      .def(
          "variants", [](const E& self) { return self.exe.variants(); },
          "Sizes of open dimensions that variants were compiled for, in the order in which they are tried.")
      .def("run", &run, "inputs"_a, "out"_a = Arrays{}, "stream"_a = nb::none(),
           "Runs the model on arrays by input name and returns arrays by output name: those of `out`, written in "
           "place, and new ones for the rest, which lie where the inputs do. Nothing is copied. stream: of a GPU, an "
           "int or a stream of torch or cupy; the run is given to it and not waited for.")
      .def(
          "create_context",
          [](const E& self, int threads, bool profile, int device, bool device_results) {
            ContextOptions options;
            options.threads = threads, options.profile = profile;
            options.device = device, options.device_results = device_results;
            return std::make_unique<BoundContext>(self.exe, std::move(options));
          },
          "threads"_a = 0, "profile"_a = false, "device"_a = 0, "device_results"_a = false,
          "threads: 0 takes the affinity mask and the CPU quota. device: which GPU, as CUDA counts them. "
          "device_results: outputs that nobody binds stay in its memory.")
      .def(
          "to_device",
          [](const E& self, nb::handle object, int device) {
            const HeldArray array = array_in_place("array", object, false);
            DeviceArray made(self.exe, array.view.dtype, array.view.shape, device);
            made.write(array.view);
            return made;
          },
          "array"_a, "device"_a = 0, "A copy in the memory of the GPU, for those without torch or cupy.")
      .def("__repr__", [](const E& self) {
        return "<opfuse.Executable " + names_of(self.exe.inputs()) + " -> " + names_of(self.exe.outputs()) + ">";
      });
  bind_kinds_of_runs(executable);
  bind_compile(m);
  bind_optimize(m);
}

}  // namespace opfuse::python
