// A plug-in that was opened, with its device: every call checked, errors with the plug-in's name and words.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "opfuse/plugin.h"
#include "target/target.hpp"

namespace opfuse {

/// Which library runs a target's pieces.
struct PluginFile {
  std::string target, library;  ///< the library as the target's file names it
  std::string file;             ///< the target's file
};
PluginFile plugin_file_of(const TargetInfo& target);

class Plugin {
 public:
  /// The library of an accelerator: its path seen from the target's file, then in the folders of OPFUSE_PLUGINS.
  /// E::no_device naming it where it is missing, older, newer, or for another target.
  static std::shared_ptr<Plugin> open(const PluginFile& file);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }
  /// Why the device does not run the piece; nothing: it does.
  std::optional<std::string> refuses(const std::string& piece);
  opfuse_kernel* compile(const std::string& piece);
  opfuse_memory allocate(uint64_t bytes);
  void to_device(const void* host, opfuse_memory memory, uint64_t bytes);
  void from_device(opfuse_memory memory, void* host, uint64_t bytes);
  void run(opfuse_kernel* kernel, std::span<const opfuse_memory> memories);
  void free(opfuse_memory memory);
  void destroy(opfuse_kernel* kernel);

 private:
  struct Functions {
#define OPFUSE_PLUGIN_FUNCTION(name, result, arguments) result(*name) arguments = nullptr;
#include "plugin/plugin_functions.def"
#undef OPFUSE_PLUGIN_FUNCTION
  };
  Plugin() = default;
  void* library_ = nullptr;
  Functions functions_;
  opfuse_device* device_ = nullptr;
  std::string target_, path_, version_;
  std::recursive_mutex one_at_a_time_;

  void load(const PluginFile& file);
  void check(opfuse_plugin_status status, const char* doing);
  std::string words() const;
};

}  // namespace opfuse
