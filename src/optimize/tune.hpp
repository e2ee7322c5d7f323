// The search behind `opfuse tune`: the schedules of a model's kernels, measured where they run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compilation.hpp"
#include "profile/statistics.hpp"
#include "proof/compare.hpp"

namespace opfuse {

struct TuneRequest {
  std::vector<Tensor> inputs;        ///< one per input of the model
  std::vector<Tensor> other_inputs;  ///< to measure what another input changes; may be empty
  uint64_t seed = 0;
  double limit_seconds = 300;                ///< no more schedules are tried after so long
  size_t schedules = 12;                     ///< that are tried of each kernel, the fastest by prediction
  double warmup_seconds = 0.2, seconds = 2;  ///< of the check of the whole model
  bool prove = true;
  std::function<bool()> stop;  ///< true: no more schedules are tried; what was found is still checked
};

/// A kernel that became faster: one of all launches with its region and layouts.
struct TunedKernel {
  std::string name;     ///< of its first launch
  size_t launches = 0;  ///< that share it
  std::string before, after;
  double before_us = 0, after_us = 0;  ///< of all its launches in one run, medians
};

struct Tuned {
  std::optional<Compilation> compilation;  ///< of the program that is the result: tuned, or as predicted
  std::vector<TunedKernel> changed;        ///< the largest gain first
  size_t kernels = 0, known = 0;           ///< distinct ones; those whose schedules were measured before
  size_t schedules = 0;                    ///< that were measured
  double seconds = 0;                      ///< of the search
  bool out_of_time = false, stopped = false;
  bool same = false;  ///< tuned and predicted are one program: there was nothing to gain
  bool kept = false;  ///< the whole model is faster beyond noise, and proven: the times were written
  double untuned_ms = 0, tuned_ms = 0;
  Interval time;  ///< tuned / untuned
  std::optional<Comparison> proof;
  std::string file;  ///< of the times
  int threads = 0;
};

/// Measures groups and algorithms as --measure does, then the schedules of every kernel: programs that differ in them
/// run in turns on drawn inputs, and each launch is timed where it stands in the model, in the caches that the launch
/// before it leaves. What wins is measured again, and the whole model with all that won against the model as predicted.
/// Only what is faster there, and proven, is written to the first of `options.timings`; compiling with --measure takes
/// it from there. E::bad_option for targets that this machine does not run itself, and for open dimensions.
Tuned tune(const Graph& model, const TargetInfo& target, const CompilationOptions& options, const TuneRequest& request);

}  // namespace opfuse
