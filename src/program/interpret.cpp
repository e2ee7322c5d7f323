// Runs a program in the region interpreter, in doubles. Root buffers hold whole logical tensors; a view is
// cut out before a launch reads it and put back after a launch wrote it, so views are proven right as well.
#include <algorithm>
#include <utility>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "program/body.hpp"

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
    size_t done = 0;
    for (const Body& body : program_.bodies) {
      const auto first = static_cast<size_t>(body.first), end = first + static_cast<size_t>(body.launches);
      for (; done < first; ++done) run_launch(done, nullptr, 0);
      const int64_t times = always_runs(body) ? body.times.evaluate(symbols_) : 1;
      for (int64_t time = 0; time < times; ++time)
        for (size_t l = first; l < end; ++l) run_launch(l, &body, time);
      done = end;
    }
    for (; done < program_.launches.size(); ++done) run_launch(done, nullptr, 0);
    std::vector<Tensor> results;
    for (int output : program_.outputs) results.push_back(load(output));
    return results;
  }

 private:
  const Program& program_;
  Precision precision_;
  SymbolValues symbols_;
  std::vector<Tensor> roots_;
  int64_t moved_ = 0;  ///< rows from the first box, where a launch of a body looks

  const Buffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }
  std::vector<int64_t> sizes(int index) const { return buffer(index).type.shape.evaluate(symbols_); }
  /// Where a box begins: the one that cuts the first axis has moved.
  std::vector<int64_t> offset(int index) {
    std::vector<int64_t> at = Shape(buffer(index).view_offset).evaluate(symbols_);
    const bool cuts = moved_ != 0 && !(buffer(index).type.shape[0] == buffer(buffer(index).view_of).type.shape[0]);
    if (cuts) at[0] += std::exchange(moved_, 0);
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
    if (buffer(index).view_offset.empty()) return load(buffer(index).view_of).reshaped(sizes(index));
    const std::vector<int64_t> at = offset(index);
    const Tensor whole = load(buffer(index).view_of);
    Tensor part(whole.dtype(), sizes(index));
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
    if (buffer(index).view_offset.empty()) return store(parent, value.reshaped(sizes(parent)));
    const std::vector<int64_t> at = offset(index);
    const int64_t moved = moved_;  // of a box around this one
    Tensor whole = load(parent).clone();
    for_box(whole.sizes(), at, value.sizes(), [&](int64_t to, int64_t from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) copy_element(value, from + i, whole, to + i);
    });
    moved_ = moved;
    store(parent, whole);
  }

  /// Rows that the box of a launch's parameter is away from the first one.
  int64_t rows(int index, const Body& body, int64_t time) const {
    const Shape& shape = buffer(index).type.shape;
    const int64_t rows = shape.rank() == 0 ? 0 : time * shape[0].evaluate(symbols_);
    return body.backwards ? -rows : rows;
  }

  /// Parameter `i` in a part or step of the launch's body.
  Tensor operand(size_t number, size_t i, const Body* body, int64_t time) {
    const std::vector<int>& buffers = program_.launches[number].buffers;
    moved_ = 0;
    if (body) {
      const StepOperand& follows = program_.launches[number].steps[i];
      if (follows.before && time == 0) return load(buffers[static_cast<size_t>(follows.first)]);
      if (follows.before || follows.moves) moved_ = rows(buffers[i], *body, follows.before ? time - 1 : time);
    }
    return load(buffers[i]);
  }

  void run_launch(size_t number, const Body* body, int64_t time) {
    const Launch& launch = program_.launches[number];
    if (launch.reference)
      throw fail(E::uncompilable, "'{}' runs in the graph interpreter, which a program does not contain", launch.name);
    std::vector<Tensor> params;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const auto root = static_cast<size_t>(root_of(program_, launch.buffers[i]));
      const bool fresh = launch.region.params[i].role == ParamRole::output && roots_[root].dtype() == DType::unknown;
      params.push_back(fresh ? Tensor() : operand(number, i, body, time));
    }
    std::vector<Tensor> results = interpret(launch.region, params, symbols_, precision_);
    size_t next = 0;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      if (launch.region.params[i].role != ParamRole::output) continue;
      moved_ = body && launch.steps[i].moves ? rows(launch.buffers[i], *body, time) : 0;
      store(launch.buffers[i], results[next++]);
    }
    moved_ = 0;
  }
};

}  // namespace

std::vector<Tensor> interpret(const Program& program, const std::vector<Tensor>& inputs, Precision precision) {
  if (inputs.size() != program.inputs.size())
    throw fail(E::bad_binding, "the program has {} inputs, {} were given", program.inputs.size(), inputs.size());
  return ProgramRun(program, inputs, precision).run();
}

}  // namespace opfuse
