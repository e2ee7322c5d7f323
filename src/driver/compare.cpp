// Every launch runs alone: its operands are the interpreter's tensors, stored through the program's own layouts
// and strides (views inside their root buffer), its results are read back the same way. An error of one group
// can so neither hide in nor be blamed on another.
#include "driver/compare.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "driver/buffer_access.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {

/// Zeroed memory of a root buffer with guard bytes behind it.
class IsolatedBuffer {
 public:
  explicit IsolatedBuffer(size_t bytes) : bytes_(bytes), memory_(bytes + kGuard, 0) {
    std::fill(memory_.begin() + static_cast<std::ptrdiff_t>(bytes), memory_.end(), kMark);
  }
  char* data() { return memory_.data(); }
  size_t bytes() const { return memory_.size(); }  ///< with the guard
  bool intact() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_), memory_.end(),
                       [](char c) { return c == kMark; });
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr char kMark = 0x5a;
  size_t bytes_;
  std::vector<char> memory_;
};

struct Root {
  int buffer = -1;
  int64_t offset = 0;  ///< bytes from the root's start
};

class LaunchRunner {
 public:
  LaunchRunner(const Program& program, const Executable& executable, const SymbolValues& symbols)
      : program_(program), state_(executable.artifact()), symbols_(symbols) {
    for (const std::string& name : program.symbols) symbol_list_.push_back(symbols.at(name));
  }

  GroupComparison run(size_t index, const std::map<std::string, Tensor>& values, const CompareOptions& options);

 private:
  std::vector<size_t> writers_with(size_t index) const;
  std::vector<void*> bind(const Launch& launch, const std::map<std::string, Tensor>& values,
                          std::map<int, IsolatedBuffer>& roots);
  Root root_of(int buffer) const {
    const ArtifactBuffer& b = state_.artifact.buffers[static_cast<size_t>(buffer)];
    Root root{opfuse::root_of(program_, buffer), 0};
    const ArtifactBuffer& r = state_.artifact.buffers[static_cast<size_t>(root.buffer)];
    root.offset = b.offset.evaluate(symbols_) - r.offset.evaluate(symbols_);
    return root;
  }
  /// A part of a concatenation ("y[1]") is no value of the graph: the launch that copies it there has its operand's.
  const Tensor& value_of(const Buffer& buffer, const Launch& launch,
                         const std::map<std::string, Tensor>& values) const {
    auto at = values.find(buffer.name);
    if (at == values.end() && launch.buffers.size() == 2) {
      const Buffer& source = program_.buffers[static_cast<size_t>(launch.buffers[0])];
      if (source.kind == BufferKind::constant) return source.constant;
      at = values.find(source.name);
    }
    OPFUSE_CHECK(at != values.end(), "buffer '{}' of {} has no value in the graph", buffer.name, launch.name);
    return at->second;
  }

  const Program& program_;
  ExecutableState state_;
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;
};

void compare_output(const BufferAccess& access, const void* origin, const Tensor& want, GroupComparison& result) {
  const Difference d = difference(access.load(origin), want);
  if (result.output.empty() || d.relative() > result.difference.relative()) result.difference = d;
  result.padding_zero = result.padding_zero && access.padding_is_zero(origin);
}

/// Launches up to `index` that write what it writes (the phases of a transposed convolution each store a part of
/// one result): they are compared together, at the last of them.
std::vector<size_t> LaunchRunner::writers_with(size_t index) const {
  const auto results = [&](size_t launch) {
    std::vector<int> buffers;
    const Launch& l = program_.launches[launch];
    if (!l.reference)
      for (size_t p = 0; p < l.buffers.size(); ++p)
        if (l.region.params[p].role == ParamRole::output) buffers.push_back(l.buffers[p]);
    return buffers;
  };
  const std::vector<int> wanted = results(index);
  std::vector<size_t> writers;
  for (size_t l = 0; l < program_.launches.size(); ++l)
    if (results(l) == wanted) writers.push_back(l);
  return writers;
}

std::vector<void*> LaunchRunner::bind(const Launch& launch, const std::map<std::string, Tensor>& values,
                                      std::map<int, IsolatedBuffer>& roots) {
  std::vector<void*> pointers;
  for (size_t p = 0; p < launch.buffers.size(); ++p) {
    const int index_of_buffer = launch.buffers[p];
    const Buffer& buffer = program_.buffers[static_cast<size_t>(index_of_buffer)];
    const Root root = root_of(index_of_buffer);
    const ArtifactBuffer& r = state_.artifact.buffers[static_cast<size_t>(root.buffer)];
    if (r.storage == Storage::constant) {
      pointers.push_back(const_cast<uint8_t*>(state_.artifact.constants.data()) +
                         state_.artifact.buffers[static_cast<size_t>(index_of_buffer)].offset.evaluate(symbols_));
      continue;
    }
    IsolatedBuffer& memory =
        roots.try_emplace(root.buffer, static_cast<size_t>(r.bytes.evaluate(symbols_))).first->second;
    pointers.push_back(memory.data() + root.offset);
    if (launch.region.params[p].role == ParamRole::input)
      BufferAccess(buffer, symbols_).store(value_of(buffer, launch, values), pointers.back());
  }
  return pointers;
}

