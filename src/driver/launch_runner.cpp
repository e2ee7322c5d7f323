// Every launch runs alone: its operands are the oracle's tensors, stored through the program's own layouts
// and strides (views inside their root buffer), its results are read back the same way. An error of one group
// can so neither hide in nor be blamed on another.
#include "driver/launch_runner.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "driver/buffer_access.hpp"
#include "fusion/images.hpp"

namespace opfuse {

/// Zeroed memory of a root buffer with guard bytes behind it.
class LaunchRunner::IsolatedBuffer {
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

LaunchRunner::LaunchRunner(const Program& program, const Executable& executable, const SymbolValues& symbols)
    : program_(program), state_(executable.artifact()), symbols_(symbols) {
  for (const std::string& name : program.symbols) symbol_list_.push_back(symbols.at(name));
}

LaunchRunner::Root LaunchRunner::root_of(int buffer) const {
  const ArtifactBuffer& b = state_.artifact.buffers[static_cast<size_t>(buffer)];
  Root root{opfuse::root_of(program_, buffer), 0};
  const ArtifactBuffer& r = state_.artifact.buffers[static_cast<size_t>(root.buffer)];
  root.offset = b.offset.evaluate(symbols_) - r.offset.evaluate(symbols_);
  return root;
}

/// A part of a concatenation ("y[1]") is no value of the graph: the launch that copies it there has its operand's.
const Tensor& LaunchRunner::value_of(const Buffer& buffer, const Launch& launch, const LaunchOracle& oracle) const {
  const Tensor* at = oracle.value(buffer.name);
  if (!at && launch.buffers.size() == 2) {
    const Buffer& source = program_.buffers[static_cast<size_t>(launch.buffers[0])];
    if (source.kind == BufferKind::constant) return source.constant;
    at = oracle.value(source.name);
  }
  OPFUSE_CHECK(at, "buffer '{}' of {} has no value in the graph", buffer.name, launch.name);
  return *at;
}

/// All launches that write what `index` writes (the phases of a transposed convolution each store a part of
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

std::vector<void*> LaunchRunner::bind(const Launch& launch, const LaunchOracle& oracle,
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
      BufferAccess(buffer, symbols_).store(value_of(buffer, launch, oracle), pointers.back());
  }
  return pointers;
}

namespace {

/// Each element against what it may be: the first tensor that is taken, or a later one where that does not fit.
class Nearest {
 public:
  Nearest(const Tensor& got, double tolerance) : got_(got), tolerance_(tolerance) {}

  /// False when nothing is left to explain.
  bool take(const Tensor& want) {
    if (want_.empty()) {
      want_ = want;
      difference_ = difference(got_, want);
      if (difference_.relative() <= tolerance_) return false;
      want_ = want.clone();
      for (int64_t i = 0; i < got_.elements(); ++i)
        if (!fits(i, want_)) open_.push_back(i);
      return true;
    }
    std::erase_if(open_, [&](int64_t i) {
      if (!fits(i, want)) return false;
      want_.set_real(i, want.real(i));
      ++elsewhere_;
      return true;
    });
    return !open_.empty();
  }

  Difference difference_of_nearest() const { return elsewhere_ > 0 ? difference(got_, want_) : difference_; }
  int64_t elsewhere() const { return elsewhere_; }

