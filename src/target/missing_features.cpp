#include "target/missing_features.hpp"

#include <algorithm>

#include "target/target.hpp"

namespace opfuse {

std::vector<std::string> missing_features(const std::vector<std::string>& features) {
  const std::vector<std::string> here = host_features();
  std::vector<std::string> missing;
  for (const std::string& feature : features)
    if (std::find(here.begin(), here.end(), feature) == here.end()) missing.push_back(feature);
  return missing;
}

}  // namespace opfuse
