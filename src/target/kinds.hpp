// The kinds of devices, each with what its generator and runtime do.
#pragma once

#include <string>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

struct DeviceKind {
  std::string name;  ///< "cpu": of its targets' names, in front of the colon
  DeviceTraits traits;
  bool generated = true;  ///< opfuse makes its kernels; else its targets go by names without the kind
};
/// The kind of that name; null: there is none.
const DeviceKind* find_kind(const std::string& name);
const std::vector<DeviceKind>& device_kinds();

}  // namespace opfuse
