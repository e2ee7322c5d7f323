// The kinds of devices, each with what its generator and runtime do.
#pragma once

#include <string>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

struct DeviceKind {
  std::string name;  ///< "cpu": of its targets' names, in front of the colon
  DeviceTraits traits;
};
const std::vector<DeviceKind>& device_kinds();

}  // namespace opfuse
