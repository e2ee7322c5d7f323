// Which algorithm computes each convolution: direct, or Winograd F(2x2), F(4x2), F(4x4).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

struct AlgorithmRequest {
  bool exact = false;                          ///< direct everywhere, and no activations by tables
  std::vector<std::string> only{}, skip{};     ///< NAME[@NODE]: forced, forbidden; "f4", "direct@/layer1/conv1"
  std::optional<int64_t> max_weight_growth{};  ///< bytes of transformed weights beyond the direct ones
  std::optional<int64_t> workspace{};          ///< bytes of scratch per thread
  int threads = 0;                             ///< of the runs; 0: available
  bool measure = false;                        ///< times in network order instead of predictions
  bool least_memory = false;                   ///< no weights grow, unless `max_weight_growth` says by how much
};

/// Times of launches. Whoever can run programs hands them in: choosing needs no driver.
struct LaunchTimes {
  /// Nanoseconds of every run by program and launch, on `threads` threads, the programs in turns.
  std::function<std::vector<std::vector<std::vector<double>>>(const std::vector<Program>& programs, int threads)>
      measure;
  /// Nanoseconds of a launch, as it is scheduled direct, with an algorithm, where they were measured before. May be
  /// null.
  std::function<std::optional<double>(const Launch& launch, const std::string& algorithm)> known{};
  /// Told what was measured. May be null.
  std::function<void(const Launch& launch, const std::string& algorithm, const std::vector<double>& nanoseconds)>
      learn{};
};

/// Changes schedules and weight layouts of a program that was scheduled direct, fills Program::algorithms and adds one
/// note that says what was chosen. Within the bounds on memory the predicted time is least; a layer whose probed error
/// is too large takes the next better algorithm. `times` serve AlgorithmRequest::measure. Throws E::bad_option and
/// E::unknown_name for what the request names.
void choose_algorithms(Program& program, const TargetInfo& target, const AlgorithmRequest& request,
                       const LaunchTimes& times);

/// "Winograd F(4x4) in 11 of 53 convolutions ...": what a program computes and its largest probed error.
std::string algorithm_summary(const Program& program);

/// Bound on the growth of weights when none is given: 45 MB, or two fifths of a larger model's constants.
int64_t default_weight_growth(const Program& program);

}  // namespace opfuse
