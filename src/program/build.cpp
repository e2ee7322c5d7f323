// From work list to program. Values become buffers, layouts are assigned over the whole program, then
// the items are emitted in order: launches, and views where memory allows them (copies where not). At
// the end strides, schedules and the memory plan.
#include "program/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/for_parts.hpp"
#include "ir/placed.hpp"
#include "ops/routines.hpp"
#include "program/assign_layouts.hpp"
#include "program/in_place.hpp"
#include "program/layout_facts.hpp"
#include "program/levels.hpp"
#include "program/routine_launches.hpp"

namespace opfuse {
namespace {

/// A composite has the name of what it computes, which others may compute too.
std::string launch_name(const Node& node) {
  if (node.label.empty()) return fmt::format("{}__{}", node.op->name, node.name());
  return node.op == composite_op() ? fmt::format("{}__{}", node.label, node.name()) : node.label;
}

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

class Builder {
 public:
  Builder(const Graph& graph, const TargetInfo& target, const BuildOptions& options)
      : target_(target), options_(options), work_(make_work_list(graph, options)) {}

  Program run() {
    const std::set<std::string> symbols = all_symbols(work_.graph);
    program_.symbols.assign(symbols.begin(), symbols.end());
    program_.notes = work_.notes;
    make_buffers();
    for (WorkItem& item : work_.items) item.wishes = wishes_of(item.groups, item.node->pattern);
    const auto takes = [this](const Region& region, const std::vector<Layout>& layouts) {
      return has_kernel(region, layouts);
    };
    if (options_.blocked_layouts) assign_layouts(program_, work_, buffers_, target_, takes);
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

 private:
  const TargetInfo& target_;
  const BuildOptions& options_;
  WorkList work_;
  Program program_;
  std::map<const Value*, int> buffers_;               ///< looked up only
  std::vector<std::pair<const Value*, int>> copies_;  ///< graph outputs that another value's buffer holds
  std::map<std::pair<const Value*, std::string>, int> constants_;
  std::map<std::pair<int, bool>, int> step_boxes_;  ///< by buffer and direction
  int entered_ = 0;                                 ///< the first launch of the body that is being emitted
  std::set<int> moving_;                            ///< boxes of its first part
  bool in_body_ = false;
  Levels levels_;                                            ///< of the launches so far
  std::map<std::pair<int, std::string>, int> input_copies_;  ///< by buffer and layout

  Buffer& buffer(int index) { return program_.buffers[static_cast<size_t>(index)]; }

  bool has_kernel(const Region& region, const std::vector<Layout>& layouts) const {
    if (!options_.choose_schedule) return true;
    std::vector<std::vector<Dim>> strides;
    for (size_t p = 0; p < layouts.size(); ++p)
      strides.push_back(dense_strides(layouts[p], region.params[p].type.shape));
    return !options_.choose_schedule(region, layouts, strides).skeleton.empty();
  }

  LayoutWish wish(const Region& region, const std::string& pattern = {}) const {
    if (!pattern.empty() && options_.wish_of_pattern)
      if (auto own = options_.wish_of_pattern(pattern, region)) return *own;
    if (options_.wish_layouts) return options_.wish_layouts(region);
    return {std::vector<std::optional<Layout>>(region.params.size())};
  }

  std::vector<LayoutWish> wishes_of(const std::vector<LoweredGroup>& groups, const std::string& pattern) const {
    std::vector<LayoutWish> wishes;
    for (const LoweredGroup& group : groups) wishes.push_back(wish(group.region, pattern));
    return wishes;
  }

  /// The source name, or "%id" for values that conversions made.
  static std::string buffer_name(const Value* value) {
    return value->name.empty() ? fmt::format("%{}", value->id) : value->name;
  }

  int add_buffer(BufferKind kind, const std::string& name, const TensorType& type) {
    Buffer added;
    added.kind = kind;
    added.name = name;
    added.type = type;
    added.layout = Layout::dense(type.shape.rank());
    program_.buffers.push_back(std::move(added));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  void make_buffers() {
    for (const Value* input : work_.graph.inputs()) {
      const int index = add_buffer(BufferKind::input, input->name, input->type);
      buffers_[input] = index;
      program_.inputs.push_back(index);
    }
    for (const Value* output : work_.graph.outputs()) {
      const int index = add_buffer(BufferKind::output, output->name, output->type);
      if (output->producer != nullptr && !buffers_.contains(output))
        buffers_[output] = index;
      else
        copies_.emplace_back(output, index);
      program_.outputs.push_back(index);
    }
    for (const WorkItem& item : work_.items) {
      if (item.node->op == for_parts_op() && item.kind == WorkKind::box)
        for (const Value* part : item.parts)
          buffers_[part] = add_buffer(BufferKind::intermediate, part->name, part->type);
      if (item.node->op == for_parts_op() && item.kind != WorkKind::concat) continue;
      for (const Value* result : item.node->outputs)
        if (!buffers_.contains(result) && produced(item, result))
          buffers_[result] = add_buffer(BufferKind::intermediate, buffer_name(result), result->type);
    }
    for (const auto& value : work_.temporaries)
      buffers_[value.get()] = add_buffer(BufferKind::intermediate, "", value->type);
  }

  /// Unread results of nodes with several have no buffer unless a launch writes them.
  bool produced(const WorkItem& item, const Value* result) const {
    if (item.kind == WorkKind::reference) return result->type.dtype != DType::unknown;
    if (item.kind == WorkKind::concat) return result == item.whole;
    if (item.kind != WorkKind::launch) return work_.graph.read_count(result) > 0;
    for (const LoweredGroup& group : item.groups)
      for (size_t i = 0; i < group.operands.size(); ++i)
        if (group.region.params[i].role == ParamRole::output && group.operands[i].value == result) return true;
    return false;
  }

  int find(const Value* value) const {
    const auto it = buffers_.find(value);
    return it == buffers_.end() ? -1 : it->second;
  }

  int constant_buffer(const LoweredOperand& operand, const Param& param, const std::optional<Layout>& wished,
                      const std::string& owner) {
    const Layout layout = wished.value_or(Layout::dense(param.type.shape.rank()));
    const auto key = std::make_pair(operand.value, layout.text());
    if (operand.value != nullptr)
      if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
    const std::string name = operand.value != nullptr ? operand.value->name : owner + ".made";
    const int index = add_buffer(BufferKind::constant, name, param.type);
    buffer(index).layout = layout;
    buffer(index).constant = operand.bytes();
    const Value* source = operand.value != nullptr ? operand.value : operand.from;
    buffer(index).quantised =
        source != nullptr && source->is_constant() && options_.quantised.contains(source->constant->data());
    if (operand.value != nullptr) constants_[key] = index;
    return index;
  }

  /// A parameter of a loop's launch: the slice of the first step, of which the loop moves on.
  int step_box(int whole, const LoweredGroup& group, const TensorType& type) {
    const auto [at, fresh] = step_boxes_.emplace(std::pair(whole, group.backwards), -1);
    if (!fresh) return at->second;
    const int box =
        add_buffer(buffer(whole).kind == BufferKind::constant ? BufferKind::constant : BufferKind::intermediate,
                   buffer(whole).name, type);
    buffer(box).layout = buffer(whole).layout;
    buffer(box).view_of = whole;
    buffer(box).view_offset.assign(type.shape.rank(), Dim(0));
    if (group.backwards) buffer(box).view_offset[0] = group.steps - Dim(1);
    return at->second = box;
  }

  /// An initial state takes the place of a slice in the first step: its rows must lie alike.
  int initial_state(int given, int slices, const Node& node) {
    if (buffer(given).kind == BufferKind::constant || dense_rows(given)) return given;
    const int copy =
        add_buffer(BufferKind::intermediate, fmt::format("{}[initial]", buffer(given).name), buffer(given).type);
    buffer(copy).layout = buffer(slices).layout;
    launch_copy(given, copy, node, fmt::format("{}.initial", launch_name(node)));
    return copy;
  }

  /// No cut but along first axes, and no other layout: a slice is rows one behind the other.
  bool dense_rows(int index) {
    const Buffer& b = buffer(index);
    if (!b.layout.is_dense()) return false;
    if (b.view_of < 0 || b.view_offset.empty()) return true;
    const std::vector<Dim>&own = b.type.shape.dims, &whole = buffer(b.view_of).type.shape.dims;
    return std::equal(own.begin() + 1, own.end(), whole.begin() + 1, whole.end()) && dense_rows(b.view_of);
  }

  int step_buffer(const LoweredGroup& group, size_t i, const std::optional<Layout>& wished, const std::string& owner) {
    const Param& param = group.region.params[i];
    const LoweredOperand& operand = group.operands[i];
    const StepOperand& step = group.step_operands[i];
    const bool slice = step.moves || step.before;
    if (param.role != ParamRole::constant)
      return slice ? step_box(find(operand.value), group, param.type) : find(operand.value);
    if (!slice) return constant_buffer(operand, param, wished, owner);
    return step_box(constant_buffer(operand, {param.role, operand.value->type}, {}, owner), group, param.type);
  }

  /// The launches of a step, and the loop around them.
  void loop(const Node& node, const std::vector<LoweredGroup>& groups) {
    std::vector<Launch> launches;
    for (size_t g = 0; g < groups.size(); ++g) {
      const LoweredGroup& group = groups[g];
      Launch& added = launches.emplace_back();
      added.region = group.region;
      added.name = groups.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), g);
      added.pattern = "Recurrent";
      for (const Source& source : node.sources) added.sources.push_back(source.name);
      const std::vector<std::optional<Layout>> wishes = wish(group.region).params;
      for (size_t i = 0; i < group.operands.size(); ++i)
        added.buffers.push_back(step_buffer(group, i, wishes[i], added.name));
      added.steps = group.step_operands;
      for (size_t i = 0; i < added.steps.size(); ++i)
        if (const int first = added.steps[i].first; first >= 0)
          added.buffers[static_cast<size_t>(first)] =
              initial_state(added.buffers[static_cast<size_t>(first)], added.buffers[i], node);
    }
    program_.bodies.push_back({.kind = BodyKind::steps,
                               .first = static_cast<int>(program_.launches.size()),
                               .launches = static_cast<int>(launches.size()),
                               .times = groups[0].steps,
                               .backwards = groups[0].backwards});
    for (Launch& launch : launches) program_.launches.push_back(std::move(launch));
  }

