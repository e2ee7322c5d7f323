// Why something is, or is not, fused: the remarks of opfuse::explain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "opfuse/export.hpp"

namespace opfuse {

/// One remark: kind "passed" (a group), "missed" (a candidate or near match that was not fused), "analysis" (an edge),
/// "compound" (what a person would name across groups), "precision" (what a group with a product of quantised operands
/// computes in).
struct Remark {
  std::string kind, rule, anchor, code, message;
  std::vector<std::string> nodes, evidence;
  size_t matched = 0, of = 0;  ///< nodes of the pattern that fitted
  int64_t bytes_saved = 0;     ///< what fusing saves or would save
};

/// The remarks as `opfuse explain` prints them.
OPFUSE_API std::string remarks_text(const std::vector<Remark>& remarks);

}  // namespace opfuse
