// model.onnx -> Graph -> plan -> compile, once; then a run for each set of sizes, on memory between guard pages that is
// filled with NaNs, against the interpreter.
#include "fuzz/check.hpp"

#include <fmt/core.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/fail.hpp"
#include "codegen/fenced.hpp"
#include "driver/pipeline.hpp"
#include "fuzz/sensitivity.hpp"
#include "interp/interpreter.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse::fuzz {
namespace {

/// Memory that ends at a guard page and holds NaNs.
class FencedAllocator : public Allocator {
 public:
  void* allocate(size_t bytes, size_t) override {
    test::Fenced memory(bytes);
    std::memset(memory.data(), 0xFF, bytes);
    void* data = memory.data();
    const std::lock_guard lock(mutex_);
    held_.emplace(data, std::move(memory));
    return data;
  }
  void deallocate(void* memory, size_t) override {
    const std::lock_guard lock(mutex_);
    held_.erase(memory);
  }
  bool intact() const {
    return std::all_of(held_.begin(), held_.end(), [](const auto& entry) { return entry.second.intact(); });
  }

 private:
  std::mutex mutex_;
  std::map<void*, test::Fenced> held_;
};

/// Two workers that run the last part first.
class FallingOrder : public Executor {
 public:
  int workers() const override { return 2; }
  void run(int64_t parts, PartFunction fn, void* context) override {
    for (int64_t part = parts; part-- > 0;) fn(context, part, static_cast<int>(part % 2));
  }
};

Executable compiled(const Graph& graph, const Configuration& c) {
  const Target target = Target::named(c.target);
  const Model model = Model::from_graph(graph.clone());
  CompileOptions options;
  options.cache = false;
  options.compile_threads = 1;
  options.threads = std::max(1, c.threads);
  options.exact = c.exact;
  if (c.form == Form::no_chains) options.no_pass = passes_of_chains();
  options.fused = c.form != Form::unfused;
  if (c.form == Form::unfused) return compile(model, target, options);
  return compile(apply(model, plan(model, target, {.rules = c.form != Form::named})).model, target, options);
}

struct Ran {
  std::vector<Tensor> outputs;
  bool intact = true;
};

Ran run(const Executable& executable, const std::vector<Tensor>& inputs, int threads) {
  FencedAllocator allocator;
  FallingOrder falling;
  ContextOptions options;
  options.threads = threads;
  options.allocator = &allocator;
  if (threads == 0) options.executor = &falling;
  Context context = executable.create_context(options);
  std::vector<test::Fenced> fences;
  for (size_t i = 0; i < inputs.size(); ++i) {
    fences.emplace_back(inputs[i].bytes());
    if (inputs[i].bytes() > 0) std::memcpy(fences.back().data(), inputs[i].data(), inputs[i].bytes());
    context.bind(executable.inputs()[i].name, {inputs[i].dtype(), fences.back().data(), inputs[i].sizes()});
  }
  context.run();
  Ran ran;
  for (const TensorInfo& info : executable.outputs()) {
    const ArrayView view = context.output(info.name);
    ran.outputs.push_back(Tensor::wrap(view.dtype, view.shape, view.data, nullptr).clone());
  }
  ran.intact = allocator.intact();
  for (size_t i = 0; i < fences.size(); ++i)
    ran.intact = ran.intact && fences[i].intact() &&
                 (inputs[i].bytes() == 0 || std::memcmp(fences[i].data(), inputs[i].data(), inputs[i].bytes()) == 0);
  return ran;
}

std::string run_and_judge(const Executable& executable, const Graph& graph, const Task& task, size_t number) {
  const std::vector<Tensor> inputs = inputs_of(graph, task, number);
  const SymbolValues& symbols = task.sizes[number];
  const Ran ran = run(executable, inputs, task.configuration.threads);
  if (!ran.intact) return "bytes outside of an array, or an input, were written";
  if (task.exact)
    if (const auto expected = exactly(graph, inputs, symbols)) return judge(*expected, ran.outputs, graph);
  const double scale = task.configuration.exact ? 1 : 4;  // Winograd, tables
  const std::string first = judge(expected_of(graph, inputs, symbols, {.scale = scale}), ran.outputs, graph);
  if (first.empty()) return first;
  // Leaps that few samples did not show.
  return judge(expected_of(graph, inputs, symbols, {.samples = 30, .scale = 4 * scale, .seed = 2}), ran.outputs, graph);
}

std::string sizes_text(const SymbolValues& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += fmt::format(" {}={}", symbol, size);
  return text;
}

}  // namespace

