// A model being compiled: one value with what every stage made, and the one function that takes it from stage to stage.
// The command line, the C++ and Python API, `explain`, variants and tests all compile through it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "driver/variants.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

struct Placed;

/// Everything a user may say about compiling. Names are those of the public CompileOptions and of the flags.
struct CompilationOptions {
  SymbolValues dims;  ///< bound before anything else, but what `given_plan` left open after that is applied
  bool fused = true;  ///< false: one launch per operator of the model as it was read
  PlanRequest plan;   ///< what to plan with
  /// A plan to apply instead of making one; checked for the target before it is applied.
  std::shared_ptr<const FusionPlan> given_plan;
  bool allow_stale = false;               ///< apply `given_plan` although it was made for another model
  std::string dump_dir;                   ///< graph after each changing pass
  std::vector<std::string> no_pass;       ///< shaping passes that are switched off (shape/shaping_passes.hpp)
  std::vector<std::string> accelerators;  ///< targets of devices beside the target, the preferred one first
  std::vector<std::pair<std::string, std::string>> place;  ///< node -> device
  bool fallback = false;                                   ///< an accelerator that cannot be had is done without
  std::vector<SymbolValues> specialize;                    ///< sizes of open dimensions to compile once more for
  bool allow_reference = false;  ///< operators without a kernel become launches of the interpreter
  /// Outputs that may lie in blocks of channels where all sizes are known: the artifact's output is then the array as
  /// it lies, of a rank more (`Artifact::layouts` says how). For tools that look into a model.
  std::set<std::string> outputs_in_blocks;
  AlgorithmRequest algorithms;
  std::vector<std::string> timings;  ///< with algorithms.measure: files of times (driver/measure_groups.hpp)
  Limits limits;
  ArtifactOptions artifact;  ///< of the last stage: threads of the compiler, cache, files to emit, progress
};

/// Stages in their order; each needs what those before it made.
enum class Milestone {
  read,      ///< nothing was done yet
  prepared,  ///< cleaned, recomposed, converted: what planning sees
  planned,   ///< the plan, with a verdict on every edge
  fused,     ///< the plan applied: one `fused` node per group
  shaped,    ///< groups joined for the target: what is lowered
  lowered,   ///< programs with layouts, schedules, algorithms and memory planned
  built,     ///< machine code, packed constants, launches: the artifact
};

/// Where a model is on its way. Stages that were not reached have left their fields empty.
struct Compilation {
  /// Takes a copy of the model. One that has groups already (the result of opfuse::apply) is taken as fused.
  Compilation(const Graph& model, TargetInfo target, CompilationOptions options);

  /// Runs the stages up to and with `last` that have not run. When one throws, those before it stay as they are.
  void run_to(Milestone last);

  TargetInfo target;
  CompilationOptions options;
  Milestone reached = Milestone::read;

  Graph prepared;
  std::vector<DimConstraint> constraints;  ///< of the model on its open dimensions, by its own nodes
  FusionPlan plan;
  std::shared_ptr<Placed> placed;  ///< where groups run; null: all of them on the target
  Graph fused;  ///< from Milestone::shaped on with what shaping joined: the graph that the program was lowered from
  std::vector<ShapeVerdict> verdicts;  ///< of shaping, on every place that a pass looked at
  Program program;
  std::vector<Variant> variants;
  Artifact artifact;
  std::vector<KernelTime> kernel_times;
  std::vector<std::string> conversions;    ///< what preparing converted or declined to convert
  std::vector<std::string> shapings;       ///< what shaping did; splits and limits are the program's own notes
  std::vector<std::string> notes() const;  ///< conversions, then shapings

 private:
  bool has_groups_ = false;                 ///< the model came fused
  std::map<std::string, Decline> refused_;  ///< LaunchPrices::refused
  SymbolValues later_;                      ///< sizes that the given plan was made without: bound after it is applied
  int dumps_ = 0;                           ///< graphs that were dumped

  void prepare_model();
  void open_devices();
  void make_plan();
  void measure_plan();
  std::optional<KnownTimes> known_times() const;
  void apply_plan();
  void shape();
  void lower();
  void build();
};

/// The compilation of a copy of the model, run to its end.
Compilation compile_graph(const Graph& model, const TargetInfo& target, const CompilationOptions& options = {});

}  // namespace opfuse
