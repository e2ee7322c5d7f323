// The table of contents of the compiler: which passes run, in which order.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/known_times.hpp"
#include "fusion/plan.hpp"
#include "ir/graph.hpp"
#include "link/build_artifact.hpp"
#include "opfuse/opfuse.hpp"
#include "passes/pass_manager.hpp"
#include "program/program.hpp"
#include "program/uncompilable.hpp"
#include "target/target.hpp"
#include "tune/choose_algorithms.hpp"

namespace opfuse {

struct PrepareOptions {
  SymbolValues dims;     ///< bound before anything else
  std::string dump_dir;  ///< graph after each changing pass
  bool convert = true;   ///< the conversions of the catalogue (identity pools, head to 1x1 convolution)
};

/// Clean, recompose, convert: what planning wants to see. The result equals the model it was made from.
/// `notes` receives one line per conversion that was applied or declined.
PassRun prepare(Graph& graph, const PrepareOptions& options, std::vector<std::string>* notes);

/// Sizes of dimensions for a graph after fusion: computed shapes become constants, the groups stay.
void bind_fused(Graph& graph, const SymbolValues& dims);
/// Binds dimensions of a model that is not fused. Where it was read from a file of which more folds with them, the file
/// is read again, and a note says so.
void bind_sizes(Graph& graph, const SymbolValues& dims, std::vector<std::string>* notes, const Limits& limits = {});

/// Why a node (fused or not) cannot become a region that the target's generator accepts; empty when it can.
std::optional<Decline> illegal_on(const Node& node, const TargetInfo& target);

/// The same as a question that a plan can ask.
Legality legality_on(const TargetInfo& target);

/// What groups cost on the target, as a planner asks.
Pricing pricing_on(const TargetInfo& target);
/// Of a region that is a launch.
GroupPrice price_of_region(const Region& region, const TargetInfo& target);

/// What a request plans with: its own patterns, those of its files, the catalogue.
std::vector<FusionPattern> patterns_of(const PlanRequest& request);

/// How plans are made and judged. `request.pattern_files` are not read: `options.patterns` is the catalogue.
PlanOptions plan_options(const TargetInfo& target, const PlanRequest& request, const Limits& limits = {});

/// Plans a prepared graph: named patterns, then rules; legal is what lowers and generates on the target.
FusionPlan plan_graph(const Graph& prepared, const TargetInfo& target, const PlanRequest& request,
                      const Limits& limits = {});

struct LowerOptions {
  bool allow_reference = false;  ///< operators without a kernel become launches of the interpreter, with a note each
  AlgorithmRequest algorithms{};
  Limits limits{};
  bool image_loop = true;             ///< an open batch may run image by image where its maps leave the caches
  const KnownTimes* times = nullptr;  ///< of algorithms and schedules that were measured; null: none
  bool stretches = false;             ///< broadcasts along open dimensions of 1 are computed; they are on GPUs always
  std::set<std::string> outputs_in_blocks{};  ///< BuildOptions has them
};
/// What of a fused graph has no place in a program; none: lower_to_program does not throw E::uncompilable.
std::vector<Obstacle> obstacles_on(const Graph& fused, const TargetInfo& target, const LowerOptions& options);

/// Fused (or plain) graph -> program with layouts, schedules, algorithms and memory planned.
Program lower_to_program(const Graph& graph, const TargetInfo& target, const LowerOptions& options = {});

/// Notes in the artifact which inputs index tables, so that its file is enough to draw valid random inputs, which were
/// fixed, and what sizes must satisfy: `constraints` of the model, and those of the graph it became.
void note_inputs(Artifact& artifact, const Graph& graph, const std::vector<DimConstraint>& constraints);

}  // namespace opfuse
