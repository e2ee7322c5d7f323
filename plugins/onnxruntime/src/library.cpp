// The two functions that ONNX Runtime looks up in the library, and the factory of its sessions' providers.
#include "ort_calls.hpp"
#include "provider.hpp"

namespace opfuse::ort {
namespace {

struct Factory : EpFactory {
  Factory() {
    GetName = [](const EpFactory*) { return kProviderName; };
    GetVendor = [](const EpFactory*) { return "opfuse"; };
    GetVendorId = [](const EpFactory*) { return uint32_t{0}; };
    GetVersion = [](const EpFactory*) {
      static const std::string text = opfuse::version();
      return text.c_str();
    };
    GetSupportedDevices = [](EpFactory* self, const HardwareDevice* const* devices, size_t count, EpDevice** taken,
                             size_t most, size_t* found) {
      return guarded("looking for devices", [&] {
        *found = 0;
        for (size_t i = 0; i < count && *found < most; ++i)
          if (tables.api(entry::HardwareDevice_Type, devices[i]) == kCpu)
            check(tables.ep(entry::CreateEpDevice, self, devices[i], nullptr, nullptr, &taken[(*found)++]));
      });
    };
    CreateEp = [](EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                  const SessionOptions* session, const Logger* logger, Ep** made) {
      return guarded("starting", [&] { *made = new Provider(options_of(session), logger); });
    };
    ReleaseEp = [](EpFactory*, Ep* provider) { delete static_cast<Provider*>(provider); };
    // Arrays are the host's: ONNX Runtime's own allocator serves, nothing is copied, there are no streams.
    ValidateCompiledModel = [](EpFactory*, const HardwareDevice* const*, size_t, const char*, int* answer) -> Status* {
      *answer = 0;  // nothing is claimed: the .opf is checked when it is loaded
      return nullptr;
    };
    CreateAllocator = [](EpFactory*, const void*, const KeyValuePairs*, void** made) -> Status* {
      *made = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](EpFactory*, void*) {};
    CreateDataTransfer = [](EpFactory*, void** made) -> Status* {
      *made = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const EpFactory*) { return false; };
    CreateSyncStream = [](EpFactory*, const void*, const KeyValuePairs*, void** made) -> Status* {
      *made = nullptr;
      return nullptr;
    };
  }
};

}  // namespace
}  // namespace opfuse::ort

using namespace opfuse::ort;

extern "C" OPFUSE_API Status* CreateEpFactories(const char*, const ApiBase* base, const Logger*, EpFactory** factories,
                                                size_t most, size_t* count) {
  const void* functions = base->GetApi(kApiVersion);
  if (!functions) {  // older: its first functions are the same, and can say so
    *count = 0;
    const Table old(base->GetApi(1));
    return old(entry::CreateStatus, kFail, "opfuse needs ONNX Runtime 1.24 or later");
  }
  tables.api = Table(functions);
  tables.ep = Table(tables.api(entry::GetEpApi));
  tables.editor = Table(tables.api(entry::GetModelEditorApi));
  if (most < 1) return tables.api(entry::CreateStatus, kInvalidArgument, "opfuse: no room for a factory");
  factories[0] = new Factory;
  *count = 1;
  return nullptr;
}

extern "C" OPFUSE_API Status* ReleaseEpFactory(EpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}
