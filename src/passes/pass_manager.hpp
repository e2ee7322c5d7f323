// Passes, and the one place that runs them. The manager, never a pass, verifies the graph, checks that a
// pass tells the truth about changing it, removes dead nodes, takes times, writes dumps and, when a pass
// fails, a reproducer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "passes/report.hpp"

namespace opfuse {

/// What a pass may use besides the graph.
struct PassContext {
  /// Folding may make the constants of a model larger by at most this much per node.
  int64_t fold_growth_bytes = int64_t{1} << 24;
  /// Reasons of rewrites and declines; may be null.
  RewriteReport* report = nullptr;
  /// Limits that bound and work left undone: every report shows them.
  std::vector<std::string> notes;
  void note(std::string text);  ///< kept once
};

struct Pass {
  std::string name;                               ///< dash form of the factory, "fold-constants"
  std::string summary;                            ///< one sentence
  std::function<bool(Graph&, PassContext&)> run;  ///< returns whether it changed the graph
  std::vector<Pass> repeat;                       ///< a group: run these in turn until none changes the graph
  /// The pass alone, without the manager's checks: for tests of one rewrite.
  bool operator()(Graph& graph, RewriteReport* report = nullptr) const;
};

/// A group as one entry of a pipeline. Its passes are verified and dumped one by one.
Pass until_stable(std::string name, std::vector<Pass> passes);

/// The first graph of a folder of dumps: "00-input.fir", after "as read".
struct DumpStart {
  std::string name = "input", what = "as read";
};

struct PassOptions {
  std::string dump_dir;        ///< NN-pass.fir after each changing pass; empty: none
  DumpStart dump_start{};      ///< the graph before the first pass
  int first_dump = 0;          ///< its number: a later run goes on where an earlier one ended (PassRun::next_dump)
  std::string reproducer_dir;  ///< empty: reproducer_folder()
  bool verify = true;
  int64_t fold_growth_bytes = PassContext{}.fold_growth_bytes;
  RewriteReport* report = nullptr;
  std::string target;  ///< what the passes work for, noted in reproducers; empty: for any
};

/// One run of one pass.
struct PassRecord {
  std::string name;
  bool changed = false;
  double milliseconds = 0;
  size_t nodes_before = 0, nodes_after = 0;  ///< after dead nodes went
};

struct PassRun {
  std::vector<PassRecord> records;
  std::vector<std::string> notes;
  int next_dump = 0;
  bool changed() const;
};

/// Runs the passes in order. A user error gets the pass as its context; any other failure is an internal
/// error that names a reproducer: the graph before the pass, and the pass's name in its first line.
PassRun run_passes(Graph& graph, const std::vector<Pass>& passes, const PassOptions& options = {});

/// Where reproducers go when PassOptions names no folder: the user's state folder, or what a program chose at its
/// start.
void set_reproducer_folder(std::string folder);
std::string reproducer_folder();

/// What a reproducer's first line names: the pass, and the target where it works for one. Empty in other files.
struct Reproducer {
  std::string pass, target;
};
Reproducer parse_reproducer(std::string_view text);

}  // namespace opfuse
