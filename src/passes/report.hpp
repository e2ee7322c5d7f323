// What rewriting passes did and declined to do, with reasons.
#pragma once

#include <string>
#include <vector>

#include "base/decline.hpp"

namespace opfuse {

struct RewriteNote {
  std::string pass;  ///< "flatten-linear-to-conv1x1"
  std::string rule;  ///< spelling or conversion: "gelu: erf", "FlattenLinearToConv1x1"
  std::string node;  ///< where
  bool applied = false;
  Decline reason;  ///< of a declined one; for an applied one `message` says what it became
  bool operator==(const RewriteNote&) const = default;
};

struct RewriteReport {
  std::vector<RewriteNote> notes;
  void applied(std::string pass, std::string rule, std::string node, std::string what);
  /// Kept once, however often a fixed-point iteration meets it.
  void declined(std::string pass, std::string rule, std::string node, Decline reason);
  size_t count(std::string_view rule, bool applied) const;
};

}  // namespace opfuse
