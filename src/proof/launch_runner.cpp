// Every launch runs alone: its operands are given tensors, stored through the program's own layouts and strides (views
// inside their root buffer), its results are read back the same way. An error of one group can so neither hide in nor
// be blamed on another. Memory that no operand fills is NaN, not zero: what a kernel forgets to store, or reads and
// should not, shows.
#include "proof/launch_runner.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "link/buffer_access.hpp"
#include "runtime/require_features.hpp"

namespace opfuse {

/// Memory of a root buffer, of bytes that are NaN in every float type, between guards.
class LaunchRunner::IsolatedBuffer {
 public:
  explicit IsolatedBuffer(size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kGuard + kAlignment, kMark) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    first_ = memory_.data() + kGuard + (kAlignment - start % kAlignment) % kAlignment;
    std::memset(first_, 0xff, bytes);
  }
  char* data() { return first_; }
  DeviceProgram::Block block() { return {memory_.data(), memory_.size()}; }
  bool intact() const {
    const auto marked = [](char c) { return c == kMark; };
    return std::all_of(memory_.data(), static_cast<const char*>(first_), marked) &&
           std::all_of(static_cast<const char*>(first_) + bytes_, memory_.data() + memory_.size(), marked);
  }

 private:
  static constexpr size_t kGuard = 256, kAlignment = 64;
  static constexpr char kMark = 0x5a;  ///< four of them are 1.5e16
  size_t bytes_;
  std::vector<char> memory_;
  char* first_;
};

static const ArtifactProgram& program_of(const Artifact& artifact, int variant) {
  if (variant < 0) return artifact;
  return artifact.variants.at(static_cast<size_t>(variant));
}

LaunchRunner::LaunchRunner(const Program& program, const Executable& executable, const SymbolValues& symbols,
                           int variant)
    : program_(program),
      state_(executable.artifact()),
      compiled_(program_of(state_.artifact, variant)),
      symbols_(symbols) {
  require_features(state_.artifact);
  for (const std::string& name : program.symbols) symbol_list_.push_back(symbols.at(name));
}

LaunchRunner::Root LaunchRunner::root_of(int buffer) const {
  const ArtifactBuffer& b = compiled_.buffers[static_cast<size_t>(buffer)];
  Root root{opfuse::root_of(program_, buffer), 0};
  const ArtifactBuffer& r = compiled_.buffers[static_cast<size_t>(root.buffer)];
  root.offset = b.offset.evaluate(symbols_) - r.offset.evaluate(symbols_);
  return root;
}

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

/// Memory for a parameter, with `tensor` in it where it is an operand. Constants stay where the artifact has them
/// unless a tensor is given.
void* LaunchRunner::place(const Launch& launch, size_t param, const Tensor* tensor, Roots& roots) const {
  const int index = launch.buffers[param];
  const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
  const Root root = root_of(index);
  const ArtifactBuffer& r = compiled_.buffers[static_cast<size_t>(root.buffer)];
  if (r.storage == Storage::constant && !tensor)
    return const_cast<uint8_t*>(state_.artifact.constants.data()) +
           compiled_.buffers[static_cast<size_t>(index)].offset.evaluate(symbols_);
  IsolatedBuffer& memory =
      roots.try_emplace(root.buffer, static_cast<size_t>(r.bytes.evaluate(symbols_))).first->second;
  char* at = memory.data() + root.offset;
  if (!tensor) return at;
  if (r.storage == Storage::constant) {
    const Tensor packed = buffer.layout.is_dense() ? *tensor : pack(*tensor, buffer.layout);
    copy_bytes(at, packed.data(), packed.bytes());
  } else {
    BufferAccess(buffer, symbols_).store(*tensor, at);
  }
  return at;
}

/// Two operands may share memory (a part of a larger one): what counts is what lies there in the end.
std::vector<Tensor> LaunchRunner::operands_of(const Launch& launch, const std::vector<void*>& pointers,
                                              const Operand& operand) const {
  std::vector<Tensor> tensors(launch.buffers.size());
  for (size_t p = 0; p < launch.buffers.size(); ++p) {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(launch.buffers[p])];
    if (launch.region.params[p].role == ParamRole::input && buffer.kind != BufferKind::constant) {
      tensors[p] = BufferAccess(buffer, symbols_).load(pointers[p]);
    } else if (launch.region.params[p].role != ParamRole::output) {
      const Tensor* given = operand(launch, p);
      tensors[p] = given ? *given : buffer.constant;
    }
  }
  return tensors;
}