  void launch(const Node& node, const LoweredGroup& group, const std::vector<std::optional<Layout>>& wishes,
              const std::string& name) {
    Launch added;
    added.region = group.region;
    added.name = name;
    added.pattern = node.pattern;
    for (const Source& source : node.sources) added.sources.push_back(source.name);
    for (size_t i = 0; i < group.operands.size(); ++i) {
      const Param& param = group.region.params[i];
      const LoweredOperand& operand = group.operands[i];
      const int index =
          param.role == ParamRole::constant ? constant_buffer(operand, param, wishes[i], name) : find(operand.value);
      OPFUSE_CHECK(index >= 0, "launch {} has no buffer for parameter {}", name, i);
      added.buffers.push_back(index);
    }
    for (size_t i = 0; i < added.buffers.size(); ++i)
      if (wishes[i] && wants_copy(added, i, *wishes[i]))
        added.buffers[i] = input_copy(added.buffers[i], *wishes[i], node);
    program_.launches.push_back(std::move(added));
  }

  /// The caller's arrays are dense; where a kernel has a faster algorithm on another layout, the input is copied once.
  bool wants_copy(const Launch& launch, size_t i, const Layout& wished) {
    const Buffer& given = buffer(launch.buffers[i]);
    if (!options_.copy_of_input_pays || in_body_ || given.kind != BufferKind::input || given.layout == wished)
      return false;
    std::vector<Layout> layouts;
    for (int b : launch.buffers) {
      if (buffer(b).quantised) return false;  // such weights stay direct
      layouts.push_back(buffer(b).layout);
    }
    layouts[i] = wished;
    return options_.copy_of_input_pays(launch.region, i, layouts);
  }

