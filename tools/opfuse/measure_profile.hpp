// Measuring a compiled model launch by launch: what profile and report share.
#pragma once

#include "inputs.hpp"
#include "opfuse/runtime.hpp"
#include "profile/launch_profile.hpp"
#include "report/subject.hpp"
#include "session.hpp"

namespace opfuse::cli {

/// Times of launches over settings.duration_seconds, then half as long without recording, between measurements of what
/// the machine can do.
LaunchProfile measure_profile(const Executable& executable, const ModelInputs& inputs, int threads,
                              const MeasureSettings& settings);

/// Of `runs` runs that record their parts, the one whose time is the median. Of a GPU only launches are recorded.
report::RunTrace trace_run(const Executable& executable, const ModelInputs& inputs, int threads, int runs = 9);

}  // namespace opfuse::cli