 private:
  bool fits(int64_t i, const Tensor& want) const {
    return std::fabs(got_.real(i) - want.real(i)) <= tolerance_ * difference_.max_reference;
  }
  const Tensor& got_;
  double tolerance_;
  Tensor want_;
  Difference difference_;
  std::vector<int64_t> open_;  ///< elements that fit none so far
  int64_t elsewhere_ = 0;      ///< those that fit a later one
};

}  // namespace

void LaunchRunner::check(const Launch& launch, const std::vector<void*>& pointers, const LaunchOracle& oracle,
                         double tolerance, GroupComparison& result) const {
  std::vector<std::string> inputs;
  for (size_t p = 0; p < launch.buffers.size(); ++p)
    if (launch.region.params[p].role == ParamRole::input)
      inputs.push_back(program_.buffers[static_cast<size_t>(launch.buffers[p])].name);
  for (size_t p = 0; p < launch.buffers.size(); ++p) {
    if (launch.region.params[p].role != ParamRole::output) continue;
    const Buffer& buffer = program_.buffers[static_cast<size_t>(launch.buffers[p])];
    const BufferAccess access(buffer, symbols_);
    Tensor got = access.load(pointers[p]);
    Nearest nearest(got, tolerance);
    bool taken = false;
    oracle.results(buffer.name, inputs, [&](const Tensor& want) {
      taken = true;
      return nearest.take(want);
    });
    if (!taken) nearest.take(value_of(buffer, launch, oracle));
    const Difference d = nearest.difference_of_nearest();
    result.ties += nearest.elsewhere();
    if (result.output.empty() || d.relative() > result.difference.relative()) result.difference = d;
    result.padding_zero = result.padding_zero && access.padding_is_zero(pointers[p]);
    result.output = buffer.name;
    if (oracle.stored) oracle.stored(buffer.name, std::move(got));
  }
}

GroupComparison LaunchRunner::run(size_t index, const LaunchOracle& oracle, const CompareOptions& options) {
  const Launch& launch = program_.launches[index];
  GroupComparison result{launch.name, launch.pattern, {}, launch.sources};
  const std::vector<size_t> together = launch.reference ? std::vector<size_t>{} : writers_with(index);
  if (launch.reference || together.back() != index) {  // the interpreter itself, or compared with the last part
    result.ok = true;
    return result;
  }
  std::map<int, IsolatedBuffer> roots;
  std::vector<void*> pointers;
  for (size_t l : together) {
    pointers = bind(program_.launches[l], oracle, roots);
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
  const int stored = program_.launches[index].buffers.back();
  const double tolerance =
      tolerance_of(program_.buffers[static_cast<size_t>(stored)].type.dtype, options.group_tolerance);
  check(launch, pointers, oracle, tolerance, result);
  const bool intact = std::all_of(roots.begin(), roots.end(), [](const auto& r) { return r.second.intact(); });
  OPFUSE_CHECK(intact, "kernel of {} wrote behind a buffer", launch.name);
  result.ok = result.difference.relative() <= tolerance && result.padding_zero;
  return result;
}

namespace {

/// Everything that launches of the loop read and store, but for constants, is a value of one image.
LaunchOracle for_image(const LaunchOracle& all, int64_t image) {
  const auto named = [image](const std::string& name) { return name_for_image(name, image); };
  LaunchOracle one;
  one.value = [&all, named](const std::string& name) { return all.value(named(name)); };
  one.results = [&all, named](const std::string& name, const std::vector<std::string>& inputs,
                              const LaunchOracle::Take& take) {
    std::vector<std::string> own;
    for (const std::string& input : inputs) own.push_back(named(input));
    all.results(named(name), own, take);
  };
  if (all.stored)
    one.stored = [&all, named](const std::string& name, Tensor stored) { all.stored(named(name), std::move(stored)); };
  return one;
}

void keep_worst(GroupComparison& worst, GroupComparison other) {
  const bool ok = worst.ok && other.ok, padding = worst.padding_zero && other.padding_zero;
  const int64_t ties = worst.ties + other.ties;
  if (other.difference.relative() > worst.difference.relative()) worst = std::move(other);
  worst.ok = ok, worst.padding_zero = padding, worst.ties = ties;
}

}  // namespace

std::vector<GroupComparison> LaunchRunner::run_all(const LaunchOracle& oracle, const CompareOptions& options) {
  const ImageLoop& loop = program_.image_loop;
  const auto looped = static_cast<size_t>(loop.symbol.empty() ? loop.launches : 0);
  const auto images = static_cast<size_t>(looped > 0 ? loop.from : 0);
  const size_t all = looped * images + program_.launches.size() - looped;
  std::vector<GroupComparison> results;
  size_t done = 0;
  const auto next = [&](size_t index, const LaunchOracle& values) {
    if (options.progress) options.progress("compare groups", done++, all);
    return run(index, values, options);
  };
  for (size_t image = 0; image < images; ++image) {
    const LaunchOracle values = for_image(oracle, static_cast<int64_t>(image));
    for (size_t i = 0; i < looped; ++i) {
      GroupComparison compared = next(i, values);
      if (image == 0)
        results.push_back(std::move(compared));
      else
        keep_worst(results[i], std::move(compared));
    }
  }
  for (size_t i = looped; i < program_.launches.size(); ++i) results.push_back(next(i, oracle));
  return results;
}

}  // namespace opfuse
