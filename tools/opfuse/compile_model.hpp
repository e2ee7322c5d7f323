// Model -> plan -> program -> executable, with the flags that all compiling verbs share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "driver/variants.hpp"
#include "fusion/plan.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::cli {

struct PlanFlags {
  std::vector<std::string> only, skip;  ///< PATTERN or PATTERN@NODE
  std::string plan_file;
  bool allow_stale = false;
  std::vector<std::string> patterns;  ///< files
};

struct AlgorithmFlags {
  bool exact = false, measure = false;
  std::vector<std::string> only, skip;       ///< NAME or NAME@NODE
  std::string max_weight_growth, workspace;  ///< "45MB"; empty: no bound given
};

struct CompileFlags {
  std::string target = "host";
  int threads = 0;  ///< of the run; compiling always uses what is there
  bool no_cache = false;
  bool allow_reference = false;
  bool no_chains = false;
  AlgorithmFlags algorithms;
  PlanFlags plan;
};

void add_target_flag(CLI::App& app, std::string& target);
void add_plan_flags(CLI::App& app, PlanFlags& flags);
void add_chain_flag(CLI::App& app, bool& no_chains);
void add_algorithm_flags(CLI::App& app, AlgorithmFlags& flags);
AlgorithmRequest algorithm_request(const AlgorithmFlags& flags, int threads);
void add_compile_flags(CLI::App& app, CompileFlags& flags);  ///< all of them

/// What was made on the way, for reports.
struct Planned {
  Graph prepared;
  FusionPlan plan;
  std::vector<std::string> notes;
};
struct Compiled {
  Graph fused;      ///< after apply; the prepared graph when `unfused`
  FusionPlan plan;  ///< empty when `unfused`
  Program program;
  std::vector<Variant> variants;
  std::optional<Executable> executable;
  std::vector<KernelTime> kernel_times;
  std::vector<std::string> notes;  ///< conversions; splits and refusals are the program's own notes
};

/// Prints the program's notes (splits, limits that bound, reference launches) on stderr: nothing is silent.
void show_limits(const Compiled& compiled);
void show_limits(const Executable& loaded);  ///< the same notes, from an .opf
/// Says on stderr that times are the host's where the device is emulated.
void warn_emulated(const Executable& executable);

/// Cleans and plans a copy of the model, or applies the verdicts of --plan.
Planned plan_model(const Graph& model, const SymbolValues& dims, const TargetInfo& target, const PlanFlags& flags);

/// The planned graph with its groups applied; a plan from a file is checked for the target first.
Graph apply_planned(const Planned& planned, const TargetInfo& target, const PlanFlags& flags);

struct EmitRequest {
  std::string folder;
  bool llvm = false, assembly = false, cuda = false;
  bool text_only = false;  ///< nothing but the kernels' text is wanted
};

/// `specialize`: sizes of open dimensions to compile once more for.
Compiled compile_fused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                       const EmitRequest& emit = {}, const std::vector<SymbolValues>& specialize = {});
/// The same compiler with the empty plan: one kernel per model node.
Compiled compile_unfused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                         const std::vector<SymbolValues>& specialize = {});

}  // namespace opfuse::cli
