// A kind is a row here and one in the table of generators (link/generators.cpp).
#include "target/kinds.hpp"

namespace opfuse {

/// Of every device beside the host: what shaping and tuning do for CPUs is not done for it.
static constexpr DeviceTraits kBesideHost = {.on_host = false,
                                             .shapes_for_caches = false,
                                             .channel_blocks = false,
                                             .rows_in_place = false,
                                             .loops = false,
                                             .has_variants = false,
                                             .chooses_algorithms = false,
                                             .stretches_itself = true};

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
      {"cpu", {}},
      {"cuda", kBesideHost},
      {"planning", kBesideHost, false},
      {"accelerator", kBesideHost, false},
  };
  return kinds;
}

const DeviceKind* find_kind(const std::string& name) {
  for (const DeviceKind& kind : device_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace opfuse
