// From work list to program. Values become buffers, layouts are assigned over the whole program, then
// the items are emitted in order: launches, and views where memory allows them (copies where not). At
// the end strides, schedules and the memory plan.
#include <fmt/format.h>

#include <map>

#include "ir/defined_symbols.hpp"
#include "program/assign_layouts.hpp"
#include "program/in_place.hpp"
#include "program/program_builder.hpp"

namespace opfuse {
namespace {

/// Reports, profiles and proofs know a launch by its name.
void name_apart(std::vector<Launch>& launches) {
  std::map<std::string, int> copies;
  for (const Launch& launch : launches) copies[launch.name] = 0;
  for (Launch& launch : launches) {
    int& count = copies.at(launch.name);
    if (++count == 1) continue;
    std::string apart = fmt::format("{}_{}", launch.name, count);
    while (copies.contains(apart)) apart = fmt::format("{}_{}", launch.name, ++count);
    copies[apart] = 1;
    launch.name = std::move(apart);
  }
}

}  // namespace

std::string launch_name(const Node& node) {
  if (node.label.empty()) return fmt::format("{}__{}", node.op->name, node.name());
  return node.op == composite_op() ? fmt::format("{}__{}", node.label, node.name()) : node.label;
}

Program ProgramBuilder::run() {
  const std::set<std::string> symbols = all_symbols(work_.graph);
  program_.symbols.assign(symbols.begin(), symbols.end());
  program_.notes = work_.notes;
  make_buffers();
  for (WorkItem& item : work_.items) item.wishes = wishes_of(item.groups, item.node->pattern);
  const auto takes = [this](const Region& region, const std::vector<Layout>& layouts) {
    return has_kernel(region, layouts);
  };
  if (options_.blocked_layouts) assign_layouts(program_, work_, buffers_, target_, takes, options_.outputs_in_blocks);
  for (const WorkItem& item : work_.items) emit(item);
  for (const Body& body : program_.bodies)
    if (body.kind == BodyKind::parts)
      program_.notes.push_back(fmt::format("{} launches run {} by {}: their work and times are of all {} {}s",
                                           body.launches, body.of, body.of, body.times.text(), body.of));
  for (const auto& [from, to] : copies_) emit_copy(from, to);
  name_apart(program_.launches);
  assign_strides(program_);
  choose_schedules();
  if (options_.in_place) share_buffers(program_, target_.traits.rows_in_place);
  assign_strides(program_);
  plan_memory(program_, options_.arena_comparisons);
  verify(program_);
  return std::move(program_);
}

void ProgramBuilder::choose_schedules() {
  if (!options_.choose_schedule) return;
  for (Launch& launch : program_.launches) {
    if (launch.reference) continue;
    std::vector<Layout> layouts;
    std::vector<std::vector<Dim>> strides;
    for (int index : launch.buffers) {
      layouts.push_back(buffer(index).layout);
      strides.push_back(buffer(index).strides);
    }
    const auto own = options_.schedule_of_pattern && !launch.pattern.empty()
                         ? options_.schedule_of_pattern(launch.pattern, launch.region)
                         : std::nullopt;
    launch.schedule = own ? *own : options_.choose_schedule(launch.region, layouts, strides);
  }
}

bool ProgramBuilder::has_kernel(const Region& region, const std::vector<Layout>& layouts) const {
  if (!options_.choose_schedule) return true;
  std::vector<std::vector<Dim>> strides;
  for (size_t p = 0; p < layouts.size(); ++p) strides.push_back(dense_strides(layouts[p], region.params[p].type.shape));
  return !options_.choose_schedule(region, layouts, strides).skeleton.empty();
}

LayoutWish ProgramBuilder::wish(const Region& region, const std::string& pattern) const {
  if (!pattern.empty() && options_.wish_of_pattern)
    if (auto own = options_.wish_of_pattern(pattern, region)) return *own;
  if (options_.wish_layouts) return options_.wish_layouts(region);
  return {std::vector<std::optional<Layout>>(region.params.size())};
}

std::vector<LayoutWish> ProgramBuilder::wishes_of(const std::vector<LoweredGroup>& groups,
                                                  const std::string& pattern) const {
  std::vector<LayoutWish> wishes;
  for (const LoweredGroup& group : groups) wishes.push_back(wish(group.region, pattern));
  return wishes;
}

void ProgramBuilder::emit(const WorkItem& item) {
  switch (item.kind) {
    case WorkKind::launch:
      return launch_all(*item.node, item.groups, item.wishes);
    case WorkKind::reshape:
      return emit_reshape(*item.node);
    case WorkKind::box:
      return emit_box(item);
    case WorkKind::concat:
      return emit_concat(item);
    case WorkKind::reference:
      return emit_reference(*item.node);
    case WorkKind::enter:
      in_body_ = true;
      entered_ = static_cast<int>(program_.launches.size());
      return moving_.clear();
    case WorkKind::leave:
      in_body_ = false;
      return emit_body(item.node->as<ForParts>());
  }
}

Program build_program(const Graph& fused_graph, const TargetInfo& target, const BuildOptions& options) {
  return ProgramBuilder(fused_graph, target, options).run();
}

}  // namespace opfuse
