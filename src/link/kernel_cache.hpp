// Compiled kernels on disk, one file each, named by the hash of everything the code depends on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

/// A kernel's own machine code: self-contained, so kernels from the cache and fresh ones mix freely.
struct CachedKernel {
  KernelCode code;  ///< offset is relative to `bytes`
  std::vector<uint8_t> bytes;
};

class KernelCache {
 public:
  /// `$XDG_CACHE_HOME/opfuse/kernels` or `~/.cache/opfuse/kernels`; a disabled cache when there is no home.
  static std::string default_folder();
  KernelCache(std::string folder, const TargetInfo& target);
  bool enabled() const { return !folder_.empty(); }
  /// Damaged or foreign files count as absent. `brief`: code that was made briefly will do too.
  std::optional<CachedKernel> load(const KernelSpec& spec, bool brief = false) const;
  /// Atomic; failing to write is not an error.
  void store(const KernelSpec& spec, const CachedKernel& kernel, bool brief = false) const;

 private:
  std::string key_of(const KernelSpec& spec, bool brief) const;  ///< hash of everything the code depends on
  std::string path_of(const std::string& key) const;
  std::optional<CachedKernel> read(const std::string& key) const;
  std::string folder_, target_;
};

}  // namespace opfuse
