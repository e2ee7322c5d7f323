// The sections of a target's file that say what the device takes.
#pragma once

#define TOML_ENABLE_FORMATTERS 0
#include <functional>
#include <string>
#include <vector>

#include "base/toml.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

/// A mistake: its place, message, hint.
using MistakeSink = std::function<void(const toml::source_region&, std::string, std::string)>;

/// "operator", "anchor", "device" ...: what a file has besides the fields of its processor.
const std::vector<std::string>& capability_sections();

/// Adds what one section says to `into`; every mistake goes to `wrong`.
void read_capabilities(const std::string& section, const toml::node& node, const std::string& file, Capabilities& into,
                       const MistakeSink& wrong);

}  // namespace opfuse
