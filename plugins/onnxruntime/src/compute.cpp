#include "compute.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

/// ONNX's numbers of element types that opfuse has arrays of; 0 for none.
constexpr std::array<DType, 25> kTypes = {
    DType::unknown,    DType::f32,     DType::u8,       DType::i8,         DType::u16,
    DType::i16,        DType::i32,     DType::i64,      DType::unknown,    DType::boolean,
    DType::f16,        DType::f64,     DType::u32,      DType::u64,        DType::unknown,
    DType::unknown,    DType::bf16,    DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
    DType::f8e5m2fnuz, DType::unknown, DType::unknown,  DType::unknown,    DType::f8e8m0};

ArrayView view_of(const OrtTensor* value, const std::string& name) {
  ArrayView array;
  int type = 0;
  const int64_t* sizes = nullptr;
  size_t rank = 0;
  check(tables.api(entry::GetTensorElementTypeAndShapeDataReference, value, &type, &sizes, &rank));
  array.dtype = type > 0 && size_t(type) < kTypes.size() ? kTypes[size_t(type)] : DType::unknown;
  if (array.dtype == DType::unknown) throw Failure("\"" + name + "\" has an element type that opfuse does not take");
  array.shape.assign(sizes, sizes + rank);
  array.data = get<void*>(entry::GetTensorMutableData, const_cast<OrtTensor*>(value));
  return array;
}

size_t bytes_of(const ArrayView& array) {  // elements of fewer bits than a byte have one each
  size_t bytes = 1;
  for (const DType two : {DType::u16, DType::i16, DType::f16, DType::bf16})
    if (array.dtype == two) bytes = 2;
  for (const DType four : {DType::u32, DType::i32, DType::f32})
    if (array.dtype == four) bytes = 4;
  for (const DType eight : {DType::u64, DType::i64, DType::f64})
    if (array.dtype == eight) bytes = 8;
  for (const int64_t size : array.shape) bytes *= size_t(size);
  return bytes;
}

size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw Failure("the compiled part has \"" + name + "\", the session's node has not");
  return size_t(at - names.begin());
}

}  // namespace

PartRunner::PartRunner(Executable executable, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs, int threads)
    : executable_(std::move(executable)) {
  options_.threads = threads;
  for (const TensorInfo& info : executable_.inputs()) inputs_.push_back({info.name, index_of(inputs, info.name)});
  for (const TensorInfo& info : executable_.outputs()) outputs_.push_back({info.name, index_of(outputs, info.name)});
  CreateState = [](NodeComputeInfo* self, ComputeContext*, void** state) -> Status* {
    *state = self;
    return nullptr;
  };
  ReleaseState = [](NodeComputeInfo*, void*) {};
  Compute = [](NodeComputeInfo* self, void*, KernelContext* call) {
    return guarded("running", [&] { static_cast<PartRunner*>(self)->run(call); });
  };
  give_back(take());  // the first run finds its threads and memory
}

std::unique_ptr<Context> PartRunner::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Context> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>(executable_.create_context(options_));
}

void PartRunner::give_back(std::unique_ptr<Context> context) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
}

void PartRunner::run(KernelContext* call) {
  std::unique_ptr<Context> context = take();
  for (const Port& port : inputs_)
    context->bind(port.name,
                  view_of(get<const OrtTensor*>(entry::KernelContext_GetInput, call, port.index), port.name));
  const auto output = [&](const Port& port, const std::vector<int64_t>& shape) {
    OrtTensor* value = nullptr;
    check(tables.api(entry::KernelContext_GetOutput, call, port.index, shape.data(), shape.size(), &value));
    return view_of(value, port.name);
  };
  std::vector<const Port*> found;  // outputs whose sizes the run finds
  for (const Port& port : outputs_) {
    if (const auto shape = context->known_output_shape(port.name))
      context->bind(port.name, output(port, *shape));
    else
      found.push_back(&port);
  }
  context->run();
  for (const Port* port : found) {
    const ArrayView from = context->output(port->name), to = output(*port, from.shape);
    if (const size_t bytes = bytes_of(from); bytes > 0) std::memcpy(to.data, from.data, bytes);
  }
  give_back(std::move(context));
}

}  // namespace opfuse::ort
