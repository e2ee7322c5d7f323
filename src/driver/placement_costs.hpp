// What placing costs: a group there and on the host, and values that cross between the memories.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fusion/plan.hpp"
#include "target/target.hpp"

namespace opfuse {

/// A composite that an accelerator could run, or a group or node that a GPU could.
struct PlacedGroup {
  const Candidate* candidate = nullptr;
  std::string device;
  std::vector<Node*> nodes;
  Decline fixed;                                      ///< why it cannot run there; empty: it can
  bool there = false;                                 ///< on the device
  bool asked = false;                                 ///< by --place
  double device_time = 0, host_time = 0, copies = 0;  ///< microseconds
  double transfer_seconds = 0, transfer_rate = 0;     ///< of its device
  std::string priced_at{};                            ///< "batch=32": open dimensions, and what they were taken for
};

/// What open dimensions are taken for where a device is asked or priced before they are known: Limits::priced_size.
SymbolValues nominal_sizes(const Graph& graph);

/// Fills the times. The host's are what its own planner is asked, or work at its rate where that is no single kernel.
void price_group(PlacedGroup& group, const Graph& graph, const TargetInfo& host, const TargetInfo& device);

/// Moves groups between host and device one by one while that wins; a note where Limits::placement_rounds ends it.
void settle_places(const Graph& graph, std::vector<PlacedGroup>& groups, std::vector<std::string>& notes);

/// Copies of a set of groups on devices, each value once per device and direction.
class PlacementCosts {
 public:
  PlacementCosts(const Graph& graph, const std::vector<PlacedGroup>& groups);
  /// Microseconds that are won when the group is on the host instead of its device, the others where they are.
  double gain_of_leaving(const PlacedGroup& group) const;
  /// Copies that there are because of the group.
  double copies_of(const PlacedGroup& group) const;

 private:
  const Graph& graph_;
  const std::vector<PlacedGroup>& groups_;
  const SymbolValues sizes_;
  std::map<const Node*, const PlacedGroup*> owner_;

  /// Of the values that a group reads or makes, as if it were on its device or not.
  double copies_around(const PlacedGroup& group, bool there) const;
  bool on_device(const Node* node, const PlacedGroup& group, bool there) const;
};

}  // namespace opfuse