void LaunchRunner::call(size_t index, const std::vector<void*>& pointers, Roots& roots) {
  const ArtifactLaunch& compiled = compiled_.launches[index];
  if (state_.artifact.on_device()) {
    std::vector<DeviceProgram::Block> blocks;
    for (auto& [buffer, memory] : roots) blocks.push_back(memory.block());
    state_.device(0)->run_alone(index, blocks, pointers, symbols_, symbol_list_);
    return;
  }
  Memory scratch(static_cast<size_t>(compiled.scratch_bytes) + 64, nullptr);
  std::memset(scratch.data(), 0xff, scratch.bytes());
  const int64_t parts = compiled.parts.evaluate(symbols_);
  std::vector<void*> all = pointers;
  for (size_t p = pointers.size(); p < compiled.buffers.size(); ++p)  // the launch's size (kernel/launch_size.hpp)
    all.push_back(const_cast<uint8_t*>(state_.artifact.constants.data()) +
                  compiled_.buffers[static_cast<size_t>(compiled.buffers[p])].offset.evaluate(symbols_));
  for (int64_t part = 0; part < parts; ++part)
    state_.entry(compiled)(all.data(), symbol_list_.data(), scratch.data(), part, parts);
}

LaunchRun LaunchRunner::run(const std::vector<size_t>& together, const Operand& operand) {
  LaunchRun run;
  Roots roots;
  std::vector<void*> pointers;
  for (const size_t l : together) {
    const Launch& launch = program_.launches[l];
    pointers.assign(launch.buffers.size(), nullptr);
    for (const bool results : {true, false})  // operands last: a result may share their memory
      for (size_t p = 0; p < launch.buffers.size(); ++p)
        if ((launch.region.params[p].role == ParamRole::output) == results)
          pointers[p] = place(launch, p, results ? nullptr : operand(launch, p), roots);
    run.operands.push_back(operands_of(launch, pointers, operand));
    call(l, pointers, roots);
  }
  const Launch& last = program_.launches[together.back()];
  for (size_t p = 0; p < last.buffers.size(); ++p) {
    if (last.region.params[p].role != ParamRole::output) continue;
    const Buffer& buffer = program_.buffers[static_cast<size_t>(last.buffers[p])];
    const BufferAccess access(buffer, symbols_);
    run.results.push_back(
        {last.buffers[p], buffer.name, access.load(pointers[p]), access.padding_is_zero(pointers[p])});
  }
  const bool intact = std::all_of(roots.begin(), roots.end(), [](const auto& r) { return r.second.intact(); });
  OPFUSE_CHECK(intact, "kernel of {} wrote outside its buffers", last.name);
  return run;
}

int LaunchRunner::sliced(const Launch& launch, size_t param) const {
  const int box = launch.buffers[param];
  if (launch.steps.empty() || !(launch.steps[param].moves || launch.steps[param].before)) return box;
  return program_.buffers[static_cast<size_t>(box)].view_of;
}

/// Memory for all slices of a parameter, with `tensor` in it; returns where the first step's slice lies.
char* LaunchRunner::place_slices(const Launch& launch, size_t param, const Tensor* tensor, Roots& roots) const {
  const int box = launch.buffers[param], whole = sliced(launch, param);
  const Root root = root_of(box);
  const ArtifactBuffer& r = compiled_.buffers[static_cast<size_t>(root.buffer)];
  if (r.storage == Storage::constant && !tensor)
    return reinterpret_cast<char*>(const_cast<uint8_t*>(state_.artifact.constants.data())) +
           compiled_.buffers[static_cast<size_t>(box)].offset.evaluate(symbols_);
  IsolatedBuffer& memory =
      roots.try_emplace(root.buffer, static_cast<size_t>(r.bytes.evaluate(symbols_))).first->second;
  const Buffer& buffer = program_.buffers[static_cast<size_t>(whole)];
  if (tensor && r.storage == Storage::constant) {
    const Tensor packed = buffer.layout.is_dense() ? *tensor : pack(*tensor, buffer.layout);
    copy_bytes(memory.data() + root_of(whole).offset, packed.data(), packed.bytes());
  } else if (tensor) {
    BufferAccess(buffer, symbols_).store(*tensor, memory.data() + root_of(whole).offset);
  }
  return memory.data() + root.offset;
}

/// Where the buffer of all steps begins, when `first` is the slice of the first one.
const char* LaunchRunner::start_of(const Launch& launch, size_t param, const char* first) const {
  return first - root_of(launch.buffers[param]).offset + root_of(sliced(launch, param)).offset;
}