GroupComparison LaunchRunner::run(size_t index, const std::map<std::string, Tensor>& values,
                                  const CompareOptions& options) {
  const Launch& launch = program_.launches[index];
  GroupComparison result{launch.name, launch.pattern, {}, launch.sources, {}, true, false};
  const std::vector<size_t> together = launch.reference ? std::vector<size_t>{} : writers_with(index);
  if (launch.reference || together.back() != index) {  // the interpreter itself, or compared with the last part
    result.ok = true;
    return result;
  }
  std::map<int, IsolatedBuffer> roots;
  std::vector<void*> pointers;
  for (size_t l : together) {
    pointers = bind(program_.launches[l], values, roots);
    const ArtifactLaunch& compiled = state_.artifact.launches[l];
    if (state_.artifact.on_device()) {
      std::vector<DeviceProgram::Block> blocks;
      for (auto& [buffer, memory] : roots) blocks.push_back({memory.data(), memory.bytes()});
      state_.device()->run_alone(l, blocks, pointers, symbols_, symbol_list_);
      continue;
    }
    Memory scratch(static_cast<size_t>(compiled.scratch_bytes) + 64, nullptr);
    const int64_t parts = compiled.parts.evaluate(symbols_);
    for (int64_t part = 0; part < parts; ++part)
      state_.entry(compiled)(pointers.data(), symbol_list_.data(), scratch.data(), part, parts);
  }
  for (size_t p = 0; p < launch.buffers.size(); ++p) {
    if (launch.region.params[p].role != ParamRole::output) continue;
    const Buffer& buffer = program_.buffers[static_cast<size_t>(launch.buffers[p])];
    compare_output(BufferAccess(buffer, symbols_), pointers[p], value_of(buffer, launch, values), result);
    result.output = buffer.name;
  }
  const int stored = program_.launches[index].buffers.back();
  const double tolerance =
      tolerance_of(program_.buffers[static_cast<size_t>(stored)].type.dtype, options.group_tolerance);
  const bool intact = std::all_of(roots.begin(), roots.end(), [](const auto& r) { return r.second.intact(); });
  OPFUSE_CHECK(intact, "kernel of {} wrote behind a buffer", launch.name);
  result.ok = result.difference.relative() <= tolerance && result.padding_zero;
  return result;
}

std::string name_of(const Value* value) { return value->name.empty() ? "%" + std::to_string(value->id) : value->name; }

}  // namespace

double tolerance_of(DType dtype, double stated) {
  if (dtype == DType::f16) return std::max(stated, 2e-3);
  if (dtype == DType::bf16) return std::max(stated, 1e-2);
  return stated;
}

bool Comparison::ok() const {
  const auto passed = [](const auto& item) { return item.ok; };
  return std::all_of(groups.begin(), groups.end(), passed) && std::all_of(outputs.begin(), outputs.end(), passed);
}

const GroupComparison* Comparison::worst() const {
  const auto at = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.difference.relative() < b.difference.relative();
  });
  return at == groups.end() ? nullptr : &*at;
}

std::vector<GroupComparison> compare_groups(const Graph& graph, const Program& program, const Executable& executable,
                                            const std::vector<Tensor>& inputs, const CompareOptions& options) {
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[name_of(graph.inputs()[i])] = inputs[i];
  InterpretOptions interpret_options;
  interpret_options.observe = [&](const Value* value, const Tensor& tensor) { values[name_of(value)] = tensor; };
  interpret_options.observe_bodies = true;
  if (options.progress) options.progress("interpret", 0, 0);
  interpret(graph, inputs, interpret_options);
  LaunchRunner runner(program, executable, bind_symbols(graph, inputs));
  std::vector<GroupComparison> results;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (options.progress) options.progress("compare groups", i, program.launches.size());
    results.push_back(runner.run(i, values, options));
  }
  return results;
}

std::vector<Tensor> run_executable(const Executable& executable, const std::vector<Tensor>& inputs,
                                   ContextOptions options) {
  Context context = executable.create_context(std::move(options));
  const auto& infos = executable.inputs();
  if (inputs.size() != infos.size())
    throw fail(E::bad_binding, "the model has {} inputs, {} arrays were given", infos.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    context.bind(infos[i].name, {inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()});
  context.run();
  std::vector<Tensor> results;
  for (const TensorInfo& info : executable.outputs()) {
    const ArrayView view = context.output(info.name);
    results.push_back(Tensor::wrap(view.dtype, view.shape, view.data, nullptr).clone());
  }
  return results;
}

std::vector<OutputComparison> compare_outputs(const Graph& graph, const Executable& executable,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& other_inputs, const CompareOptions& options) {
  if (options.progress) options.progress("compare outputs", 0, 0);
  const std::vector<Tensor> want = interpret(graph, inputs);
  const std::vector<Tensor> got = run_executable(executable, inputs, {.threads = options.threads});
  const std::vector<Tensor> other = run_executable(executable, other_inputs, {.threads = options.threads});
  std::vector<OutputComparison> results;
  for (size_t i = 0; i < want.size(); ++i) {
    OutputComparison result{executable.outputs()[i].name, difference(got[i], want[i]), 0, false};
    if (other[i].sizes() == got[i].sizes()) result.change = difference(other[i], got[i]).relative();
    result.ok = result.difference.relative() <= tolerance_of(want[i].dtype(), options.output_tolerance);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace opfuse
