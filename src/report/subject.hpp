// What a report is about: a model that was compiled, or an .opf, with whatever was measured and proven of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/compilation.hpp"
#include "profile/launch_profile.hpp"
#include "proof/compare.hpp"
#include "report/view.hpp"
#include "runtime/part_trace.hpp"

namespace opfuse::report {

/// The text of a kernel: assembly, or CUDA C++.
struct KernelText {
  std::string symbol;  ///< of the kernel; CUDA: the launch's name
  std::string text;
};

/// One run, part by part.
struct RunTrace {
  int64_t total_ns = 0;
  int threads = 1;
  std::vector<PartTime> parts;
  std::vector<int64_t> launch_ns;  ///< where parts are not recorded (GPUs): of each launch
};

struct Work {
  double source_nodes = 0, flops = 0, weight_bytes = 0;
  double traffic_before = 0, traffic_after = 0;  ///< activations read and written, node by node
};

struct Subject {
  std::string name;                          ///< as the user gave it
  const Compilation* compilation = nullptr;  ///< null for an .opf
  const Graph* graph = nullptr;              ///< what `program` was lowered from; null for an .opf
  const Program* program = nullptr;          ///< that runs at these sizes; null for an .opf
  const Artifact* artifact = nullptr;
  const ArtifactProgram* runs = nullptr;  ///< of the artifact, at these sizes
  SymbolValues dims;
  uint64_t seed = 0;
  std::optional<Work> work;  ///< of the graphs
  Views views;
  std::vector<Remark> remarks;  ///< missed ones
  std::optional<LaunchProfile> profile;
  std::optional<RunTrace> trace;
  std::optional<Comparison> proof;
  std::vector<KernelText> texts;
  std::string not_measured, no_texts;  ///< why
};

}  // namespace opfuse::report
