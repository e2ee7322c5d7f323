// A plan with the composites of all accelerators says what could run there. What does: a composite's time there, the
// host's for the same group, and copies of the values that cross. Groups change sides one by one while that gains, in
// the order of the plan; then the host's side is planned again without the composites that stay there, so that it is
// the plan it would have alone.
#include "driver/placement.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "device/driver.hpp"
#include "driver/pipeline.hpp"
#include "driver/placement_costs.hpp"
#include "fusion/names.hpp"
#include "fusion/precision.hpp"
#include "fusion/user/capability_rules.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "link/piece_text.hpp"
#include "runtime/placed_device.hpp"

namespace opfuse {
namespace {

struct Device {
  const TargetInfo* target;
  std::shared_ptr<const CapabilityRules> rules;
};

bool is_gpu(const Placed& placed, const std::string& name) {
  return std::any_of(placed.gpus.begin(), placed.gpus.end(), [&](const TargetInfo& g) { return g.name == name; });
}

std::vector<Device> devices_of(const Placed& placed) {
  std::vector<Device> devices;
  for (const TargetInfo& target : placed.accelerators) devices.push_back({&target, capability_rules(target)});
  return devices;
}

const Device* device_of(const std::vector<Device>& devices, std::string_view pattern) {
  for (const Device& device : devices)
    if (device.rules->is_composite(pattern)) return &device;
  return nullptr;
}

using NodeSet = std::set<const Node*>;

/// Composites claim no node of `on_host`.
FusionPlan plan_with(const Graph& prepared, const TargetInfo& host, const PlanRequest& request, const Limits& limits,
                     const std::vector<Device>& devices, const NodeSet& on_host) {
  PlanOptions options = plan_options(host, request, limits);
  std::vector<FusionPattern> patterns = patterns_of(request);
  size_t at = 0;
  if (const auto own = capability_rules(host))
    patterns.insert(patterns.begin(), own->composites().begin(), own->composites().end());
  for (const Device& device : devices)
    for (FusionPattern pattern : device.rules->composites()) {
      pattern.where.push_back({"not on the host", [&on_host](const Match& match) -> std::optional<Decline> {
                                 for (const Node* node : match.nodes)
                                   if (on_host.contains(node)) return Decline{"on_host", "it runs on the host", {}};
                                 return std::nullopt;
                               }});
      patterns.insert(patterns.begin() + static_cast<std::ptrdiff_t>(at++), std::move(pattern));
    }
  options.patterns = &patterns;
  options.legal = [&devices, host_legal = options.legal](const Node& node) {
    const Device* const device = device_of(devices, node.pattern);
    return device ? device->rules->refuse(node) : host_legal(node);
  };
  FusionPlan plan = make_plan(prepared, options);
  set_precisions(plan, prepared, request.precision);
  return plan;
}

std::vector<Node*> nodes_of(const NodeNames& names, const Candidate& c) {
  std::vector<Node*> nodes;
  for (const std::string& name : c.nodes) nodes.push_back(names.find(name));
  return nodes;
}

/// Some value has another size than what the model's inputs give: nobody knows it before a run.
bool has_unknown_sizes(const std::vector<Node*>& nodes, const std::set<std::string>& given) {
  const auto unknown = [&](const Value* v) {
    if (!v) return false;
    if (!v->type.shape.ranked) return true;
    std::set<std::string> symbols;
    for (const Dim& dim : v->type.shape.dims) dim.collect_symbols(symbols);
    return !std::includes(given.begin(), given.end(), symbols.begin(), symbols.end());
  };
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) {
    return std::any_of(n->inputs.begin(), n->inputs.end(), unknown) ||
           std::any_of(n->outputs.begin(), n->outputs.end(), unknown);
  });
}

/// Decides for one plan.
class Placer {
 public:
  Placer(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& request,
         Placed& placed, const std::vector<Device>& devices)
      : graph_(prepared),
        names_(prepared),
        plan_(plan),
        host_(host),
        request_(request),
        placed_(placed),
        devices_(devices) {}

  /// What each applied composite becomes, by id.
  std::map<std::string, Placement> run() {
    find_groups();
    check_requests();
    settle_places(graph_, groups_, placed_.notes);
    std::map<std::string, Placement> all;
    for (const PlacedGroup& group : groups_) all[group.candidate->id] = placement_of(group);
    return all;
  }

 private:
  const Graph& graph_;
  const NodeNames names_;
  const FusionPlan& plan_;
  const TargetInfo& host_;
  const PlaceRequest& request_;
  Placed& placed_;
  const std::vector<Device>& devices_;
  std::vector<PlacedGroup> groups_;

  void find_groups() {
    for (const Candidate* c : plan_.applied()) {
      const Device* const device = device_of(devices_, c->pattern);
      if (!device) continue;
      PlacedGroup group{.candidate = c, .device = device->target->name, .nodes = nodes_of(names_, *c)};
      if (has_unknown_sizes(group.nodes, graph_.symbols()))
        group.fixed = {"open_sizes", "its sizes are not known before it runs", {}};
      else
        ask_plugin(group);
      if (group.fixed.code.empty()) price_group(group, graph_, host_, *device->target);
      group.there = group.fixed.code.empty();
      groups_.push_back(std::move(group));
    }
  }

