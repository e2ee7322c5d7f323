// Runs a program in the region interpreter, in doubles. Root buffers hold whole logical tensors; a view is
// cut out before a launch reads it and put back after a launch wrote it, so views are proven right as well.
#include <algorithm>
#include <utility>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "program/program.hpp"

namespace opfuse {
namespace {

/// Calls copy(offset in the whole, offset in the part, elements) for each innermost run of a box.
template <class Copy>
void for_box(const std::vector<int64_t>& whole, const std::vector<int64_t>& at, const std::vector<int64_t>& part,
             const Copy& copy) {
  const size_t rank = whole.size();
  int64_t runs = 1;
  for (size_t i = 0; i + 1 < rank; ++i) runs *= part[i];
  const int64_t length = rank == 0 ? 1 : part[rank - 1];
  for (int64_t run = 0; run < runs; ++run) {
    int64_t rest = run, offset = 0, stride = 1;
    for (size_t i = rank; i-- > 0;) {
      int64_t index = at[i];
      if (i + 1 < rank) {
        index += rest % part[i];
        rest /= part[i];
      }
      offset += index * stride;
      stride *= whole[i];
    }
    copy(offset, run * length, length);
  }
}

void copy_element(const Tensor& from, int64_t source, Tensor& to, int64_t target) {
  if (is_float(to.dtype()))
    to.set_real(target, from.real(source));
  else
    set_wrapped(to, target, from.integer(source));
}

SymbolValues symbols_of(const Program& program, const std::vector<Tensor>& inputs) {
  SymbolValues values;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Shape& shape = program.buffers[static_cast<size_t>(program.inputs[i])].type.shape;
    for (size_t d = 0; d < shape.rank(); ++d)
      if (shape[d].op() == DimOp::symbol) values[shape[d].symbol_name()] = inputs[i].dim(d);
  }
  return values;
}

class ProgramRun {
 public:
  ProgramRun(const Program& program, const std::vector<Tensor>& inputs, Precision precision)
      : program_(program),
        precision_(precision),
        symbols_(symbols_of(program, inputs)),
        roots_(program.buffers.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) roots_[static_cast<size_t>(program.inputs[i])] = inputs[i];
  }

  std::vector<Tensor> run() {
    const ImageLoop& loop = program_.image_loop;
    const auto looped = static_cast<size_t>(loop.symbol.empty() ? loop.launches : 0);
    for (image_ = 0; looped > 0 && image_ < loop.from; ++image_)
      for (size_t l = 0; l < looped; ++l) run_launch(program_.launches[l]);
    image_ = 0;
    size_t done = looped;
    for (const StepLoop& loop : program_.step_loops) {
      const auto first = static_cast<size_t>(loop.first);
      for (; done < first; ++done) run_launch(program_.launches[done]);
      run_steps(loop);
      done += static_cast<size_t>(loop.launches);
    }
    for (; done < program_.launches.size(); ++done) run_launch(program_.launches[done]);
    std::vector<Tensor> results;
    for (int output : program_.outputs) results.push_back(load(output));
    return results;
  }

 private:
  const Program& program_;
  Precision precision_;
  SymbolValues symbols_;
  std::vector<Tensor> roots_;
  int64_t image_ = 0;  ///< of the loop
  int64_t moved_ = 0;  ///< slices from the first one, where a launch of a loop of steps looks

