// What is left in floating point by kind: named, so that a report can say which name left a module.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fusion/plan.hpp"

namespace opfuse::quantization {

struct Preset {
  const char* name;
  const char* summary;
  bool (*holds)(const Candidate& module, const std::vector<const Node*>& nodes);
};

std::span<const Preset> presets();
/// E::unknown_name with a did-you-mean.
const Preset& preset_of(const std::string& name);

}  // namespace opfuse::quantization