  void ask_plugin(PlacedGroup& group) {
    const OutlinedCopy copy =
        outline_copy(graph_, group.nodes, {fused_op(), group.candidate->label, group.candidate->pattern});
    const std::string piece = piece_at(piece_text(*copy.node), nominal_sizes(graph_));
    if (auto why = placed_.plugins.at(group.device)->refuses(piece))
      group.fixed = {"refused", fmt::format("its plug-in does not take it: {}", *why)};
  }

  void check_requests() {
    for (const auto& [node, device] : request_.place) {
      const std::string on = device_named(device, host_);
      if (is_gpu(placed_, on)) continue;
      if (node == "*") {
        for (PlacedGroup& group : groups_)
          if (on == host_.name || (group.device == on && group.fixed.code.empty()))
            group.there = on != host_.name, group.asked = true;
        if (on != host_.name) check_device(on);
        continue;
      }
      if (!names_.find(node)) {
        std::vector<std::string> known;
        for (const Node* n : graph_.nodes()) known.push_back(names_.of(n));
        throw fail(E::unknown_name, "--place names the node \"{}\", which is not there", node)
            .hint(did_you_mean(node, known));
      }
      const auto at = std::find_if(groups_.begin(), groups_.end(), [&](const PlacedGroup& g) {
        return std::find(g.candidate->nodes.begin(), g.candidate->nodes.end(), node) != g.candidate->nodes.end();
      });
      if (on == host_.name) {
        if (at != groups_.end()) at->there = false, at->asked = true;
        continue;
      }
      check_device(on);
      if (at == groups_.end() || at->device != on)
        throw fail(E::bad_option, "--place {}={}: no composite of {} has the node", node, device, on).node(node);
      if (!at->fixed.code.empty())
        throw fail(E::bad_option, "--place {}={}: {}", node, device, at->fixed.message).node(node);
      at->there = at->asked = true;
    }
  }

  void check_device(const std::string& name) const {
    std::vector<std::string> known{host_.name, "cpu"};
    for (const TargetInfo& gpu : placed_.gpus) known.push_back(gpu.name);
    for (const Device& device : devices_) {
      if (device.target->name == name) return;
      known.push_back(device.target->name);
    }
    throw fail(E::bad_option, "--place: there is no device '{}' among the targets", name)
        .hint(did_you_mean(name, known));
  }

  Placement placement_of(const PlacedGroup& g) const {
    Placement p{g.candidate->id, g.there ? g.device : host_.name, "", "", 0, 0, 0};
    explain_placement(g, host_, p);
    return p;
  }
};

/// Why a group that is not a composite runs on the host.
Decline why_on_host(const std::vector<Node*>& nodes, const FusionPlan& plan, const std::vector<Device>& devices,
                    const NodeNames& names) {
  for (const Candidate& c : plan.candidates) {
    if (c.apply || !c.decline || !is_capability(c.decline->code) || !device_of(devices, c.pattern)) continue;
    for (const Node* node : nodes)
      if (std::find(c.nodes.begin(), c.nodes.end(), names.of(node)) != c.nodes.end())
        return {c.decline->code, fmt::format("{}: {}", c.pattern, c.decline->message), {}};
  }
  if (devices.empty()) return {"no_composite", "no device beside the host takes it", {}};
  const Device& first = devices.front();
  for (const Node* node : nodes)
    if (auto decline = first.rules->refuse_operator(*node)) return *decline;
  return {"no_composite", fmt::format("no composite of {} is this group", first.target->name), {}};
}

void note_all(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, Placed& placed,
              const std::vector<Device>& devices, const std::map<std::string, Placement>& decided) {
  const NodeNames names(prepared);
  std::set<const Node*> grouped;
  std::map<const Node*, const Placement*> left;  // nodes of composites that stay on the host
  for (const auto& [id, placement] : decided)
    if (placement.device == host.name)
      if (const Node* node = names.find(id.substr(id.find('@') + 1))) left[node] = &placement;
  const auto on_host = [&](const std::string& group, const std::vector<Node*>& nodes) {
    Placement p{group, host.name, "", "", 0, 0, 0};
    for (const Node* node : nodes)
      if (const auto at = left.find(node); at != left.end()) {
        p = *at->second;
        p.group = group;
        return placed.placements.push_back(p);
      }
    const Decline why = why_on_host(nodes, plan, devices, names);
    p.code = why.code, p.reason = why.message;
    placed.placements.push_back(std::move(p));
  };
  placed.placements.clear();
  for (const Candidate* c : plan.applied()) {
    const std::vector<Node*> nodes = nodes_of(names, *c);
    grouped.insert(nodes.begin(), nodes.end());
    const Device* const device = device_of(devices, c->pattern);
    if (!device) {
      on_host(c->id, nodes);
    } else if (const auto at = decided.find(c->id); at != decided.end()) {
      placed.placements.push_back(at->second);
    } else {
      placed.placements.push_back({c->id, device->target->name, "planned", "the plan has it there", 0, 0, 0});
    }
  }
  for (Node* node : prepared.nodes())
    if (!grouped.contains(node)) on_host(names.of(node), {node});
}

}  // namespace

