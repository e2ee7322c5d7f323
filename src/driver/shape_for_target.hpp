// Shaping a fused graph for a target: the passes of shape/ with what they ask answered.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass_manager.hpp"
#include "shape/shaping_passes.hpp"
#include "target/target.hpp"

namespace opfuse {

struct ShapeOptions {
  std::vector<std::string> no_pass{};  ///< names of shaping passes that are switched off
  std::string dump_dir{};              ///< the fused graph, then the graph after each changing pass
  bool only_types = false;             ///< of a graph without groups: passes_of_types()
  std::map<std::string, std::string>
      precisions{};           ///< by source name of a product, or label of a group; others are f32
  int first_dump = 0;         ///< number of the fused graph among the dumps
  NodePairs no_fuse{};        ///< nodes that share no launch
  bool least_memory = false;  ///< ShapeContext::least_memory
};

/// What shaping did to a fused graph.
struct Shaping {
  std::vector<ShapeVerdict> verdicts;  ///< of every place that a pass looked at
  std::vector<std::string> notes;      ///< a line for each kind of thing that was done
};

/// What a fused graph becomes before it is lowered (shape/shaping_passes.hpp). Still equal to the model, still a graph.
/// For GPUs only passes_of_launches() run: the others fit work into caches (DeviceTraits::shapes_for_caches).
/// E::unknown_name for a name in `no_pass` that is not a shaping pass.
Shaping shape_for_target(Graph& fused, const TargetInfo& target, const ShapeOptions& options = {});

/// The pass of that name: a shaping pass for the target, or any other. It keeps what it needs. E::unknown_name.
Pass pass_for(std::string_view name, const TargetInfo& target);

}  // namespace opfuse
