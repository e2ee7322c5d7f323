// Everything a GPU run does is given to one stream in order: copies in, the graph of all kernels, copies out.
#include "runtime/device.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "device/tensor_maps.hpp"

namespace opfuse {

using cuda::CuPointer;

namespace {

constexpr cuda::CuResult kOutOfMemory = 2;

size_t bytes_of(const TensorType& type, const SymbolValues& symbols) {
  size_t bytes = byte_size(type.dtype);
  for (int64_t size : type.shape.evaluate(symbols)) bytes *= static_cast<size_t>(size);
  return bytes;
}

}  // namespace

// ---- memory -----------------------------------------------------------------------------------------------------

DeviceMemory::DeviceMemory(const cuda::Driver& driver, size_t bytes) : driver_(&driver), bytes_(bytes) {
  const cuda::CuResult result = driver.cuMemAlloc_v2(&address_, std::max<size_t>(bytes, 1));
  if (result == kOutOfMemory)
    throw fail(E::out_of_memory, "{} bytes of device memory could not be had: {}", bytes, driver.words(result))
        .hint("end other programs that use the GPU (nvidia-smi lists them), or run smaller batches and fewer contexts");
  driver.check(result, fmt::format("allocating {} bytes", bytes));
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceMemory::release() {
  if (address_) driver_->cuMemFree_v2(address_);
  address_ = 0;
}

// ---- what contexts share ------------------------------------------------------------------------------------------

DeviceContext::DeviceContext(const cuda::Driver& driver) : driver_(driver) {
  driver_.check(driver_.cuDeviceGet(&device_, 0), "opening the first device");
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "making a context");
}

DeviceProgram::DeviceProgram(const Artifact& artifact)
    : artifact_(artifact), driver_(cuda::driver_for(artifact.target)), context_(driver_) {
  make_current();
  std::map<size_t, cuda::CuModule> loaded;
  for (const ArtifactLaunch& launch : artifact.launches) {
    auto [at, fresh] = loaded.try_emplace(launch.code_offset, nullptr);
    if (fresh) {
      modules_.emplace_back(driver_);
      driver_.check(driver_.cuModuleLoadData(modules_.back().slot(), artifact.code.data() + launch.code_offset),
                    "loading kernel " + launch.symbol + " (compiled for " + artifact.target + ")");
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
  constants_ = DeviceMemory(driver_, artifact.constants.size());
  if (artifact.constants.empty()) return;
  DeviceStream stream(driver_);
  driver_.check(driver_.cuStreamCreate(stream.slot(), 0), "making a stream");
  driver_.check(driver_.cuMemcpyHtoDAsync_v2(constants_.address(), artifact.constants.data(), artifact.constants.size(),
                                             stream.get()),
                "copying the weights");
  driver_.check(driver_.cuStreamSynchronize(stream.get()), "copying the weights");
}

DeviceProgram::~DeviceProgram() { context_.enter(); }

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
  const auto shared = static_cast<unsigned>(l.device.launch_shared.evaluate(symbols));
  std::vector<void*> arguments;
  for (const CuPointer& p : pointers) arguments.push_back(const_cast<CuPointer*>(&p));
  for (const int64_t& s : symbol_list) arguments.push_back(const_cast<int64_t*>(&s));
  for (const cuda::CuTensorMap& m : maps) arguments.push_back(const_cast<cuda::CuTensorMap*>(&m));
  driver_.check(
      driver_.cuLaunchKernel(functions_[index], static_cast<unsigned>(grid), 1, 1,
                             static_cast<unsigned>(l.device.block), 1, 1, shared, stream, arguments.data(), nullptr),
      "launching " + l.name);
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
  make_current();
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

// ---- one context --------------------------------------------------------------------------------------------------

DeviceRun::DeviceRun(std::shared_ptr<const DeviceProgram> program)
    : program_(std::move(program)), stream_(program_->driver()), graph_(program_->driver()) {
  program_->make_current();
  program_->driver().check(program_->driver().cuStreamCreate(stream_.slot(), 1), "making a stream");  // non-blocking
}

DeviceRun::~DeviceRun() { program_->enter(); }

CuPointer DeviceRun::address_of(const ArtifactBuffer& buffer) const {
  const auto offset = static_cast<CuPointer>(buffer.offset.evaluate(symbols_));
  switch (buffer.storage) {
    case Storage::input:
      return inputs_[static_cast<size_t>(buffer.root)].address() + offset;
    case Storage::output:
      return outputs_[static_cast<size_t>(buffer.root)].address() + offset;
    case Storage::constant:
      return program_->constants() + offset;
    case Storage::arena:
      return arena_.address() + offset;
  }
  return 0;
}

void DeviceRun::prepare(const SymbolValues& symbols, const std::vector<int64_t>& symbol_list, size_t arena_bytes) {
  program_->make_current();
  graph_.reset();
  symbols_ = symbols;
  symbol_list_ = symbol_list;
  const Artifact& a = program_->artifact();
  const auto reserve = [&](DeviceMemory& memory, size_t bytes) {
    if (!memory.address() || memory.bytes() < bytes) memory = DeviceMemory(program_->driver(), bytes);
  };
  reserve(arena_, arena_bytes);
  inputs_.resize(a.inputs.size());
  outputs_.resize(a.outputs.size());
  input_bytes_.clear();
  output_bytes_.clear();
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    input_bytes_.push_back(bytes_of(a.inputs[i].type, symbols));
    reserve(inputs_[i], input_bytes_[i]);
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    output_bytes_.push_back(bytes_of(a.outputs[i].type, symbols));
    reserve(outputs_[i], output_bytes_[i]);
  }
  pointers_.clear();
  maps_.clear();
  for (const ArtifactLaunch& launch : a.launches) {
    pointers_.emplace_back();
    for (int b : launch.buffers) pointers_.back().push_back(address_of(a.buffers[static_cast<size_t>(b)]));
    maps_.push_back(program_->maps(maps_.size(), pointers_.back(), symbols));
  }
}

void DeviceRun::capture() {
  const cuda::Driver& d = program_->driver();
  d.check(d.cuStreamBeginCapture_v2(stream_.get(), 1), "capturing the launches");  // 1: this thread's calls only
  DeviceGraph graph(d);
  try {
    for (size_t i = 0; i < pointers_.size(); ++i)
      program_->launch(i, pointers_[i], maps_[i], symbols_, symbol_list_, stream_.get());
  } catch (...) {
    d.cuStreamEndCapture(stream_.get(), graph.slot());  // or the stream takes nothing more
    throw;
  }
  d.check(d.cuStreamEndCapture(stream_.get(), graph.slot()), "capturing the launches");
  d.check(d.cuGraphInstantiateWithFlags(graph_.slot(), graph.get(), 0), "making the graph of the launches");
}

void DeviceRun::run_each(std::vector<int64_t>* launch_ns, const std::function<bool(size_t, size_t)>& progress) {
  const cuda::Driver& d = program_->driver();
  const size_t count = pointers_.size();
  while (launch_ns && events_.size() < count + 1) {
    events_.emplace_back(d);
    d.check(d.cuEventCreate(events_.back().slot(), 0), "making an event");
  }
  const auto record = [&](size_t i) {
    if (launch_ns) d.check(d.cuEventRecord(events_[i].get(), stream_.get()), "recording an event");
  };
  record(0);
  for (size_t i = 0; i < count; ++i) {
    if (progress && !progress(i, count))
      throw fail(E::cancelled, "the run was cancelled before launch {} of {}", i + 1, count);
    program_->launch(i, pointers_[i], maps_[i], symbols_, symbol_list_, stream_.get());
    record(i + 1);
    if (progress) d.check(d.cuStreamSynchronize(stream_.get()), "running " + program_->artifact().launches[i].name);
  }
  d.check(d.cuStreamSynchronize(stream_.get()), "running the model");
  for (size_t i = 0; launch_ns && i < count; ++i) {
    float milliseconds = 0;
    d.check(d.cuEventElapsedTime(&milliseconds, events_[i].get(), events_[i + 1].get()),
            "reading the time of a launch");
    (*launch_ns)[i] = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }
}

void DeviceRun::run(const std::vector<ArrayView>& inputs, const std::vector<ArrayView>& outputs,
                    std::vector<int64_t>* launch_ns, const std::function<bool(size_t, size_t)>& progress) {
  const cuda::Driver& d = program_->driver();
  program_->make_current();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (input_bytes_[i])
      d.check(d.cuMemcpyHtoDAsync_v2(inputs_[i].address(), inputs[i].data, input_bytes_[i], stream_.get()),
              "copying an input");
  if (launch_ns || progress) {
    run_each(launch_ns, progress);
  } else if (!pointers_.empty()) {
    if (!graph_.get()) capture();
    d.check(d.cuGraphLaunch(graph_.get(), stream_.get()), "running the model");
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (output_bytes_[i])
      d.check(d.cuMemcpyDtoHAsync_v2(outputs[i].data, outputs_[i].address(), output_bytes_[i], stream_.get()),
              "copying an output");
  d.check(d.cuStreamSynchronize(stream_.get()), "running the model");
}

}  // namespace opfuse
