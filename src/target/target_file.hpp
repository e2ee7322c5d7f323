// Files of targets, schema 1: read totally, every mistake with its place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "target/capabilities.hpp"

namespace opfuse {

struct TargetMistake {
  std::string file;
  size_t line = 0, column = 0;
  std::string message, hint;
};

struct TargetFile {
  TargetInfo target;                    ///< whole only without mistakes
  Capabilities capabilities;            ///< what it says besides
  std::vector<TargetMistake> mistakes;  ///< in the order of the file; those of what it extends first
  std::map<std::string, bool> stated;  ///< "caches.l1_bytes" -> by a file given by its path, not by what is compiled in
  bool is_target() const { return !target.name.empty(); }  ///< else it is there to be extended
};

/// A file by its path. E::file_not_found.
TargetFile read_target_file(const std::string& path);
TargetFile read_target_text(std::string_view text, const std::string& file);

/// The files that are compiled in: "avx512" and its text.
struct ShippedTarget {
  std::string_view stem, text;
};
const std::vector<ShippedTarget>& shipped_targets();
TargetFile read_shipped(const ShippedTarget& shipped);

/// Features that opfuse knows, and whether this machine has them.
struct CpuFeature {
  const char* name;
  bool (*here)();
  const char* joins = nullptr;  ///< `host` has it besides where this is its llvm_cpu
};
const std::vector<CpuFeature>& cpu_features();

}  // namespace opfuse
