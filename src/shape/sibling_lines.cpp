// What merge_siblings did, in lines of the report.
#include <fmt/ranges.h>

#include "shape/siblings.hpp"

namespace opfuse {

std::vector<std::string> lines_of(const std::vector<SiblingLinears>& all) {
  std::vector<std::string> lines;
  size_t products = 0, linears = 0;
  for (const SiblingLinears& s : all) {
    if (s.decline) {
      lines.push_back(fmt::format("Linear{} {} of \"{}\" not merged with siblings, {}: {}",
                                  s.results.size() == 1 ? "" : "s", fmt::join(s.results, ", "), s.source,
                                  s.decline->code, s.decline->message));
      continue;
    }
    ++products;
    linears += s.results.size();
  }
  if (products > 0)
    lines.insert(lines.begin(), fmt::format("{} Linears of common operands run as {} product{}", linears, products,
                                            products == 1 ? "" : "s"));
  return lines;
}

}  // namespace opfuse
