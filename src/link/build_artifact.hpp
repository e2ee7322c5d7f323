// Programs -> artifact: the last stage of compiling.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/step_progress.hpp"
#include "ir/graph.hpp"
#include "program/program.hpp"
#include "runtime/artifact.hpp"
#include "target/target.hpp"

namespace opfuse {

/// The program for some sizes. It has the groups of the program for all sizes; layouts, schedules and algorithms are
/// those that the sizes alone would get. The last one may be the program that stretches (ArtifactVariant::stretches).
struct Variant {
  SymbolValues when;
  std::shared_ptr<Graph> graph;  ///< what the program is lowered from
  Program program;
  bool stretches = false;
};

/// How long a kernel took to compile; those from the cache took nothing.
struct KernelTime {
  std::string name;  ///< of the first launch that uses it
  std::string symbol;
  double ms = 0;
  bool cached = false;
  std::string variant{};  ///< sizes of the first variant that uses it; "": the program for all sizes does
};

struct ArtifactOptions {
  int threads = 0;
  bool cache = true;
  std::string emit_dir;
  bool emit_llvm = false, emit_assembly = false, emit_cuda = false;
  bool text_only = false;  ///< CUDA: write the kernels' text, compile nothing; the artifact then has no code
  std::string model_hash, plan_json;
  std::shared_ptr<const Graph> reference_graph;  ///< what the program was lowered from; needed by reference launches
  /// What runs the launch of a placed node; needed where there are such.
  std::function<PlacedLaunch(const Program&, const Launch&)> placed_launch{};
  StepProgress progress;
  std::vector<KernelTime>* kernel_times = nullptr;  ///< filled where wanted
  bool brief = false;                               ///< as CodegenOptions has it; such kernels are cached apart
};

/// Generates the kernels of a program (equal specs once, from the disk cache where it has them), packs the
/// constants and makes the artifact. Variants share equal kernels and equal constants with it.
Artifact build_artifact(const Program& program, const TargetInfo& target, const ArtifactOptions& options);
Artifact build_artifact(const Program& program, const std::vector<Variant>& variants, const TargetInfo& target,
                        const ArtifactOptions& options);

}  // namespace opfuse
