// A fused program against the unfused one, group by group: what a group's kernels cost, and what the kernels that it
// replaced cost.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profile/statistics.hpp"
#include "report.hpp"
#include "runtime/launch_replay.hpp"
#include "session.hpp"

namespace opfuse::cli {

/// Launches of both programs that stem from the same model nodes, or from nodes that are compared together. Usually one
/// fused launch; more where nodes were cloned or a group was generated in parts.
struct SplitForm {
  std::vector<std::string> kernels, split;  ///< launch names, fused and unfused
  std::string pattern;                      ///< of the first fused launch
  std::vector<std::string> nodes;
  bool same_kernels = false;          ///< both programs run the same machine code here: nothing was fused
  double ms = 0, split_ms = 0;        ///< medians over the runs
  double bytes = 0, split_bytes = 0;  ///< read and written by the launches
  double saved() const { return split_bytes - bytes; }
  Interval ratio;  ///< of turns that follow each other: the median of their quotients
  /// The same of launches that run right behind themselves, so that those of both programs find in the caches what they
  /// read and where they write. Nothing: some of them are not run again.
  std::optional<Interval> alone{};
  /// Fused, and the whole interval of the ratio lies above 1 by more than what a group's neighbours do to its time.
  bool slower() const { return !same_kernels && ratio.low > 1 + kNeighbours && (!alone || alone->low > 1); }
  static constexpr double kNeighbours = 0.03;
};

/// Names of nodes that are compared together.
using NodeLinks = std::vector<std::pair<std::string, std::string>>;
/// A node that has no launch in the fused program (it became a view, or its launch was absorbed) goes with what made
/// its operand, and two nodes together where the value between them lies otherwise in the two programs: the conversion
/// is in one of them, and in which is a choice. So does a node with the makers of its operands where they store into
/// its result in one of the programs only.
NodeLinks links_between(const Executable& fused, const Executable& unfused, const SymbolValues& sizes);

/// Pairs the launches of two programs by the nodes they stem from. Times are zero.
std::vector<SplitForm> pair_launches(const std::vector<LaunchInfo>& fused, const std::vector<LaunchInfo>& unfused,
                                     const NodeLinks& links = {});

/// Measures both in turns. The sessions' contexts must record launches (ContextOptions::profile).
std::vector<SplitForm> measure_split_forms(Session& fused, Session& unfused, const NodeLinks& links,
                                           const MeasureSettings& settings, uint64_t seed);

/// A session and the executor of its context, which outlives it.
struct Replayed {
  Session& session;
  LaunchReplay& replay;
};
/// Fills `alone` of what measure_split_forms gave, in turns.
void measure_alone(std::vector<SplitForm>& forms, const Replayed& fused, const Replayed& unfused,
                   const NodeLinks& links, const MeasureSettings& settings, uint64_t seed);

/// What groups that differ from what they replace may cost of it.
struct GroupBar {
  double above = 0;  ///< of the ratio
  bool lower =
      false;  ///< the lower end of its interval counts; else its estimate, where all of the interval is above 1
  size_t groups = 0, most = 0, of = 0;  ///< that are above, may be, and were compared
  size_t in_place = 0;                  ///< above where they stand, though not by themselves
  bool kept() const { return groups <= most; }
};
/// Predicted plans may have a few groups that are a little slower, measured ones (--measure) none that is known to be.
std::vector<GroupBar> bars_of(const std::vector<SplitForm>& forms, bool measured);
std::string text_of(const std::vector<GroupBar>& bars);

Json json_of(const SplitForm& form);
Json json_of(const GroupBar& bar);
std::string text_of(const std::vector<SplitForm>& forms, bool all);  ///< the table, or only the groups that are slower

}  // namespace opfuse::cli
