// A node is the name of a launch or of a node that it stems from; which ones an algorithm may be asked for is said
// where it is chosen.
#include "tune/algorithm_wish.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "cpu/algorithms.hpp"

namespace opfuse {
namespace {

AlgorithmWish parse_wish(const std::string& text) {
  const size_t at = text.find('@');
  AlgorithmWish wish{text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
  std::vector<std::string> names = algorithm_names();
  names.emplace_back(kPairsAlgorithm);
  if (std::find(names.begin(), names.end(), wish.name) == names.end())
    throw fail(E::unknown_name, "no algorithm '{}'", wish.name).hint(did_you_mean(wish.name, names));
  return wish;
}

}  // namespace

bool AlgorithmWish::concerns(const Launch& launch) {
  const bool yes = node.empty() || node == launch.name ||
                   std::find(launch.sources.begin(), launch.sources.end(), node) != launch.sources.end();
  used |= yes;
  return yes;
}

std::vector<AlgorithmWish> parse_wishes(const std::vector<std::string>& texts) {
  std::vector<AlgorithmWish> wishes;
  for (const std::string& text : texts) wishes.push_back(parse_wish(text));
  return wishes;
}

}  // namespace opfuse
