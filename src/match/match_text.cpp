// What a pattern wanted and met, as indented lines.
#include <fmt/format.h>

#include <algorithm>

#include "match/matcher.hpp"

namespace opfuse {

std::string explain(const Pattern& pattern, const MatchResult& result) {
  std::string text = pattern.text() + "\n";
  if (result) {
    for (const Node* node : result.match->nodes) text += fmt::format("  {:<40} matched\n", describe(*node));
    for (const std::string& note : result.match->notes) text += "  note: " + note + "\n";
    return text;
  }
  const PartialMatch& p = result.partial;
  for (const TraceLine& line : p.trace)
    text += fmt::format("  {:<24} {:<32} {}\n", line.element, line.found, line.found == "-" ? "absent" : "matched");
  text += fmt::format("  {:<24} {}: {}\n", p.expected, p.decline.code, p.decline.message);
  for (const std::string& evidence : p.decline.evidence) text += fmt::format("  {:<24}   {}\n", "", evidence);
  return text + fmt::format("  matched {} of {} nodes\n", std::min(p.matched, p.of), p.of);
}

}  // namespace opfuse