  int input_copy(int input, const Layout& layout, const Node& node) {
    const auto [at, fresh] = input_copies_.emplace(std::pair(input, layout.text()), -1);
    if (!fresh) return at->second;
    const std::string name = fmt::format("{}[blocks]", buffer(input).name);
    const int copy = add_buffer(BufferKind::intermediate, name, buffer(input).type);
    buffer(copy).layout = layout;
    launch_copy(input, copy, node, fmt::format("{}.input", launch_name(node)));
    program_.notes.push_back(
        fmt::format("input \"{}\" is copied into blocks of channels: {} is predicted faster with the copy",
                    buffer(input).name, launch_name(node)));
    return at->second = copy;
  }

  void launch_all(const Node& node, const std::vector<LoweredGroup>& groups) {
    launch_all(node, groups, wishes_of(groups, node.pattern));
  }
  void launch_all(const Node& node, const std::vector<LoweredGroup>& groups, const std::vector<LayoutWish>& wishes) {
    if (!groups.empty() && !groups[0].step_operands.empty()) return loop(node, groups);
    for (size_t g = 0; g < groups.size(); ++g)
      launch(node, groups[g], wishes[g].params,
             groups.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), g));
  }

  void emit(const WorkItem& item) {
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

  void emit_reference(const Node& node) {
    Launch added;
    added.name = launch_name(node);
    for (const Source& source : node.sources) added.sources.push_back(source.name);
    if (added.sources.empty()) added.sources.push_back(node.name());
    for (const Value* value : node.inputs) {
      if (value != nullptr && value->is_constant())
        added.buffers.push_back(
            constant_buffer({value, *value->constant, {}}, {ParamRole::constant, value->type}, {}, ""));
      else
        added.buffers.push_back(value == nullptr ? -1 : find(value));
    }
    for (const Value* value : node.outputs) added.buffers.push_back(find(value));
    added.reference = true;
    if (node.op == placed_op()) added.pattern = node.pattern;  // the device, or a copy
    const std::optional<RoutineCall> call = routine_of(node);
    if (call) added.schedule = schedule_of(*call, node.outputs.size());
    levels_.add(added);
    if (call)
      program_.notes.push_back(fmt::format("{}: known when {} has run", fmt::join(call->defines, ", "), added.name));
    program_.launches.push_back(std::move(added));
  }

  /// The buffer that a chain of reshaped views starts from.
  int reshape_root(int index) {
    while (buffer(index).view_of >= 0 && buffer(index).view_offset.empty()) index = buffer(index).view_of;
    return index;
  }

  void emit_reshape(const Node& node) {
    const int from = find(node.input(0)), to = find(node.output());
    if (from >= 0 && make_reshape(from, to)) return;
    launch_all(node, lowered(node, options_));
  }

  bool make_reshape(int from, int to) {
    const int root = reshape_root(from);
    if (buffer(root).view_of >= 0) return false;  // part of a larger buffer
    const bool same = buffer(from).type.shape == buffer(to).type.shape && buffer(from).layout == buffer(to).layout;
    const bool in_order = stores_row_major(buffer(from).layout, buffer(from).type.shape) &&
                          stores_row_major(buffer(to).layout, buffer(to).type.shape);
    if (!same && !in_order) return false;
    if (buffer(to).kind == BufferKind::intermediate) {
      buffer(to).view_of = from;
      if (!in_order) buffer(to).view_offset.assign(buffer(to).type.shape.rank(), Dim(0));
      return true;
    }
    // A graph output: what was to be reshaped is computed in the caller's array instead.
    if (!is_there_for(to, root, {})) return false;
    if (buffer(root).kind != BufferKind::intermediate || !in_order) return false;
    if (!stores_row_major(buffer(root).layout, buffer(root).type.shape)) return false;
    buffer(root).view_of = to;
    return true;
  }

  void emit_box(const WorkItem& item) {
    const Node& node = *item.node;
    const int whole = find(item.whole);
    for (size_t i = 0; i < item.parts.size(); ++i) {
      const int part = find(item.parts[i]);
      if (part < 0) continue;
      const bool view =
          whole >= 0 && buffer(part).kind == BufferKind::intermediate && buffer(part).layout == buffer(whole).layout &&
          box_fits_blocks(buffer(whole).layout, buffer(whole).type.shape, item.offsets[i], buffer(part).type.shape) &&
          !(moves(whole) && cuts_rows(part, whole));
      if (view) {
        buffer(part).view_of = whole;
        buffer(part).view_offset = item.offsets[i];
        if (node.op == for_parts_op()) moving_.insert(part);
        continue;
      }
      if (node.op == for_parts_op()) {  // what moves is a box; from there to where the part wants to lie
        const int box = add_box(whole, buffer(part).name, item.parts[i]->type, item.offsets[i]);
        moving_.insert(box);
        launch_copy(box, part, node, fmt::format("{}.part", buffer(part).name));
        continue;
      }
      const LoweredGroup copy = copy_group(item.whole, item.parts[i], item.parts[i]->type.shape, item.offsets[i]);
      launch(node, copy, wish(copy.region).params,
             item.parts.size() == 1 ? launch_name(node) : fmt::format("{}[{}]", launch_name(node), i));
    }
  }

  bool has_reshaped_views(int index) const {
    return std::any_of(program_.buffers.begin(), program_.buffers.end(),
                       [&](const Buffer& b) { return b.view_of == index && b.view_offset.empty(); });
  }

  /// What moves with a part has all of its rows.
  bool cuts_rows(int part, int whole) const {
    const Shape &own = program_.buffers[static_cast<size_t>(part)].type.shape,
                &all = program_.buffers[static_cast<size_t>(whole)].type.shape;
    return own.rank() == 0 || !(own[0] == all[0]);
  }
  bool has_rows_cut(int whole) const {
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      if (const int b = static_cast<int>(i);
          program_.buffers[i].view_of == whole && (cuts_rows(b, whole) || has_rows_cut(b)))
        return true;
    return false;
  }

  /// Whether the memory of `whole`, and the place in it, is known when `part` is computed.
  bool is_there_for(int whole, int part, const std::vector<Dim>& offset) {
    const int level = levels_.of(buffer(part).type.shape.dims);
    return levels_.of(buffer(whole).type.shape.dims) <= level && levels_.of(offset) <= level;
  }

  /// Operands computed by launches become parts of the result; others are copied into their part.
  void emit_concat(const WorkItem& item) {
    const Node& node = *item.node;
    const int whole = find(item.whole);
    for (size_t i = 0; i < item.parts.size(); ++i)
      if (!box_fits_blocks(buffer(whole).layout, buffer(whole).type.shape, item.offsets[i], item.parts[i]->type.shape))
        return launch_all(node, lowered(node, options_));
    for (size_t i = 0; i < item.parts.size(); ++i) {
      const Value* value = item.parts[i];
      const int part = find(value);
      const bool view = part >= 0 && buffer(part).kind == BufferKind::intermediate && buffer(part).view_of < 0 &&
                        buffer(part).layout == buffer(whole).layout && !has_reshaped_views(part) &&
                        reshape_root(whole) != part && is_there_for(whole, part, item.offsets[i]) &&
                        !(node.op == for_parts_op() && has_rows_cut(part));
      if (view) {
        buffer(part).view_of = whole;
        buffer(part).view_offset = item.offsets[i];
        if (node.op == for_parts_op()) moving_.insert(part);
        continue;
      }
      const int box = add_box(whole, fmt::format("{}[{}]", buffer_name(item.whole), i), value->type, item.offsets[i]);
      if (node.op == for_parts_op()) moving_.insert(box);
      const Node& maker = node.op == for_parts_op() && value->producer ? *value->producer : node;
      launch_copy(value, box, maker, fmt::format("{}[{}]", launch_name(maker), i));
    }
  }

  int add_box(int whole, const std::string& name, const TensorType& type, const std::vector<Dim>& offset) {
    const int box = add_buffer(BufferKind::intermediate, name, type);
    buffer(box).layout = buffer(whole).layout;
    buffer(box).view_of = whole;
    buffer(box).view_offset = offset;
    return box;
  }

  /// A box of the first part, or a view into one.
  bool moves(int index) {
    while (index >= 0 && !moving_.contains(index)) index = buffer(index).view_of;
    return index >= 0;
  }

  /// The launches since `enter`.
  void emit_body(const ForParts::Attrs& loop) {
    const int launches = static_cast<int>(program_.launches.size()) - entered_;
    for (size_t l = static_cast<size_t>(entered_); l < program_.launches.size(); ++l)
      for (int b : program_.launches[l].buffers) program_.launches[l].steps.push_back({.moves = moves(b)});
    if (launches > 0)
      program_.bodies.push_back({.first = entered_,
                                 .launches = launches,
                                 .times = Dim(loop.parts),
                                 .of = loop.of.empty() ? "part" : loop.of});
  }

  void launch_copy(int from, int to, const Node& node, const std::string& name) {
    Value source;
    source.type = buffer(from).type;
    Launch added;
    added.region = copy_group(&source, nullptr, source.type.shape).region;
    added.name = name;
    for (const Source& source : node.sources) added.sources.push_back(source.name);
    added.buffers = {from, to};
    program_.launches.push_back(std::move(added));
  }

  void launch_copy(const Value* from, int to, const Node& node, const std::string& name) {
    const LoweredGroup group = copy_group(from, nullptr, from->type.shape);
    Launch added;
    added.region = group.region;
    added.name = name;
    for (const Source& source : node.sources) added.sources.push_back(source.name);
    const int source =
        from->is_constant() ? constant_buffer(group.operands[0], group.region.params[0], {}, name) : find(from);
    added.buffers = {source, to};
    program_.launches.push_back(std::move(added));
  }

  /// A graph output that is a graph input, a constant, or another output under a second name.
  void emit_copy(const Value* from, int to) {
    const LoweredGroup group = copy_group(from, nullptr, from->type.shape);
    Launch added;
    added.region = group.region;
    added.name = fmt::format("copy__{}", from->name);
    const int source =
        from->is_constant() ? constant_buffer(group.operands[0], group.region.params[0], {}, added.name) : find(from);
    added.buffers = {source, to};
    program_.launches.push_back(std::move(added));
  }

  void choose_schedules() {
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
};

}  // namespace

Program build_program(const Graph& fused_graph, const TargetInfo& target, const BuildOptions& options) {
  return Builder(fused_graph, target, options).run();
}

}  // namespace opfuse
