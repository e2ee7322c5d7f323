// One file per kernel:  "OPFK" | u32 version | u64 XXH3 of the rest | JSON header length | JSON header | code
// The header holds the key that the file's name is made of: a file under another name is none of that kernel.
// Files appear complete or not at all (AtomicFile), so concurrent compilers never see half of one.
#include "link/kernel_cache.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/hash.hpp"
#include "link/generators.hpp"
#include "runtime/artifact.hpp"
#include "runtime/tensor_map_json.hpp"

namespace opfuse {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kMagic[4] = {'O', 'P', 'F', 'K'};
constexpr size_t kPrefix = 4 + 4 + 8 + 4;

std::optional<CachedKernel> decode(const std::string& file, const std::string& key) {
  uint32_t version = 0, header_bytes = 0;
  uint64_t hash = 0;
  if (file.size() < kPrefix || std::memcmp(file.data(), kMagic, 4) != 0) return std::nullopt;
  std::memcpy(&version, file.data() + 4, 4);
  std::memcpy(&hash, file.data() + 8, 8);
  std::memcpy(&header_bytes, file.data() + 16, 4);
  if (version != static_cast<uint32_t>(kCodegenVersion) || header_bytes > file.size() - kPrefix) return std::nullopt;
  if (hash_bytes(file.data() + 16, file.size() - 16).low != hash) return std::nullopt;
  const char* text = file.data() + kPrefix;
  const json header = json::parse(text, text + header_bytes, nullptr, /*allow_exceptions=*/false);
  if (header.is_discarded() || header.at("key") != key) return std::nullopt;
  CachedKernel kernel;
  kernel.code.symbol = header.at("symbol");
  kernel.code.parts = Dim::parse(header.at("parts").get<std::string>());
  kernel.code.scratch_bytes = header.at("scratch");
  kernel.code.offset = header.at("entry");
  if (const auto device = header.find("device"); device != header.end()) {
    kernel.code.device.grid = Dim::parse(device->at(0).get<std::string>());
    kernel.code.device.block = device->at(1);
    kernel.code.device.registers = device->at(2);
    kernel.code.device.shared_bytes = device->at(3);
    kernel.code.device.spill_bytes = device->at(4);
    kernel.code.device.launch_shared = Dim::parse(device->at(5).get<std::string>());
    kernel.code.device.launch_shared_most = device->at(6);
    kernel.code.device.maps = tensor_maps_of(device->at(7), SIZE_MAX);
  }
  kernel.bytes.assign(text + header_bytes, file.data() + file.size());
  kernel.code.size = kernel.bytes.size();
  if (kernel.code.offset > kernel.code.size || kernel.code.scratch_bytes < 0) return std::nullopt;
  return kernel;
}

std::string encode(const CachedKernel& kernel, const std::string& key) {
  json header = {{"key", key},
                 {"symbol", kernel.code.symbol},
                 {"parts", kernel.code.parts.text()},
                 {"scratch", kernel.code.scratch_bytes},
                 {"entry", kernel.code.offset}};
  if (const DeviceKernel& d = kernel.code.device; d.block > 0)
    header["device"] = {d.grid.text(),        d.block,
                        d.registers,          d.shared_bytes,
                        d.spill_bytes,        d.launch_shared.text(),
                        d.launch_shared_most, tensor_maps_json(d.maps)};
  const std::string text = header.dump();
  const uint32_t version = static_cast<uint32_t>(kCodegenVersion), header_bytes = static_cast<uint32_t>(text.size());
  std::string tail(reinterpret_cast<const char*>(&header_bytes), 4);
  tail += text;
  tail.append(reinterpret_cast<const char*>(kernel.bytes.data()), kernel.bytes.size());
  const uint64_t hash = hash_bytes(tail.data(), tail.size()).low;
  std::string file(kMagic, 4);
  file.append(reinterpret_cast<const char*>(&version), 4);
  file.append(reinterpret_cast<const char*>(&hash), 8);
  return file + tail;
}

}  // namespace

std::string KernelCache::default_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::string(xdg) + "/opfuse/kernels";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/opfuse/kernels";
  return {};
}

KernelCache::KernelCache(std::string folder, const TargetInfo& target) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  target_ = target.name + target.fingerprint + "\n" + generator_for(target).fingerprint();
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    folder_.clear();
    return;
  }
  ::chmod(folder_.c_str(), 0700);
}

std::string KernelCache::key_of(const KernelSpec& spec, bool brief) const {
  return hash_text(target_ + (brief ? "\nbrief\n" : "\n") + std::to_string(kCodegenVersion) + "\n" + spec.text()).hex();
}

std::string KernelCache::path_of(const std::string& key) const { return folder_ + "/" + key + ".kernel"; }

std::optional<CachedKernel> KernelCache::read(const std::string& key) const {
  try {
    return decode(file_bytes(path_of(key)).value_or(""), key);
  } catch (const std::exception&) {  // a damaged file is an absent one; it will be written again
    return std::nullopt;
  }
}

std::optional<CachedKernel> KernelCache::load(const KernelSpec& spec, bool brief) const {
  if (!enabled()) return std::nullopt;
  std::optional<CachedKernel> found = read(key_of(spec, false));
  if (!found && brief) found = read(key_of(spec, true));
  return found;
}

void KernelCache::store(const KernelSpec& spec, const CachedKernel& kernel, bool brief) const {
  if (!enabled()) return;
  const std::string key = key_of(spec, brief);
  try {
    AtomicFile file(path_of(key));
    file.write(encode(kernel, key));
    file.commit();
  } catch (const Error&) {  // a full disk costs the next compilation time, nothing else
  }
}

}  // namespace opfuse
