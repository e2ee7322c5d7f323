// Notes of rewriting passes. A place that was declined and later converted (another rewrite made it possible) keeps
// only the success.
#include "passes/report.hpp"

#include <algorithm>

namespace opfuse {

void RewriteReport::applied(std::string pass, std::string rule, std::string node, std::string what) {
  std::erase_if(notes, [&](const RewriteNote& n) { return !n.applied && n.rule == rule && n.node == node; });
  notes.push_back({std::move(pass), std::move(rule), std::move(node), true, {"applied", std::move(what), {}}});
}

void RewriteReport::declined(std::string pass, std::string rule, std::string node, Decline reason) {
  RewriteNote note{std::move(pass), std::move(rule), std::move(node), false, std::move(reason)};
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

size_t RewriteReport::count(std::string_view rule, bool applied) const {
  return static_cast<size_t>(std::count_if(
      notes.begin(), notes.end(), [&](const RewriteNote& n) { return n.rule == rule && n.applied == applied; }));
}

}  // namespace opfuse
