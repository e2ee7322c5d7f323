#include "compute.hpp"

#include <algorithm>
#include <array>

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
  for (const Port& port : outputs_) {
    const std::vector<int64_t> shape = context->output_shape(port.name);
    OrtTensor* value = nullptr;
    check(tables.api(entry::KernelContext_GetOutput, call, port.index, shape.data(), shape.size(), &value));
    context->bind(port.name, view_of(value, port.name));
  }
  context->run();
  give_back(std::move(context));
}

}  // namespace opfuse::ort
