#include "runtime/device.hpp"

#include <map>

#include "base/fail.hpp"
#include "device/tensor_maps.hpp"

namespace opfuse {

using cuda::CuPointer;

DeviceProgram::DeviceProgram(const Artifact& artifact, int device)
    : artifact_(artifact), driver_(cuda::driver_for(artifact.target)), device_(device), context_(driver_, device) {
  const InContext here(context_);
  try {
    load_kernels();
    load_constants();
  } catch (...) {
    modules_.clear();  // here, in their context
    constants_ = DeviceMemory();
    throw;
  }
}

void DeviceProgram::load_kernels() {
  std::map<size_t, cuda::CuModule> loaded;
  for (const ArtifactLaunch& launch : artifact_.launches) {
    auto [at, fresh] = loaded.try_emplace(launch.code_offset, nullptr);
    if (fresh) {
      modules_.emplace_back(driver_);
      driver_.check(driver_.cuModuleLoadData(modules_.back().slot(), artifact_.code.data() + launch.code_offset),
                    "loading kernel " + launch.symbol + " (compiled for " + artifact_.target + ")");
      at->second = modules_.back().get();
    }
    cuda::CuFunction function = nullptr;
    driver_.check(driver_.cuModuleGetFunction(&function, at->second, launch.symbol.c_str()),
                  "finding kernel " + launch.symbol);
    if (launch.device.launch_shared_most > 0)
      driver_.check(driver_.cuFuncSetAttribute(function, cuda::kMostLaunchShared,
                                               static_cast<int>(launch.device.launch_shared_most)),
                    "giving shared memory to " + launch.symbol);
    functions_.push_back(function);
  }
}

void DeviceProgram::load_constants() {
  const std::span<const uint8_t> bytes = artifact_.constants;
  constants_ = DeviceMemory(driver_, bytes.size());
  if (bytes.empty()) return;
  DeviceStream stream(driver_);
  driver_.check(driver_.cuStreamCreate(stream.slot(), 0), "making a stream");
  driver_.check(driver_.cuMemcpyHtoDAsync_v2(constants_.address(), bytes.data(), bytes.size(), stream.get()),
                "copying the weights");
  driver_.check(driver_.cuStreamSynchronize(stream.get()), "copying the weights");
}

DeviceProgram::~DeviceProgram() {
  const InContext here(context_);
  modules_.clear();
  constants_ = DeviceMemory();
}

std::vector<cuda::CuTensorMap> DeviceProgram::maps(size_t index, std::span<const CuPointer> pointers,
                                                   const SymbolValues& symbols) const {
  const ArtifactLaunch& l = artifact_.launches[index];
  std::vector<cuda::CuTensorMap> encoded;
  if (l.device.maps.empty() || l.device.grid.evaluate(symbols) <= 0) return encoded;
  for (const TensorMap& map : l.device.maps)
    encoded.push_back(cuda::encode(driver_, map, pointers[static_cast<size_t>(map.buffer)], symbols));
  return encoded;
}

void DeviceProgram::launch(size_t index, std::span<const CuPointer> pointers, std::span<const cuda::CuTensorMap> maps,
                           const SymbolValues& symbols, std::span<const int64_t> symbol_list,
                           cuda::CuStream stream) const {
  const ArtifactLaunch& l = artifact_.launches[index];
  const int64_t grid = l.device.grid.evaluate(symbols);
  if (grid <= 0) return;
  if (grid > int64_t{0x7fffffff})
    throw fail(E::device_failed, "{} needs {} blocks, more than a launch can have", l.name, grid);
  std::vector<void*> arguments;
  for (const CuPointer& p : pointers) arguments.push_back(const_cast<CuPointer*>(&p));
  for (const int64_t& s : symbol_list) arguments.push_back(const_cast<int64_t*>(&s));
  for (const cuda::CuTensorMap& m : maps) arguments.push_back(const_cast<cuda::CuTensorMap*>(&m));
  cuda::CuLaunch config{.grid = {static_cast<unsigned>(grid), 1, 1},
                        .block = {static_cast<unsigned>(l.device.block), 1, 1},
                        .shared_bytes = static_cast<unsigned>(l.device.launch_shared.evaluate(symbols)),
                        .stream = stream};
  driver_.check(driver_.cuLaunchKernelEx(&config, functions_[index], arguments.data(), nullptr), "launching " + l.name);
}

CuPointer DeviceProgram::address_of(const char* p, std::span<const Block> blocks,
                                    std::span<const DeviceMemory> copies) const {
  for (size_t i = 0; i < blocks.size(); ++i)
    if (p == blocks[i].data || (p > blocks[i].data && p < blocks[i].data + blocks[i].bytes))
      return copies[i].address() + static_cast<CuPointer>(p - blocks[i].data);
  const auto* first = reinterpret_cast<const char*>(artifact_.constants.data());
  OPFUSE_CHECK(p >= first && p <= first + artifact_.constants.size(), "an operand outside blocks and constants");
  return constants() + static_cast<CuPointer>(p - first);
}

void DeviceProgram::run_alone(size_t index, std::span<const Block> blocks, std::span<void* const> pointers,
                              const SymbolValues& symbols, std::span<const int64_t> symbol_list) const {
  const InContext here(context_);
  std::vector<DeviceMemory> copies;
  DeviceStream stream(driver_);
  driver_.check(driver_.cuStreamCreate(stream.slot(), 0), "making a stream");
  for (const Block& b : blocks) {
    copies.emplace_back(driver_, b.bytes);
    driver_.check(driver_.cuMemcpyHtoDAsync_v2(copies.back().address(), b.data, b.bytes, stream.get()),
                  "copying an operand");
  }
  std::vector<CuPointer> addresses;
  for (void* pointer : pointers) addresses.push_back(address_of(static_cast<const char*>(pointer), blocks, copies));
  launch(index, addresses, maps(index, addresses, symbols), symbols, symbol_list, stream.get());
  for (size_t i = 0; i < blocks.size(); ++i)
    driver_.check(driver_.cuMemcpyDtoHAsync_v2(blocks[i].data, copies[i].address(), blocks[i].bytes, stream.get()),
                  "copying a result");
  driver_.check(driver_.cuStreamSynchronize(stream.get()), "running " + artifact_.launches[index].name);
}

}  // namespace opfuse
