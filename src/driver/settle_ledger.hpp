// What became of each edge in the end: groups were joined and divided for the target, values became views, operands
// were copied. The ledger says what runs.
#pragma once

#include <map>
#include <string>

#include "fusion/plan.hpp"
#include "fusion/price.hpp"
#include "program/program.hpp"
#include "shape/verdict.hpp"

namespace opfuse {

/// What edges of such a group are priced with; empty functions: they are not.
struct LaunchPrices {
  std::function<GroupPrice(const Region&)> launch;
  ReadCount reads;
  Traffic traffic;
  std::map<std::string, Decline> refused{};  ///< by candidate: the setting that makes several launches of it
};

/// Fills `executed` and `by` of the plan's edges from the program that was lowered from `shaped`. An edge that runs as
/// one launch or as a view has no reason left; one of a group that became several launches has one.
void settle_ledger(const Graph& prepared, FusionPlan& plan, const Graph& shaped,
                   const std::vector<ShapeVerdict>& verdicts, const Program& program, const LaunchPrices& prices);

}  // namespace opfuse
