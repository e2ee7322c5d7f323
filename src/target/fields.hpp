// The fields of a target's file as a table: what reads, checks and prints them are loops over it.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

struct TargetField {
  template <class T>
  using In = T& (*)(TargetInfo&);
  using Access =
      std::variant<In<std::string>, In<std::vector<std::string>>, In<bool>, In<int>, In<int64_t>, In<double>>;

  const char* section;  ///< "caches"; empty: at the top
  const char* key;
  Access access;
  double least = 0, most = 0;  ///< of numbers
  const char* kinds = "";      ///< kinds of devices that need it; empty: it may be left out
  bool later = false;          ///< younger than the schema: a CPU file that extends nothing has x86.toml's
  bool allowed(std::string_view kind) const;
};

std::span<const TargetField> target_fields();

/// "32768", "8", "true", "[\"avx2\", \"fma\"]", as TOML has it.
std::string text_of(const TargetField& field, const TargetInfo& target);

/// All fields, section by section, as a file without `extends` would have them.
std::string toml_of(const TargetInfo& target);

}  // namespace opfuse
