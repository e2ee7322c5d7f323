// Groups on devices: where each group of a plan runs when the target has accelerators beside it, and why.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fusion/plan.hpp"
#include "opfuse/opfuse.hpp"
#include "plugin/plugin.hpp"
#include "runtime/artifact.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

/// Where a group, or a node without one, runs.
struct Placement {
  std::string group;   ///< id of the candidate; of a node alone its name
  std::string device;  ///< "example-npu", or the host's target
  std::string code;    ///< "faster", "asked", "planned"; "no_operator", "no_composite", "open_sizes", "slower" ...
  std::string reason;
  double device_microseconds = 0, host_microseconds = 0;  ///< predicted; 0: not asked
  double copy_microseconds = 0;                           ///< of what has to be moved because of it
};

/// "NpuTileLinear@y on example-npu, faster: 0.02 ms there, 0.79 ms on cpu:avx512"
std::string text_of(const Placement& placement);

/// The devices beside the host, opened, and what was decided about them.
struct Placed {
  std::vector<TargetInfo> accelerators, gpus;              ///< with a plug-in; with kernels of opfuse's own
  std::map<std::string, std::shared_ptr<Plugin>> plugins;  ///< by target
  std::vector<Placement> placements;
  std::map<std::string, std::string> on_gpu;  ///< label of a group, or name of a node without one -> device
  bool none() const { return accelerators.empty() && gpus.empty(); }
  std::vector<std::string> notes;
};

struct PlaceRequest {
  std::vector<std::string> accelerators;                   ///< names or files, the preferred one first
  std::vector<std::pair<std::string, std::string>> place;  ///< node, or * for all that can be there -> device
  bool fallback = false;  ///< an accelerator that cannot be had is done without, said once
};

/// Opens the accelerators' plug-ins. E::no_device, E::device_failed naming the plug-in; E::bad_option for a target that
/// is not an accelerator. Null where there are none.
std::shared_ptr<Placed> open_accelerators(const PlaceRequest& request);

/// Plans for the host and its accelerators: composites where they pay, the host's own groups everywhere else.
/// E::bad_option where `place` asks for what cannot be.
FusionPlan plan_placed(const Graph& prepared, const TargetInfo& host, const PlanRequest& request,
                       const PlaceRequest& place, Placed& placed, const Limits& limits);

/// Of a plan that was given: groups of composites are where the plan has them.
void note_placements(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& place,
                     Placed& placed);

/// Which of the groups and nodes that a plan leaves to the host run on a GPU beside it; corrects the placements.
void place_on_gpus(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& place,
                   Placed& placed);
/// The placement of a group in words of its code: asked, faster, slower, or what stands against it.
struct PlacedGroup;
void explain_placement(const PlacedGroup& group, const TargetInfo& host, Placement& placement);
/// "cpu" and "host" are the host's target.
std::string device_named(const std::string& name, const TargetInfo& host);

/// What is legal for the host, and composites for their devices.
Legality legality_with(const Placed& placed, Legality host);

/// Fused nodes of accelerators become placed nodes, with copies of values between the memories: each value once per
/// device.
void insert_pieces(Graph& fused, const Placed& placed);

/// The artifact's devices, and by the label of a piece its text. `limits`, threads and progress are those of `options`.
struct PlacedDevices {
  std::vector<ArtifactDevice> devices;
  std::map<std::string, std::string> pieces;
  int number_of(const std::string& target) const;
};
PlacedDevices build_devices(const Graph& fused, const Placed& placed, const struct CompilationOptions& options);

}  // namespace opfuse
