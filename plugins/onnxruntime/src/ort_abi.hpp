// What the plug-in uses of ONNX Runtime's C API, declared here: it is built without ONNX Runtime. Layouts are those of
// version 1.24, which every later one extends; ort_header_check.cpp compares them with a header (-DORT_INCLUDE_DIR).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace opfuse::ort {

struct Status;
struct OrtTensor;  // OrtValue
struct TypeInfo;
struct ShapeInfo;  // OrtTensorTypeAndShapeInfo
struct ValueInfo;
struct Node;
struct Graph;
struct OpAttr;
struct KernelContext;
struct ComputeContext;  // OrtNodeComputeContext
struct SessionOptions;
struct KeyValuePairs;
struct HardwareDevice;
struct EpDevice;
struct Logger;
struct SupportInfo;  // OrtEpGraphSupportInfo

constexpr uint32_t kApiVersion = 24;     ///< of the table of functions: the oldest ONNX Runtime that loads the plug-in
constexpr uint32_t kStructVersion = 23;  ///< of the structs below: their members are read, no later ones

constexpr int kFail = 1, kInvalidArgument = 2, kCpu = 0;
constexpr int kInfo = 1, kWarning = 2;
enum AttributeKind { undefined, integer, integers, real, reals, string, strings, graph, tensor };

struct FusionOptions {
  uint32_t version = kStructVersion;
  bool drop_constant_initializers = false;
};

struct NodeComputeInfo {
  uint32_t version = kStructVersion;
  Status* (*CreateState)(NodeComputeInfo*, ComputeContext*, void**) = nullptr;
  Status* (*Compute)(NodeComputeInfo*, void*, KernelContext*) = nullptr;
  void (*ReleaseState)(NodeComputeInfo*, void*) = nullptr;
};

struct Ep {
  uint32_t version = kStructVersion;
  const char* (*GetName)(const Ep*) = nullptr;
  Status* (*GetCapability)(Ep*, const Graph*, SupportInfo*) = nullptr;
  Status* (*Compile)(Ep*, const Graph**, const Node**, size_t, NodeComputeInfo**, Node**) = nullptr;
  void (*ReleaseNodeComputeInfos)(Ep*, NodeComputeInfo**, size_t) = nullptr;
  void* optional[8] = {};  ///< layouts, dynamic options, run hooks, allocator, stream, compatibility: not provided
};

struct EpFactory {
  uint32_t version = kStructVersion;
  const char* (*GetName)(const EpFactory*) = nullptr;
  const char* (*GetVendor)(const EpFactory*) = nullptr;
  Status* (*GetSupportedDevices)(EpFactory*, const HardwareDevice* const*, size_t, EpDevice**, size_t,
                                 size_t*) = nullptr;
  Status* (*CreateEp)(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                      const SessionOptions*, const Logger*, Ep**) = nullptr;
  void (*ReleaseEp)(EpFactory*, Ep*) = nullptr;
  uint32_t (*GetVendorId)(const EpFactory*) = nullptr;
  const char* (*GetVersion)(const EpFactory*) = nullptr;
  Status* (*ValidateCompiledModel)(EpFactory*, const HardwareDevice* const*, size_t, const char*, int*) = nullptr;
  Status* (*CreateAllocator)(EpFactory*, const void*, const KeyValuePairs*, void**) = nullptr;
  void (*ReleaseAllocator)(EpFactory*, void*) = nullptr;
  Status* (*CreateDataTransfer)(EpFactory*, void**) = nullptr;
  bool (*IsStreamAware)(const EpFactory*) = nullptr;
  Status* (*CreateSyncStream)(EpFactory*, const void*, const KeyValuePairs*, void**) = nullptr;
};

struct ApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

/// A function's place in its table.
template <class Signature>
struct Entry {
  size_t place;
};

/// OrtApi, OrtEpApi or OrtModelEditorApi: `table(entry::Node_GetName, node, &name)` calls the function.
class Table {
 public:
  explicit Table(const void* functions = nullptr) : functions_(static_cast<void* const*>(functions)) {}
  template <class Result, class... Arguments>
  Result operator()(Entry<Result(Arguments...)> entry, std::type_identity_t<Arguments>... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(functions_[entry.place])(arguments...);
  }
  explicit operator bool() const { return functions_ != nullptr; }

 private:
  void* const* functions_;
};

namespace entry {
#define ORT_ENTRY(table, name, place, ...) inline constexpr Entry<__VA_ARGS__> name{place};
#include "ort_entries.def"
#undef ORT_ENTRY
}  // namespace entry

}  // namespace opfuse::ort
