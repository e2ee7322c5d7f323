// Compiled where a header of ONNX Runtime is given (-DORT_INCLUDE_DIR): what ort_abi.hpp says is what the header says.
#include <onnxruntime_c_api.h>

#include "ort_abi.hpp"

#define ORT_ENTRY(table, name, place, ...) \
  static_assert(offsetof(::table, name) == (place) * sizeof(void*), #table "::" #name " is elsewhere");
#include "ort_entries.def"
#undef ORT_ENTRY

namespace {
using namespace opfuse::ort;

#define SAME(ours, theirs, member, name) static_assert(offsetof(ours, member) == offsetof(theirs, name))
SAME(NodeComputeInfo, ::OrtNodeComputeInfo, CreateState, CreateState);
SAME(NodeComputeInfo, ::OrtNodeComputeInfo, Compute, Compute);
SAME(NodeComputeInfo, ::OrtNodeComputeInfo, ReleaseState, ReleaseState);
SAME(FusionOptions, ::OrtNodeFusionOptions, drop_constant_initializers, drop_constant_initializers);
SAME(Ep, ::OrtEp, GetName, GetName);
SAME(Ep, ::OrtEp, GetCapability, GetCapability);
SAME(Ep, ::OrtEp, Compile, Compile);
SAME(Ep, ::OrtEp, ReleaseNodeComputeInfos, ReleaseNodeComputeInfos);
SAME(Ep, ::OrtEp, optional, GetPreferredDataLayout);
SAME(EpFactory, ::OrtEpFactory, GetName, GetName);
SAME(EpFactory, ::OrtEpFactory, GetSupportedDevices, GetSupportedDevices);
SAME(EpFactory, ::OrtEpFactory, CreateEp, CreateEp);
SAME(EpFactory, ::OrtEpFactory, ReleaseEp, ReleaseEp);
SAME(EpFactory, ::OrtEpFactory, GetVersion, GetVersion);
SAME(EpFactory, ::OrtEpFactory, ValidateCompiledModel, ValidateCompiledModelCompatibilityInfo);
SAME(EpFactory, ::OrtEpFactory, CreateAllocator, CreateAllocator);
SAME(EpFactory, ::OrtEpFactory, CreateDataTransfer, CreateDataTransfer);
SAME(EpFactory, ::OrtEpFactory, IsStreamAware, IsStreamAware);
SAME(EpFactory, ::OrtEpFactory, CreateSyncStream, CreateSyncStreamForDevice);
#undef SAME
// The members of version 23 end where `optional` does.
static_assert(sizeof(Ep) == offsetof(::OrtEp, GetKernelRegistry));
static_assert(kFail == ORT_FAIL && kInvalidArgument == ORT_INVALID_ARGUMENT && kCpu == OrtHardwareDeviceType_CPU);
static_assert(tensor == static_cast<int>(ORT_OP_ATTR_TENSOR) && strings == static_cast<int>(ORT_OP_ATTR_STRINGS));
static_assert(kInfo == ORT_LOGGING_LEVEL_INFO && kWarning == ORT_LOGGING_LEVEL_WARNING);
}  // namespace
