// Kernels -> images. For devices every kernel has a cubin of its own, compiled in parallel; the emulated device gets
// one library with all of them.
#include <atomic>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "base/stopwatch.hpp"
#include "cuda/compilers.hpp"
#include "cuda/generator.hpp"

namespace opfuse::cuda {
namespace {

void append(LinkedCode& code, KernelCode& kernel, const std::vector<uint8_t>& image) {
  code.bytes.resize((code.bytes.size() + 63) / 64 * 64);
  kernel.offset = kernel.begin = code.bytes.size();
  kernel.size = image.size();
  code.bytes.insert(code.bytes.end(), image.begin(), image.end());
}

}  // namespace

std::string generator_version() { return fmt::format("cuda {}", OPFUSE_CUDA_SOURCES); }

LinkedCode generate(const std::vector<KernelSpec>& specs, const TargetInfo& target, const CodegenOptions& options) {
  std::vector<KernelText> texts;
  for (const KernelSpec& spec : specs) {
    try {
      texts.push_back(write_kernel(spec, target));
    } catch (Error& error) {
      throw error.during("generate " + kernel_symbol(spec));
    }
  }
  LinkedCode code;
  for (size_t i = 0; i < specs.size(); ++i) {
    KernelCode kernel;
    kernel.symbol = texts[i].symbol;
    kernel.device.grid = texts[i].grid;
    kernel.device.block = texts[i].block;
    kernel.device.launch_shared = texts[i].launch_shared;
    kernel.device.launch_shared_most = texts[i].launch_shared_most;
    kernel.device.maps = texts[i].maps;
    if (options.emit_cuda) kernel.cuda = file_text(texts[i], specs[i], "");
    code.kernels.push_back(std::move(kernel));
  }
  if (options.text_only) return code;
  if (target.emulated) {
    const Stopwatch time;
    const std::vector<uint8_t> image = compile_for_emulation(texts);
    const double share = time.milliseconds() / static_cast<double>(texts.size());
    append(code, code.kernels.at(0), image);
    for (KernelCode& kernel : code.kernels) {
      kernel.compile_ms = share;
      kernel.offset = kernel.begin = code.kernels[0].begin;
      kernel.size = image.size();
    }
    return code;
  }
  std::vector<CompiledKernel> compiled(specs.size());
  std::atomic<size_t> done = 0;
  parallel_for(
      static_cast<int64_t>(specs.size()),
      [&](int64_t index) {
        const auto i = static_cast<size_t>(index);
        const Stopwatch time;
        compiled[i] = compile_for_device(file_text(texts[i], specs[i], ""), texts[i].symbol, target.cuda_arch);
        code.kernels[i].compile_ms = time.milliseconds();
        if (options.progress) options.progress(++done, specs.size());
      },
      options.threads);
  for (size_t i = 0; i < specs.size(); ++i) {
    KernelCode& kernel = code.kernels[i];
    append(code, kernel, compiled[i].image);
    kernel.device.registers = compiled[i].registers;
    kernel.device.shared_bytes = compiled[i].shared_bytes;
    kernel.device.spill_bytes = compiled[i].spill_bytes;
  }
  return code;
}

}  // namespace opfuse::cuda