bool is_refusal(const Diagnostic& d) {
  static const std::set<std::string> kNames = {"unsupported_op",    "unsupported_attribute", "unsupported_dtype",
                                               "unsupported_shape", "uncompilable",          "unknown_dimension"};
  return kNames.contains(d.name);
}

Task task_of(uint64_t seed, const DrawOptions& options, const Drawn& drawn) {
  Task task{configuration_of(seed, options), seed, options.exact, {drawn.symbols}, drawn.data};
  if (!drawn.graph.symbols().empty()) {
    Random random(seed, "sizes");
    SymbolValues ones = drawn.symbols, others = drawn.symbols;
    for (auto& [symbol, size] : ones) size = 1;
    for (auto& [symbol, size] : others) size = 2 * random.between(0, 9) + 1;
    task.sizes.push_back(others);
    task.sizes.push_back(ones);
  }
  return task;
}

std::vector<Tensor> inputs_of(const Graph& graph, const Task& task, size_t run) {
  Random random(task.seed + run, "inputs");
  std::vector<Tensor> inputs;
  for (const Value* input : graph.inputs()) {
    const std::vector<int64_t> sizes = input->type.shape.evaluate(task.sizes[run]);
    const auto recorded = task.data.find(input->name);
    if (run == 0 && recorded != task.data.end() && recorded->second.sizes() == sizes) {
      inputs.push_back(recorded->second.cast(input->type.dtype));
      continue;
    }
    Tensor tensor(input->type.dtype, sizes);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (is_float(tensor.dtype()))
        tensor.set_real(i, task.exact ? static_cast<double>(random.between(-4, 4)) : random.normal());
      else
        tensor.set_integer(i, random.between(0, tensor.dtype() == DType::boolean ? 1 : 9));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// The one rule of open extents alone: a pool that strides, rounded down, holds a window.
bool asks_for_a_window(const Error& error) {
  return error.diagnostic().message.find("that --dim fixes is cut") != std::string::npos;
}

Outcome check(const Graph& graph, const Task& task) {
  try {
    const Graph read = read_onnx_bytes(write_onnx_bytes(graph, {.opset = 21}));
    const Executable executable = compiled(read, task.configuration);
    for (size_t number = 0; number < task.sizes.size(); ++number) {
      try {
        const std::string problem = run_and_judge(executable, graph, task, number);
        if (!problem.empty()) return {Kind::wrong, problem + sizes_text(task.sizes[number])};
      } catch (const Error& error) {
        if (number > 0 && asks_for_a_window(error)) continue;
        // Sizes that the model itself does not take: the interpreter refuses them too.
        try {
          interpret(graph, inputs_of(graph, task, number), {.symbols = task.sizes[number]});
        } catch (const Error&) {
          if (number == 0 || error.diagnostic().name == "internal") throw error;
          continue;
        }
        return {Kind::error, error.diagnostic().text() + sizes_text(task.sizes[number])};
      }
    }
    return {};
  } catch (const Error& error) {
    if (is_refusal(error.diagnostic())) return {Kind::refused, error.diagnostic().text()};
    return {Kind::error, error.diagnostic().text()};
  } catch (const std::exception& error) {
    return {Kind::error, error.what()};
  }
}

}  // namespace opfuse::fuzz
