// What a target lacks for a model: verdicts that a row of its file would change, the dearest first.
#pragma once

#include <string>
#include <vector>

#include "fusion/plan.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

struct Advice {
  std::string lacks;    ///< "add in the epilogue of conv"
  std::string code;     ///< of the verdicts
  std::string message;  ///< of the first of them
  size_t edges = 0;     ///< that it would fuse; of operators: nodes that it would run
  bool operators = false;
  int64_t bytes = 0;        ///< stored and loaded for it
  double microseconds = 0;  ///< predicted, at the rates of the target's file
};

/// E::bad_option for a target whose file says nothing of what it takes.
std::vector<Advice> target_advice(const Graph& prepared, const FusionPlan& plan, const TargetInfo& target);
std::vector<Advice> target_advice(const Graph& prepared, const FusionPlan& plan, const TargetInfo& target,
                                  const Capabilities& said);

/// "add in the epilogue of conv would fuse 16 edges, 27 MB, 190 us"
std::string sentence_of(const Advice& advice);

}  // namespace opfuse
