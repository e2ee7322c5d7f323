// A compiled model as an object file and a C header: no library is needed to run it.
#pragma once

#include <string>

#include "runtime/artifact.hpp"

namespace opfuse {

struct StandaloneModel {
  std::string object;  ///< bytes of NAME.o: code, weights, the list of launches
  std::string header;  ///< text of NAME.h: NAME_run and what it needs
};

/// `name` begins all symbols. E::bad_option for a name that C does not take, E::uncompilable for artifacts with open
/// dimensions, for GPUs, or with launches of the interpreter.
StandaloneModel standalone_model(const Artifact& artifact, const std::string& name);

/// A name for C from a file's name: "out/resnet-18.o" -> "resnet_18".
std::string c_name_of(const std::string& path);

}  // namespace opfuse