  const Buffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }
  std::vector<int64_t> sizes(int index) const { return buffer(index).type.shape.evaluate(symbols_); }
  std::vector<int64_t> offset(int index) const {
    std::vector<int64_t> at = Shape(buffer(index).view_offset).evaluate(symbols_);
    if (image_ == 0 || buffer(root_of(program_, index)).kind == BufferKind::constant) return at;
    const Dim &own = buffer(index).type.shape[0], &whole = buffer(buffer(index).view_of).type.shape[0];
    if (own == Dim(1) && whole == Dim(program_.image_loop.from)) at[0] += image_;
    return at;
  }

  Tensor& root(int index) {
    Tensor& tensor = roots_[static_cast<size_t>(index)];
    if (tensor.dtype() == DType::unknown) {
      if (buffer(index).kind == BufferKind::constant) {
        tensor = buffer(index).constant;
      } else {
        const DType dtype = buffer(index).type.dtype;
        const bool exact = precision_ == Precision::exact && is_float(dtype);
        tensor = Tensor(exact ? DType::f64 : dtype, sizes(index));
      }
    }
    return tensor;
  }

  Tensor load(int index) {
    if (buffer(index).view_of < 0) return root(index);
    const int64_t moved = std::exchange(moved_, 0);
    const Tensor whole = load(buffer(index).view_of);
    if (buffer(index).view_offset.empty()) return whole.reshaped(sizes(index));
    Tensor part(whole.dtype(), sizes(index));
    std::vector<int64_t> at = offset(index);
    if (moved != 0) at[0] += moved;
    for_box(whole.sizes(), at, part.sizes(), [&](int64_t from, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) copy_element(whole, from + i, part, to + i);
    });
    return part;
  }

  void store(int index, const Tensor& value) {
    if (buffer(index).view_of < 0) {
      Tensor& target = root(index);
      OPFUSE_CHECK(target.sizes() == value.sizes(), "buffer {} is stored with another shape", index);
      target = value;
      return;
    }
    const int parent = buffer(index).view_of;
    const int64_t moved = std::exchange(moved_, 0);
    if (buffer(index).view_offset.empty()) return store(parent, value.reshaped(sizes(parent)));
    Tensor whole = load(parent).clone();
    std::vector<int64_t> at = offset(index);
    if (moved != 0) at[0] += moved;
    for_box(whole.sizes(), at, value.sizes(), [&](int64_t to, int64_t from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) copy_element(value, from + i, whole, to + i);
    });
    store(parent, whole);
  }

  void run_steps(const StepLoop& loop) {
    const int64_t steps = loop.steps.evaluate(symbols_);
    for (int64_t step = 0; step < steps; ++step)
      for (int l = 0; l < loop.launches; ++l) {
        const Launch& launch = program_.launches[static_cast<size_t>(loop.first + l)];
        std::vector<Tensor> params;
        for (size_t i = 0; i < launch.buffers.size(); ++i) params.push_back(slice(launch, i, step, loop.backwards));
        std::vector<Tensor> results = interpret(launch.region, params, symbols_, precision_);
        size_t next = 0;
        for (size_t i = 0; i < launch.buffers.size(); ++i) {
          if (launch.region.params[i].role != ParamRole::output) continue;
          moved_ = loop.backwards ? -step : step;
          store(launch.buffers[i], results[next++]);
        }
      }
  }

  /// Parameter `i` in a step.
  Tensor slice(const Launch& launch, size_t i, int64_t step, bool backwards) {
    const StepOperand& operand = launch.steps[i];
    if (operand.before && step == 0) return load(launch.buffers[static_cast<size_t>(operand.first)]);
    const int64_t moved = operand.before ? step - 1 : operand.moves ? step : 0;
    moved_ = backwards ? -moved : moved;
    return load(launch.buffers[i]);
  }

  void run_launch(const Launch& launch) {
    if (launch.reference)
      throw fail(E::uncompilable, "'{}' runs in the graph interpreter, which a program does not contain", launch.name);
    std::vector<Tensor> params;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const auto root = static_cast<size_t>(root_of(program_, launch.buffers[i]));
      const bool fresh = launch.region.params[i].role == ParamRole::output && roots_[root].dtype() == DType::unknown;
      params.push_back(fresh ? Tensor() : load(launch.buffers[i]));
    }
    std::vector<Tensor> results = interpret(launch.region, params, symbols_, precision_);
    size_t next = 0;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      if (launch.region.params[i].role == ParamRole::output) store(launch.buffers[i], results[next++]);
  }
};

}  // namespace

std::vector<Tensor> interpret(const Program& program, const std::vector<Tensor>& inputs, Precision precision) {
  if (inputs.size() != program.inputs.size())
    throw fail(E::bad_binding, "the program has {} inputs, {} were given", program.inputs.size(), inputs.size());
  return ProgramRun(program, inputs, precision).run();
}

}  // namespace opfuse