void explain_placement(const PlacedGroup& g, const TargetInfo& host, Placement& p) {
  p.device_microseconds = g.device_time, p.host_microseconds = g.host_time, p.copy_microseconds = g.copies;
  const std::string at = g.priced_at.empty() ? "" : " (priced for " + g.priced_at + ")";
  if (!g.fixed.code.empty()) {
    p.code = g.fixed.code, p.reason = g.fixed.message;
  } else if (g.asked) {
    p.code = "asked", p.reason = "--place has it there";
  } else if (g.there) {
    p.code = "faster";
    p.reason = fmt::format("{:.0f} us there, {:.0f} us on {}; {:.0f} us of copies{}", g.device_time, g.host_time,
                           host.name, g.copies, at);
  } else if (g.device_time >= g.host_time) {
    p.code = "slower";
    p.reason = fmt::format("{:.0f} us on {}, {:.0f} us here{}", g.device_time, g.device, g.host_time, at);
  } else {
    p.code = "slower";
    p.reason = fmt::format("moving its values takes {:.0f} us, more than the {:.0f} us that {} saves{}", g.copies,
                           g.host_time - g.device_time, g.device, at);
  }
}

std::string device_named(const std::string& name, const TargetInfo& host) {
  return name == "cpu" || name == "host" ? host.name : name;
}

std::string text_of(const Placement& p) { return fmt::format("{} on {}, {}: {}", p.group, p.device, p.code, p.reason); }

/// A GPU is opened by the first run, which need not be on this machine: only who would do without one asks at once.
static void open_one(const TargetInfo& target, bool fallback, Placed& placed) {
  if (target.kind == "accelerator") {
    placed.plugins[target.name] = Plugin::open(plugin_file_of(target));
    return placed.accelerators.push_back(target);
  }
  if (target.kind != "cuda")
    throw fail(E::bad_option, "{} is neither an accelerator nor a GPU", target.name)
        .hint("devices stand in front, the cpu target last: --target example-npu,cuda:sm_90,cpu");
  if (fallback) cuda::driver_for(target.name);
  placed.gpus.push_back(target);
}

std::shared_ptr<Placed> open_accelerators(const PlaceRequest& request) {
  if (request.accelerators.empty()) return nullptr;
  auto placed = std::make_shared<Placed>();
  for (const std::string& name : request.accelerators) {
    const TargetInfo target = parse_target(name);
    try {
      open_one(target, request.fallback, *placed);
    } catch (const Error& error) {
      const std::string& kind = error.diagnostic().name;
      if (!request.fallback || (kind != "no_device" && kind != "device_failed")) throw;
      placed->notes.push_back(fmt::format("fallback: done without {}: {}", target.name, error.diagnostic().message));
    }
  }
  return placed;
}

FusionPlan plan_placed(const Graph& prepared, const TargetInfo& host, const PlanRequest& request,
                       const PlaceRequest& place, Placed& placed, const Limits& limits) {
  const std::vector<Device> devices = devices_of(placed);
  const FusionPlan all = plan_with(prepared, host, request, limits, devices, {});
  const std::map<std::string, Placement> decided = Placer(prepared, all, host, place, placed, devices).run();
  const NodeNames names(prepared);
  NodeSet on_host;
  for (const auto& [id, placement] : decided)
    if (placement.device == host.name)
      for (const Node* node : nodes_of(names, *all.find(id))) on_host.insert(node);
  FusionPlan plan = plan_with(prepared, host, request, limits, devices, on_host);
  note_all(prepared, plan, host, placed, devices, decided);
  place_on_gpus(prepared, plan, host, place, placed);
  for (const Placement& p : placed.placements)
    for (Candidate& c : plan.candidates)
      if (c.apply && c.id == p.group) c.notes.push_back("on " + p.device + ", " + p.code + ": " + p.reason);
  return plan;
}

Legality legality_with(const Placed& placed, Legality host) {
  return [devices = devices_of(placed), host = std::move(host)](const Node& node) {
    const Device* const device = device_of(devices, node.pattern);
    return device ? device->rules->refuse(node) : host(node);
  };
}

void note_placements(const Graph& prepared, const FusionPlan& plan, const TargetInfo& host, const PlaceRequest& place,
                     Placed& placed) {
  if (placed.none()) return;
  note_all(prepared, plan, host, placed, devices_of(placed), {});
  place_on_gpus(prepared, plan, host, place, placed);
}

}  // namespace opfuse
