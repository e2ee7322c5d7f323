#include "program/levels.hpp"

#include <algorithm>

#include "program/routine_launches.hpp"

namespace opfuse {

void Levels::add(const Launch& launch) {
  const std::optional<RoutineCall> call = routine_of(launch);
  if (!call) return;
  ++count_;
  for (const std::string& symbol : call->defines) levels_[symbol] = count_;
}

int Levels::of(const Dim& dim) const {
  if (levels_.empty()) return 0;
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  int level = 0;
  for (const std::string& symbol : symbols)
    if (const auto at = levels_.find(symbol); at != levels_.end()) level = std::max(level, at->second);
  return level;
}

int Levels::of(const std::vector<Dim>& dims) const {
  int level = 0;
  for (const Dim& dim : dims) level = std::max(level, of(dim));
  return level;
}

}  // namespace opfuse
