// A run as Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <string>

#include "report/subject.hpp"

namespace opfuse::report {

/// Tracks: launches, then a worker each with its parts and its waiting; a counter of live arena bytes.
std::string chrome_trace(const std::string& model, const ArtifactProgram& program, const SymbolValues& sizes,
                         const RunTrace& trace);

}  // namespace opfuse::report
