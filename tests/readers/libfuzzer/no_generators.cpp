// Readers generate no code. The kernel cache asks its generator for a fingerprint, which names entries.
#include "link/generators.hpp"

namespace opfuse {

const Generator& generator_for(const TargetInfo&) {
  static const Generator none{.fingerprint = [] { return std::string("readers"); }};
  return none;
}

}  // namespace opfuse
