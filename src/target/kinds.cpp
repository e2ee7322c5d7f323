// A kind is a row here and one in the table of generators (link/generators.cpp).
#include "target/kinds.hpp"

namespace opfuse {

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
      {"cpu", {}},
      {"cuda",
       {.on_host = false,
        .shapes_for_caches = false,
        .channel_blocks = false,
        .rows_in_place = false,
        .loops = false,
        .has_variants = false,
        .chooses_algorithms = false,
        .stretches_itself = true}},
  };
  return kinds;
}

}  // namespace opfuse
