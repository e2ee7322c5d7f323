// What is not fused, what that costs, and the command that changes it or says more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/compilation.hpp"
#include "opfuse/remark.hpp"
#include "report/view.hpp"

namespace opfuse::report {

struct MissedRow {
  std::string kind;  ///< "tensor": stored and read again; "candidate", "near": a pattern; "launches": groups that
                     ///< shaping left apart
  std::string what;  ///< the tensor, the pattern, or the pair
  std::vector<std::string> nodes;
  std::string code, message;
  std::vector<std::string> evidence;
  int64_t bytes = 0;     ///< that fusing would not move; open dimensions count 1
  std::string command;   ///< with MODEL for the model
  bool changes = false;  ///< the command changes the verdict; else it explains it
};

/// Most bytes first.
std::vector<MissedRow> missed_rows(const Compilation& compilation, const std::vector<Remark>& remarks,
                                   const Views& views);

}  // namespace opfuse::report