/// The slices of the steps before: `initial`, then all but the last.
static Tensor shifted(const Tensor& all, const Tensor& initial, bool backwards) {
  Tensor before(all.dtype(), all.sizes());
  const int64_t slice = initial.elements(), steps = slice > 0 ? all.elements() / slice : 0;
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t from = backwards ? t + 1 : t - 1;
    const bool starts = from < 0 || from == steps;
    for (int64_t i = 0; i < slice; ++i)
      before.set_real(t * slice + i, (starts ? initial : all).real(starts ? i : from * slice + i));
  }
  return before;
}

/// What a parameter was at every step; what does not move, once.
Tensor LaunchRunner::operand_of_steps(const Launch& launch, size_t param, const std::vector<char*>& first,
                                      const Operand& operand, bool backwards) const {
  const Buffer& whole = program_.buffers[static_cast<size_t>(sliced(launch, param))];
  Tensor all;
  if (whole.kind == BufferKind::constant) {
    const Tensor* given = operand(launch, param);
    all = given ? *given : whole.constant;
  } else {
    all = BufferAccess(whole, symbols_).load(start_of(launch, param, first[param]));
  }
  const StepOperand& step = launch.steps[param];
  if (!step.before) return all;
  return shifted(all, operand_of_steps(launch, static_cast<size_t>(step.first), first, operand, backwards), backwards);
}

LoopRun LaunchRunner::run_steps(const Body& loop, const Operand& operand) {
  const auto begin = static_cast<size_t>(loop.first), count = static_cast<size_t>(loop.launches);
  const auto is_result = [](const Launch& l, size_t p) { return l.region.params[p].role == ParamRole::output; };
  Roots given, stored;
  std::vector<std::vector<char*>> first(count);
  for (size_t k = 0; k < count; ++k) {
    const Launch& launch = program_.launches[begin + k];
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      const Tensor* tensor = is_result(launch, p) ? nullptr : operand(launch, p);
      first[k].push_back(place_slices(launch, p, tensor, tensor ? given : stored));
    }
  }
  for (int64_t step = 0, steps = loop.times.evaluate(symbols_); step < steps; ++step)
    for (size_t k = 0; k < count; ++k) {
      const ArtifactLaunch& compiled = compiled_.launches[begin + k];
      std::vector<void*> pointers;
      for (size_t p = 0; p < first[k].size(); ++p) {
        const ArtifactLaunch::Step& s = compiled.steps[p];
        const bool before = s.first >= 0;  // the state before the first step is an operand of its own
        pointers.push_back(before && step == 0 ? first[k][static_cast<size_t>(s.first)]
                                               : first[k][p] + (before ? step - 1 : step) * s.bytes.evaluate(symbols_));
      }
      call(begin + k, pointers, stored);
    }
  LoopRun run;
  for (size_t k = 0; k < count; ++k) {
    const Launch& launch = program_.launches[begin + k];
    run.operands.emplace_back(launch.buffers.size());
    run.results.emplace_back();
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      if (!is_result(launch, p)) {
        run.operands[k][p] = operand_of_steps(launch, p, first[k], operand, loop.backwards);
        continue;
      }
      const int whole = sliced(launch, p);
      const Buffer& buffer = program_.buffers[static_cast<size_t>(whole)];
      const char* at = start_of(launch, p, first[k][p]);
      run.results[k].push_back({whole, buffer.name, BufferAccess(buffer, symbols_).load(at), true});
    }
  }
  for (const Roots* roots : {&given, &stored})
    for (const auto& [buffer, memory] : *roots)
      OPFUSE_CHECK(memory.intact(), "a kernel of {} wrote outside its buffers", program_.launches[begin].name);
  return run;
}

std::vector<Tensor> LaunchRunner::run_on_device(size_t index, const std::vector<Tensor>& operands,
                                                const Node& piece) const {
  std::vector<Tensor> arrays = operands;
  for (const Value* v : piece.outputs) {
    std::vector<int64_t> sizes;
    for (const Dim& dim : v->type.shape.dims) sizes.push_back(dim.evaluate(symbols_));
    arrays.emplace_back(v->type.dtype, sizes);
  }
  // Twice as many pointers: places that name values on the device, then the host's arrays (link/placed_launch.cpp).
  std::vector<void*> pointers;
  std::vector<char> places(arrays.size());
  for (char& place : places) pointers.push_back(&place);
  for (Tensor& array : arrays) pointers.push_back(array.mutable_data());
  compiled_.launches[index].host(pointers, symbols_);
  return {arrays.begin() + static_cast<std::ptrdiff_t>(operands.size()), arrays.end()};
}

}  // namespace opfuse
