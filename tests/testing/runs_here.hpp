// Which targets' code this machine runs: tests of kernels skip the others.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

/// Whether this machine has all CPU features of the target.
inline bool runs_here(const TargetInfo& target) {
  const std::vector<std::string> host = host_features();
  return std::all_of(target.features.begin(), target.features.end(),
                     [&](const std::string& f) { return std::find(host.begin(), host.end(), f) != host.end(); });
}

inline std::vector<TargetInfo> targets_here(std::initializer_list<const char*> names) {
  std::vector<TargetInfo> targets;
  for (const char* name : names)
    if (TargetInfo target = parse_target(name); runs_here(target)) targets.push_back(std::move(target));
  return targets;
}

}  // namespace opfuse
