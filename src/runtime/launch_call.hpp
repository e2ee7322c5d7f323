// What a context gives its executor: the context of every PartFunction of a launch.
#pragma once

#include "runtime/state.hpp"

namespace opfuse {

struct LaunchCall {
  const ReadyLaunch* launch;
  char* const* scratch;
};

}  // namespace opfuse
