// Opening: find the library, find every function, compare versions, open the device, compare names. What a plug-in
// answers is never trusted: statuses outside of the enumeration are failures, null results of calls that went well too.
#include "plugin/plugin.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/fail.hpp"
#include "target/capabilities.hpp"

namespace opfuse {
namespace {

namespace fs = std::filesystem;

/// Where the library may lie, in the order in which it is looked for.
std::vector<fs::path> places_of(const PluginFile& file) {
  const fs::path given = file.library;
  if (given.is_absolute()) return {given};
  std::vector<fs::path> places;
  places.push_back(fs::path(file.file).parent_path() / given);
  const char* const folders = std::getenv("OPFUSE_PLUGINS");
  const std::string all = folders ? folders : "";
  for (size_t at = 0; at < all.size();) {
    const size_t colon = std::min(all.find(':', at), all.size());
    if (colon > at) places.push_back(fs::path(all.substr(at, colon - at)) / given);
    at = colon + 1;
  }
  return places;
}

Error no_plugin(const std::string& target, const std::string& why) {
  return fail(E::no_device, "the plug-in of {}: {}", target, why)
      .hint("OPFUSE_PLUGINS names folders of plug-ins; --fallback runs everything on the cpu target instead");
}

}  // namespace

PluginFile plugin_file_of(const TargetInfo& target) {
  const PlacedText& library = capabilities_of(target).plugin;
  return {target.name, library.text, library.file};
}

std::shared_ptr<Plugin> Plugin::open(const PluginFile& file) {
  if (file.library.empty()) throw no_plugin(file.target, "its file names none ([plugin] library)");
  std::string looked;
  for (const fs::path& place : places_of(file)) {
    std::error_code none;
    if (!fs::exists(place, none)) {
      looked += (looked.empty() ? "" : ", ") + place.string();
      continue;
    }
    std::shared_ptr<Plugin> plugin(new Plugin());
    plugin->path_ = fs::absolute(place).string();
    plugin->load(file);
    return plugin;
  }
  throw no_plugin(file.target, looked.empty() ? fmt::format("{} is in no folder of OPFUSE_PLUGINS", file.library)
                                              : fmt::format("there is no {}", looked));
}

void Plugin::load(const PluginFile& file) {
  target_ = file.target;
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw no_plugin(target_, dlerror());
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    if (!function) throw no_plugin(target_, fmt::format("{} lacks {}", path_, name));
  };
  find("opfuse_plugin_abi", functions_.abi);
  if (const uint32_t abi = functions_.abi(); abi != OPFUSE_PLUGIN_ABI)
    throw no_plugin(target_, fmt::format("{} was built for version {} of the interface, this opfuse has {}", path_, abi,
                                         OPFUSE_PLUGIN_ABI));
#define OPFUSE_PLUGIN_FUNCTION(name, result, arguments) find("opfuse_plugin_" #name, functions_.name);
#include "plugin/plugin_functions.def"
#undef OPFUSE_PLUGIN_FUNCTION
  const opfuse_host host{sizeof(opfuse_host), OPFUSE_PLUGIN_ABI, file.file.c_str()};
  const opfuse_plugin_status opened = functions_.open(&host, &device_);
  if (opened != OPFUSE_PLUGIN_OK) device_ = nullptr;
  check(opened == OPFUSE_PLUGIN_OK && !device_ ? OPFUSE_PLUGIN_FAILED : opened, "opening its device");
  opfuse_description about{};
  about.size = sizeof about;
  check(functions_.describe(device_, &about), "describing its device");
  const std::string name = about.target ? about.target : "";
  if (name != target_) throw no_plugin(target_, fmt::format("{} is of the target '{}'", path_, name));
  version_ = about.version ? about.version : "";
}

Plugin::~Plugin() {
  if (device_) functions_.close(device_);
  if (library_) dlclose(library_);
}

std::string Plugin::words() const {
  const char* const text = functions_.error(device_);
  return text && *text ? std::string(": ") + text : "";
}

void Plugin::check(opfuse_plugin_status status, const char* doing) {
  if (status == OPFUSE_PLUGIN_OK) return;
  static constexpr std::array kNames{"ok", "unsupported", "invalid", "no memory", "failed"};
  const auto code = static_cast<size_t>(status);
  throw fail(E::device_failed, "the plug-in of {} ({}) failed in {}, {}{}", target_, path_, doing,
             code < kNames.size() ? kNames[code] : "an unknown status", words())
      .hint("--fallback runs everything on the cpu target instead");
}

std::optional<std::string> Plugin::refuses(const std::string& piece) {
  const std::lock_guard lock(one_at_a_time_);
  std::array<char, 512> reason{};
  const opfuse_plugin_status status = functions_.accept(device_, piece.c_str(), reason.data(), reason.size());
  reason.back() = 0;
  if (status == OPFUSE_PLUGIN_UNSUPPORTED) return reason[0] ? std::string(reason.data()) : "it gives no reason";
  check(status, "accepting a piece");
  return std::nullopt;
}

opfuse_kernel* Plugin::compile(const std::string& piece) {
  const std::lock_guard lock(one_at_a_time_);
  opfuse_kernel* kernel = nullptr;
  const opfuse_plugin_status status = functions_.compile(device_, piece.c_str(), &kernel);
  check(status == OPFUSE_PLUGIN_OK && !kernel ? OPFUSE_PLUGIN_FAILED : status, "compiling a piece that it accepted");
  return kernel;
}

opfuse_memory Plugin::allocate(uint64_t bytes) {
  const std::lock_guard lock(one_at_a_time_);
  opfuse_memory memory = 0;
  const opfuse_plugin_status status = functions_.allocate(device_, bytes, &memory);
  check(status == OPFUSE_PLUGIN_OK && memory == 0 ? OPFUSE_PLUGIN_NO_MEMORY : status, "allocating memory");
  return memory;
}

void Plugin::to_device(const void* host, opfuse_memory memory, uint64_t bytes) {
  const std::lock_guard lock(one_at_a_time_);
  const opfuse_copy copy{sizeof(opfuse_copy), 1, const_cast<void*>(host), memory, 0, bytes};
  check(functions_.copy(device_, &copy), "copying to its memory");
}

void Plugin::from_device(opfuse_memory memory, void* host, uint64_t bytes) {
  const std::lock_guard lock(one_at_a_time_);
  const opfuse_copy copy{sizeof(opfuse_copy), 0, host, memory, 0, bytes};
  check(functions_.copy(device_, &copy), "copying from its memory");
}

void Plugin::run(opfuse_kernel* kernel, std::span<const opfuse_memory> memories) {
  const std::lock_guard lock(one_at_a_time_);
  const opfuse_launch run{sizeof(opfuse_launch), kernel, memories.data(), memories.size()};
  check(functions_.run(device_, &run), "running a piece");
}

void Plugin::free(opfuse_memory memory) {
  const std::lock_guard lock(one_at_a_time_);
  functions_.free(device_, memory);
}

void Plugin::destroy(opfuse_kernel* kernel) {
  const std::lock_guard lock(one_at_a_time_);
  functions_.destroy(device_, kernel);
}

}  // namespace opfuse
