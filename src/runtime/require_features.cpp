#include "runtime/require_features.hpp"

#include <fmt/ranges.h>

#include "base/fail.hpp"
#include "target/missing_features.hpp"

namespace opfuse {

void require_features(const Artifact& artifact) {
  const std::vector<std::string> missing = missing_features(artifact.cpu_features);
  if (missing.empty()) return;
  throw fail(E::unsupported_cpu,
             "the executable was compiled for {} and needs the CPU feature{} {}, which this machine lacks",
             artifact.target, missing.size() == 1 ? "" : "s", fmt::join(missing, ", "))
      .hint("compile the model again with --target host, or with --target cpu:baseline for any x86-64");
}

}  // namespace opfuse
