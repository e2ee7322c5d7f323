// Groups that a plan leaves to the host, and nodes without one: on a GPU where its generator takes them and that is
// predicted to be faster, copies included. They change sides one by one while that gains.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "driver/pipeline.hpp"
#include "driver/placement.hpp"
#include "driver/placement_costs.hpp"
#include "fusion/names.hpp"
#include "ir/body.hpp"
#include "ir/outline.hpp"
#include "match/pattern.hpp"

namespace opfuse {
namespace {

class GpuPlacer {
 public:
  GpuPlacer(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& request,
            Placed& placed)
      : graph_(prepared), names_(prepared), plan_(plan), host_(host), request_(request), placed_(placed) {
    for (const TargetInfo& gpu : placed.gpus) legal_.push_back(legality_on(gpu));
  }

  void run() {
    for (Placement& placement : placed_.placements)
      if (placement.device == host_.name) add(placement);
    take_requests();
    settle_places(graph_, groups_, placed_.notes);
    for (size_t i = 0; i < groups_.size(); ++i) {
      const PlacedGroup& group = groups_[i];
      Placement& placement = *placements_[i];
      placement.device = group.there ? group.device : host_.name;
      explain_placement(group, host_, placement);
      if (group.there)
        placed_.on_gpu[singles_.contains(group.candidate) ? group.candidate->id : group.candidate->label] =
            group.device;
    }
  }

 private:
  const Graph& graph_;
  const NodeNames names_;
  const FusionPlan& plan_;
  const TargetInfo& host_;
  const PlaceRequest& request_;
  Placed& placed_;
  std::vector<Legality> legal_;
  std::deque<Candidate> made_;
  std::set<const Candidate*> singles_;  ///< nodes without a group; looked up only
  std::vector<PlacedGroup> groups_;
  std::vector<Placement*> placements_;

  /// The group of a placement, or one of a single node.
  const Candidate* candidate_of(const std::string& id) {
    for (const Candidate* c : plan_.applied())
      if (c->id == id) return c;
    Node* const node = names_.find(id);
    if (!node || node->name() != id || (node->body && !stands_for_body(*node))) return nullptr;
    Candidate single;
    single.id = id, single.label = std::string(operator_name(*node)) + "__" + id;
    single.pattern = std::string(operator_name(*node));
    single.nodes = {id};
    made_.push_back(std::move(single));
    singles_.insert(&made_.back());
    return &made_.back();
  }

  void add(Placement& placement) {
    const Candidate* const candidate = candidate_of(placement.group);
    if (!candidate) return;
    PlacedGroup group{.candidate = candidate};
    for (const std::string& name : candidate->nodes) group.nodes.push_back(names_.find(name));
    for (size_t g = 0; g < placed_.gpus.size(); ++g) {
      group.device = placed_.gpus[g].name;
      group.fixed = refusal(group, g);
      if (!group.fixed.code.empty()) continue;
      price_group(group, graph_, host_, placed_.gpus[g]);
      group.there = true;
      break;
    }
    groups_.push_back(std::move(group));
    placements_.push_back(&placement);
  }

  Decline refusal(const PlacedGroup& group, size_t gpu) const {
    for (const Node* node : group.nodes)
      for (const Value* v : node->outputs)
        if (!v->type.shape.ranked || v->type.dtype == DType::unknown)
          return {"open_sizes", "its sizes are not known before it runs", {}};
    try {
      const OutlinedCopy copy =
          outline_copy(graph_, group.nodes, {fused_op(), group.candidate->label, group.candidate->pattern});
      if (auto why = legal_[gpu](*copy.node))
        return {why->code, fmt::format("{}: {}", placed_.gpus[gpu].name, why->message), {}};
    } catch (const Error& error) {  // an operand that only the whole graph knows
      if (error.diagnostic().name == "internal") throw;
      return {"dynamic_operand", error.diagnostic().message, {}};
    }
    return {};
  }

  bool is_gpu(const std::string& name) const {
    return std::any_of(placed_.gpus.begin(), placed_.gpus.end(), [&](const TargetInfo& g) { return g.name == name; });
  }

  void take_requests() {
    for (const auto& [node, device] : request_.place) {
      const std::string on = device_named(device, host_);
      const bool host = on == host_.name;
      if (!host && !is_gpu(on)) continue;
      if (node != "*" && !names_.find(node)) {
        std::vector<std::string> known;
        for (const Node* n : graph_.nodes()) known.push_back(names_.of(n));
        throw fail(E::unknown_name, "--place names the node \"{}\", which is not there", node)
            .hint(did_you_mean(node, known));
      }
      bool found = node == "*" || host;
      for (PlacedGroup& group : groups_) {
        const std::vector<std::string>& nodes = group.candidate->nodes;
        if (node != "*" && std::find(nodes.begin(), nodes.end(), node) == nodes.end()) continue;
        if (!host && (group.device != on || !group.fixed.code.empty())) {
          if (node == "*") continue;
          throw fail(E::bad_option, "--place {}={}: {}", node, device, group.fixed.message).node(node);
        }
        group.there = !host, group.asked = group.fixed.code.empty(), found = true;
      }
      if (!found)
        throw fail(E::bad_option, "--place {}={}: no group that {} takes has the node", node, device, on).node(node);
    }
  }
};

}  // namespace

void place_on_gpus(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& place,
                   Placed& placed) {
  placed.on_gpu.clear();
  if (!placed.gpus.empty()) GpuPlacer(prepared, plan, host, place, placed).run();
}

}  // namespace opfuse
