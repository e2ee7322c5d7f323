// What the cost model says of a program, launch by launch: where the time should go, what bounds it, and how evenly the
// parts of launches fill threads.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Of one core; the parts overlap, so they do not add up.
struct LaunchPrediction {
  double microseconds = 0;
  double instructions = 0, memory = 0,
         start = 0;   ///< microseconds of instructions, of operands and results, of starting
  int64_t bytes = 0;  ///< operands and results, each once
  /// What parts divide: all but the start.
  double shared_microseconds() const { return microseconds - start; }
  /// "instructions", "memory" or "launch": the longest of the three.
  const char* bound() const;
};

/// One for each launch, of all images or steps of a body that it is in; launches of the interpreter are not predicted.
/// An open extent counts as 1.
std::vector<LaunchPrediction> predict_launches(const Program& program, const TargetInfo& target);

/// Work over `threads` times the longest thread's: launches cut into equal parts that threads take in turns, weighted
/// by their predicted time but for starting, which no part shares. Runs of one part each are 1 / threads.
double predicted_balance(const std::vector<LaunchPrediction>& launches, const std::vector<int64_t>& parts, int threads);
/// Of one launch.
double balance_of(int64_t parts, int threads);

}  // namespace opfuse
