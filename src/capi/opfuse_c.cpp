// The C API over Executable and Context. No exception leaves: `guarded` turns each into a status and keeps its text for
// the thread. Structs of callers are read and written within the size that the caller gives.
#include <cstddef>
#include <cstring>
#include <new>

#include "base/fail.hpp"
#include "opfuse/opfuse.h"
#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"

/// What callers see of a tensor, kept with the executable.
struct CTensor {
  std::string name;
  opfuse_type type = OPFUSE_OTHER_TYPE;
  std::vector<int64_t> shape;
};

struct opfuse_executable {
  opfuse::Executable executable;
  std::vector<CTensor> inputs, outputs;
};

struct opfuse_context {
  opfuse::Context context;
  std::vector<int64_t> shape;  ///< of the last opfuse_output
};

namespace opfuse {
namespace {

thread_local std::string last_error;

/// By group of codes, where no single one is named.
opfuse_status status_of(const Diagnostic& d) {
  if (d.name == "unsupported_cpu" || d.name == "no_device") return OPFUSE_UNSUPPORTED;
  if (d.name == "out_of_memory") return OPFUSE_OUT_OF_MEMORY;
  if (d.name == "device_failed") return OPFUSE_DEVICE_FAILED;
  if (d.code.starts_with("E07")) return OPFUSE_BAD_FILE;
  if (d.code.starts_with("E06") || d.code.starts_with("E02")) return OPFUSE_BAD_BINDING;
  return d.code.starts_with("E70") ? OPFUSE_INTERNAL : OPFUSE_BAD_ARGUMENT;
}

opfuse_status refused(opfuse_status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

template <class F>
opfuse_status guarded(F&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return refused(status_of(error.diagnostic()), error.what());
  } catch (const std::bad_alloc&) {
    return refused(OPFUSE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return refused(OPFUSE_INTERNAL, error.what());
  } catch (...) {
    return refused(OPFUSE_INTERNAL, "unknown error");
  }
}

opfuse_status no_argument(const char* name) {
  return refused(OPFUSE_BAD_ARGUMENT, fmt::format("{} is NULL", name).c_str());
}

opfuse_status wrong_size(const char* name, size_t given, size_t least) {
  return refused(OPFUSE_BAD_ARGUMENT,
                 fmt::format("{}.size is {}, at least {} is needed: set it to sizeof", name, given, least).c_str());
}

constexpr opfuse_type kLastType = OPFUSE_BOOL;
static_assert(static_cast<int>(DType::f32) == OPFUSE_F32 && static_cast<int>(DType::boolean) == OPFUSE_BOOL &&
              static_cast<int>(DType::i64) == OPFUSE_I64 && static_cast<int>(DType::u8) == OPFUSE_U8);

opfuse_type type_of(DType dtype) {
  const auto number = static_cast<opfuse_type>(dtype);
  return number <= kLastType ? number : OPFUSE_OTHER_TYPE;
}

std::vector<CTensor> tensors_of(const std::vector<ArtifactTensor>& tensors) {
  std::vector<CTensor> list;
  for (const ArtifactTensor& t : tensors) {
    CTensor& tensor = list.emplace_back(CTensor{t.name, type_of(t.type.dtype), {}});
    for (const Dim& dim : t.type.shape.dims) tensor.shape.push_back(dim.is_constant() ? dim.value() : -1);
  }
  return list;
}

opfuse_status info_of(const std::vector<CTensor>& tensors, size_t index, opfuse_tensor_info* info) {
  if (!info) return no_argument("info");
  if (info->size < sizeof *info) return wrong_size("info", info->size, sizeof *info);
  if (index >= tensors.size()) return refused(OPFUSE_BAD_ARGUMENT, "index is out of range");
  const CTensor& t = tensors[index];
  info->name = t.name.c_str();
  info->type = t.type;
  info->rank = static_cast<int32_t>(t.shape.size());
  info->shape = t.shape.data();
  return OPFUSE_OK;
}

}  // namespace
}  // namespace opfuse

using namespace opfuse;

opfuse_status opfuse_check_abi(uint32_t abi) {
  if (abi >= 1 && abi <= OPFUSE_ABI) return OPFUSE_OK;
  return guarded([&]() -> opfuse_status {
    return refused(
        OPFUSE_OTHER_ABI,
        fmt::format("the caller was compiled for ABI {}, this library has 1 to {}", abi, OPFUSE_ABI).c_str());
  });
}

const char* opfuse_version_text(void) { return OPFUSE_VERSION; }
const char* opfuse_last_error(void) { return last_error.c_str(); }

opfuse_status opfuse_load(const char* path, opfuse_executable** executable) {
  return guarded([&]() -> opfuse_status {
    if (!path) return no_argument("path");
    if (!executable) return no_argument("executable");
    *executable = nullptr;
    Executable loaded = Executable::load(path);
    const Artifact& a = loaded.artifact();
    auto inputs = tensors_of(a.inputs), outputs = tensors_of(a.outputs);
    *executable = new opfuse_executable{std::move(loaded), std::move(inputs), std::move(outputs)};
    return OPFUSE_OK;
  });
}

void opfuse_free(opfuse_executable* executable) { delete executable; }
size_t opfuse_input_count(const opfuse_executable* executable) { return executable ? executable->inputs.size() : 0; }
size_t opfuse_output_count(const opfuse_executable* executable) { return executable ? executable->outputs.size() : 0; }

opfuse_status opfuse_input_info(const opfuse_executable* executable, size_t index, opfuse_tensor_info* info) {
  return guarded([&] { return executable ? info_of(executable->inputs, index, info) : no_argument("executable"); });
}

opfuse_status opfuse_output_info(const opfuse_executable* executable, size_t index, opfuse_tensor_info* info) {
  return guarded([&] { return executable ? info_of(executable->outputs, index, info) : no_argument("executable"); });
}

opfuse_status opfuse_context_create(const opfuse_executable* executable, const opfuse_context_options* options,
                                    opfuse_context** context) {
  return guarded([&]() -> opfuse_status {
    if (!executable) return no_argument("executable");
    if (!context) return no_argument("context");
    *context = nullptr;
    constexpr size_t least = offsetof(opfuse_context_options, device);  // of ABI 1
    if (options && options->size < least) return wrong_size("options", options->size, least);
    ContextOptions with;
    if (options) with.threads = options->threads;
    if (options && options->size >= sizeof *options) {
      with.device = options->device;
      with.device_results = options->device_results != 0;
    }
    *context = new opfuse_context{executable->executable.create_context(std::move(with)), {}};
    return OPFUSE_OK;
  });
}

void opfuse_context_free(opfuse_context* context) { delete context; }

static opfuse_status bind(opfuse_context* context, const char* name, const opfuse_array* array, int32_t device) {
  return guarded([&]() -> opfuse_status {
    if (!context || !name || !array) return no_argument(!context ? "context" : !name ? "name" : "array");
    if (array->size < sizeof *array) return wrong_size("array", array->size, sizeof *array);
    if (array->rank < 0 || (array->rank > 0 && !array->shape))
      return refused(OPFUSE_BAD_ARGUMENT, "the array has no shape for its rank");
    if (array->type < 0 || array->type > kLastType) return refused(OPFUSE_BAD_ARGUMENT, "the array's type is unknown");
    const std::vector<int64_t> shape(array->shape, array->shape + array->rank);
    context->context.bind(name, {static_cast<DType>(array->type), array->data, shape, device});
    return OPFUSE_OK;
  });
}

opfuse_status opfuse_bind(opfuse_context* context, const char* name, const opfuse_array* array) {
  return bind(context, name, array, kHostMemory);
}

opfuse_status opfuse_bind_on_device(opfuse_context* context, const char* name, const opfuse_array* array,
                                    int32_t device) {
  if (device < 0) return refused(OPFUSE_BAD_ARGUMENT, "device is negative; opfuse_bind takes arrays of the host");
  return bind(context, name, array, device);
}

opfuse_status opfuse_run_on(opfuse_context* context, void* stream) {
  return guarded([&]() -> opfuse_status {
    if (!context) return no_argument("context");
    context->context.run_on(stream);
    return OPFUSE_OK;
  });
}

opfuse_status opfuse_wait(opfuse_context* context) {
  return guarded([&]() -> opfuse_status {
    if (!context) return no_argument("context");
    context->context.wait();
    return OPFUSE_OK;
  });
}

opfuse_status opfuse_run(opfuse_context* context) {
  return guarded([&]() -> opfuse_status {
    if (!context) return no_argument("context");
    context->context.run();
    return OPFUSE_OK;
  });
}

opfuse_status opfuse_output(opfuse_context* context, const char* name, opfuse_array* array) {
  return guarded([&]() -> opfuse_status {
    if (!context || !name || !array) return no_argument(!context ? "context" : !name ? "name" : "array");
    if (array->size < sizeof *array) return wrong_size("array", array->size, sizeof *array);
    ArrayView view = context->context.output(name);
    if (!view.data && view.shape.empty())
      return refused(OPFUSE_BAD_BINDING, "the output has no array before opfuse_run");
    context->shape = std::move(view.shape);
    array->type = type_of(view.dtype);
    array->rank = static_cast<int32_t>(context->shape.size());
    array->shape = context->shape.data();
    array->data = view.data;
    return OPFUSE_OK;
  });
}
