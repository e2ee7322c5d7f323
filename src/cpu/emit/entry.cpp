// The door of libopfuse_llvm.so.
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/module.hpp"
#include "cpu/llvm_entry.hpp"

extern "C" __attribute__((visibility("default"))) int opfuse_llvm_generate(opfuse::LlvmRequest* request) {
  using namespace opfuse;
  if (request->size != sizeof(LlvmRequest) || request->version != kLlvmEntryVersion) return 1;
  try {
    for (const cpu::Emitter& emitter : cpu::emitters()) request->emitters.emplace_back(emitter.skeleton);
    request->result = cpu::generate_kernels(*request->kernels, *request->target, *request->options);
  } catch (const Error& error) {
    request->error = error.diagnostic();
  } catch (const std::exception& error) {
    Diagnostic d;
    d.code = "E7001";
    d.name = "internal";
    d.message = error.what();
    request->error = d;
  }
  return 0;
}
