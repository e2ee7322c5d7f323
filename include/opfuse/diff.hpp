// What became of fusions between two plans: the result of opfuse::diff.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "opfuse/export.hpp"

namespace opfuse {

/// An edge that one plan fuses and the other does not, by names of nodes as `opfuse explain` prints them.
struct FusionChange {
  std::string producer, consumer, tensor;
  std::string where;  ///< in the plan that fuses them: the group, shaping pass or operator that makes them one launch
  std::string code, message;           ///< in the plan that does not: why
  std::string change;                  ///< what would flip it there: a flag, or "no_change_flips"
  std::optional<int64_t> bytes;        ///< that two launches move more than one, where both were priced
  std::optional<double> microseconds;  ///< predicted, that two launches take longer
};

struct PlanDiff {
  std::vector<FusionChange> lost, gained;              ///< by the second plan; most predicted time first
  size_t alike = 0;                                    ///< edges that both have, fused in both or in none
  size_t only_in_first = 0, only_in_second = 0;        ///< edges of nodes or names that the other does not have
  size_t fused_in_first = 0;                           ///< of `only_in_first`: one launch there
  size_t apart_in_second = 0;                          ///< of `only_in_second`: two launches there
  std::map<std::string, std::pair<int, int>> modules;  ///< applied named modules, where their numbers differ
};

/// The difference as `opfuse diff` prints it; at most `top` changes of each kind (0: all).
OPFUSE_API std::string diff_text(const PlanDiff& diff, size_t top = 0);

}  // namespace opfuse
