// Walks the graph backwards from its outputs, so that what only fed shape computations is never lowered,
// and lowers what is needed. A fused node that cannot be lowered or generated is replaced by the nodes of
// its body; operators without a kernel are collected and reported together.
#include "program/work_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/for_parts.hpp"
#include "ir/located.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "ir/value_name.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"
#include "ops/recurrent_steps.hpp"
#include "ops/routines.hpp"
#include "ops/slice.hpp"
#include "ops/slice_ranges.hpp"
#include "ops/split.hpp"
#include "program/uncompilable.hpp"
#include "region/single_stage.hpp"
#include "region/unroll_parts.hpp"

namespace opfuse {
namespace {

size_t wrapped(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

bool only_first_result_used(const Node& node, const Graph& graph) {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (graph.read_count(node.outputs[i]) > 0) return false;
  return true;
}

/// Offsets of a slice whose steps are 1; nothing when it is another kind of slice.
std::optional<std::vector<Dim>> slice_offset(const Node& node) {
  const auto ranges = slice_ranges(node);
  if (!ranges) return std::nullopt;
  const Shape& x = node.input(0)->type.shape;
  std::vector<Dim> offset(x.rank(), Dim(0));
  for (const auto& [axis, range] : *ranges) {
    if (range.step != 1) return std::nullopt;
    if (x[axis].is_constant())
      offset[axis] = Dim(slice_axis(range.start, range.end, 1, x[axis].value()).start);
    else if (range.start >= 0)
      offset[axis] = Dim(range.start);
    else
      return std::nullopt;
  }
  return offset;
}

/// A view is a place in its operand: of an operand or result without a rank there is none.
bool ranked(const Node& node) {
  const auto known = [](const Value* v) { return v == nullptr || v->type.shape.ranked; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), known);
}

std::optional<WorkItem> as_view(const Node& node, const Graph& graph) {
  if (!ranked(node)) return std::nullopt;
  WorkItem item;
  item.node = &node;
  if (node.op->moves == Moves::view) {
    if (!only_first_result_used(node, graph)) return std::nullopt;
    item.kind = WorkKind::reshape;
    return item;
  }
  if (is_a<Slice>(node)) {
    const auto offset = slice_offset(node);
    if (!offset) return std::nullopt;
    item.kind = WorkKind::box;
    item.whole = node.input(0), item.parts = {node.output()};
    item.offsets = {*offset};
    return item;
  }
  if (is_a<Split>(node)) {
    const size_t rank = node.input(0)->type.shape.rank(), axis = wrapped(node.as<Split>().axis, rank);
    item.kind = WorkKind::box;
    item.whole = node.input(0), item.parts.assign(node.outputs.begin(), node.outputs.end());
    std::vector<Dim> offset(rank, Dim(0));
    for (const Value* output : node.outputs) {
      item.offsets.push_back(offset);
      offset[axis] = offset[axis] + output->type.shape[axis];
    }
    return item;
  }
  if (is_a<Concat>(node)) {
    const size_t rank = node.output()->type.shape.rank(), axis = wrapped(node.as<Concat>().axis, rank);
    item.kind = WorkKind::concat;
    item.whole = node.output(), item.parts.assign(node.inputs.begin(), node.inputs.end());
    std::vector<Dim> offset(rank, Dim(0));
    for (const Value* input : node.inputs) {
      item.offsets.push_back(offset);
      offset[axis] = offset[axis] + input->type.shape[axis];
    }
    return item;
  }
  return std::nullopt;
}

bool has_stage_edges(const Region& region) {
  return std::any_of(region.stages.begin(), region.stages.end(), [](const Stage& stage) {
    return std::any_of(stage.reads.begin(), stage.reads.end(), [](const Read& read) { return read.stage >= 0; });
  });
}

/// The launches of a step, each of which must be generated as it stands.
std::variant<std::vector<LoweredGroup>, Decline> lower_loop(const Node& node, const BuildOptions& options) {
  if (!options.loops)
    return Decline{"no_loop", "recurrent layers run as loops of launches, which this target has not", {}};
  auto groups = lower_steps(node);
  if (std::holds_alternative<Decline>(groups)) return groups;
  for (const LoweredGroup& group : std::get<std::vector<LoweredGroup>>(groups))
    if (const auto why = options.cannot_generate ? options.cannot_generate(group.region) : std::nullopt)
      return Decline{"cannot_generate", *why, {}};
  return groups;
}

/// Regions of a node. A fused node that cannot be generated as it stands is declined (its body is tried);
/// a single operator's stages become launches with memory between them.
std::variant<std::vector<LoweredGroup>, Decline> try_lower(const Node& node, const BuildOptions& options,
                                                           Temporaries& temporaries) {
  if (node.op == recurrent_steps_op()) return lower_loop(node, options);
  auto result = lower_group(node, options.stretches);
  if (auto* why = std::get_if<Decline>(&result)) return *why;
  LoweredGroup group = std::move(std::get<LoweredGroup>(result));
  auto refused = [&](const Region& region) -> std::optional<std::string> {
    return options.cannot_generate ? options.cannot_generate(region) : std::nullopt;
  };
  const bool edges = has_stage_edges(group.region);
  std::vector<LoweredGroup> groups;
  const std::optional<std::string> whole =
      edges || is_single_stage(group.region) ? refused(group.region) : std::nullopt;
  if (whole && (node.body != nullptr || !edges)) return Decline{"cannot_generate", *whole, {}};
  if (!whole && (edges || is_single_stage(group.region)))
    groups.push_back(std::move(group));
  else
    groups = separate_stages(std::move(group), temporaries);
  if (groups.size() > 1)
    for (const LoweredGroup& part : groups)
      if (const auto why = refused(part.region)) return Decline{"cannot_generate", *why, {}};
  return groups;
}

class Worker {
 public:
  Worker(const Graph& graph, const BuildOptions& options) : options_(options) {
    list_.graph = graph.clone();
    unroll_parts(list_.graph, options.loops && options.views);
    for (Value* output : list_.graph.outputs()) {
      needed_.insert(output);
      need_sizes(output->type.shape);
    }
  }

  WorkList run() {
    walk();
    if (!missing_.empty()) refuse(list_.graph, missing_, options_.allow_reference);
    return std::move(list_);
  }

  std::vector<Obstacle> obstacles() {
    walk();
    return obstacles_of(list_.graph, missing_);
  }

 private:
  const BuildOptions& options_;
  WorkList list_;
  std::set<const Value*> needed_;       ///< looked up only
  std::set<std::string> needed_sizes_;  ///< symbols of values and launches: what gives them runs though nobody reads it
  std::vector<Missing> missing_;        ///< without a kernel, and not run by the interpreter

  void walk() {
    walk(0, list_.graph.nodes().size());
    std::reverse(missing_.begin(), missing_.end());
    std::reverse(list_.items.begin(), list_.items.end());
    std::reverse(list_.notes.begin(), list_.notes.end());
  }

  /// Backwards; splitting a node puts its body's nodes where it was, to be visited next.
  void walk(size_t begin, size_t end) {
    for (size_t at = end; at-- > begin;) {
      Node* node = list_.graph.nodes()[at];
      if (std::none_of(node->outputs.begin(), node->outputs.end(), [&](Value* v) { return needed_.contains(v); }) &&
          !gives_size(*node))
        continue;
      const size_t before = list_.graph.nodes().size();
      need_sizes_of(*node);
      if (node->op == for_parts_op())
        visit_loop(node, at);
      else if (!visit(node))
        at += list_.graph.nodes().size() - before + 1;
    }
  }

  /// The nodes of a part, between the boxes it looks at and those it makes; `at` is the place of the node.
  void visit_loop(Node* loop, size_t at) {
    Graph& graph = list_.graph;
    const ForParts::Attrs attrs = loop->as<ForParts>();
    std::vector<Value*> operands = loop->inputs, cut;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (attrs.cuts[i] == ForParts::kWhole) continue;
      cut.push_back(operands[i]);
      const Value& inner = *loop->body->inputs()[i];
      list_.cut.push_back(std::make_unique<Value>());
      operands[i] = list_.cut.back().get();
      operands[i]->name = name_in_part(*loop, body_value_name(*loop, inner), -1);
      operands[i]->type = inner.type;
    }
    const size_t before = graph.nodes().size();
    const std::vector<Value*> results = inline_part(graph, *loop, operands);
    const size_t inlined = graph.nodes().size() - before;
    list_.items.push_back({WorkKind::leave, loop});
    for (size_t r = results.size(); r-- > 0;) {
      if (!needed_.contains(loop->outputs[r])) continue;
      list_.items.push_back(box_item(WorkKind::concat, loop, loop->outputs[r], results[r]));
      need(results[r]);
    }
    const std::vector<Value*> parts = loop->inputs;
    read_instead(loop, cut, results);
    walk(at, at + inlined);
    for (size_t i = parts.size(); i-- > 0;) {
      if (attrs.cuts[i] == ForParts::kWhole || !needed_.contains(operands[i])) continue;
      list_.items.push_back(box_item(WorkKind::box, loop, parts[i], operands[i]));
      need(parts[i]);
    }
    list_.items.push_back({WorkKind::enter, loop});
  }

  static WorkItem box_item(WorkKind kind, const Node* loop, const Value* whole, const Value* part) {
    WorkItem item{kind, loop};
    item.whole = whole, item.parts = {part};
    item.offsets.emplace_back(whole->type.shape.rank(), Dim(0));
    return item;
  }

  /// A loop without its body reads what it cuts and what its part makes: both are needed by nobody else.
  void read_instead(Node* loop, const std::vector<Value*>& cut, const std::vector<Value*>& results) {
    std::vector<Value*> reads = cut;
    reads.insert(reads.end(), results.begin(), results.end());
    for (size_t i = 0; i < loop->inputs.size(); ++i) list_.graph.set_input(loop, i, nullptr);
    loop->inputs.assign(reads.size(), nullptr);
    for (size_t i = 0; i < reads.size(); ++i) list_.graph.set_input(loop, i, reads[i]);
    loop->body.reset();
  }

  bool gives_size(const Node& node) const {
    const std::vector<std::string> defined = defined_symbols(node);
    return std::any_of(defined.begin(), defined.end(),
                       [&](const std::string& symbol) { return needed_sizes_.contains(symbol); });
  }
  void need_sizes(const Shape& shape) {
    for (const Dim& dim : shape.dims) dim.collect_symbols(needed_sizes_);
  }
  void need_sizes_of(const Node& node) {
    for (const auto* values : {&node.inputs, &node.outputs})
      for (const Value* value : *values)
        if (value) need_sizes(value->type.shape);
  }

  void need(const Value* value) {
    if (value != nullptr && !value->is_constant()) needed_.insert(value);
  }

  /// False when the node was split.
  bool visit(Node* node) {
    if (node->op == placed_op()) {
      list_.items.push_back({WorkKind::reference, node});
      for (const Value* input : node->inputs) need(input);
      return true;
    }
    if (routine_of(*node)) {
      if (!options_.routines) {
        missing_.push_back(
            {node, {"no_routine", "its sizes are known when it has run, which this target cannot wait for", {}}});
      } else {
        list_.items.push_back({WorkKind::reference, node});
      }
      for (const Value* input : node->inputs) need(input);
      return true;
    }
    if (options_.views) {
      if (auto view = as_view(*node, list_.graph)) {
        if (view->kind == WorkKind::concat)
          for (const Value* input : node->inputs) need(input);
        else
          need(node->input(0));
        list_.items.push_back(std::move(*view));
        return true;
      }
    }
    auto result = try_lower(*node, options_, list_.temporaries);
    if (const Decline* why = std::get_if<Decline>(&result)) {
      if (node->body != nullptr) {
        split(node, *why);
        return false;
      }
      if (options_.allow_reference && runs_in_interpreter(*node, list_.graph)) {
        list_.items.push_back({WorkKind::reference, node});
        list_.notes.push_back(fmt::format("reference: {} ({}) runs in the interpreter: {}", node->name(),
                                          source_operator(*node), why->message));
      } else {
        missing_.push_back({node, *why});
      }
      for (const Value* input : node->inputs) need(input);
      return true;
    }
    WorkItem item{WorkKind::launch, node, std::move(std::get<std::vector<LoweredGroup>>(result))};
    std::erase_if(item.groups, [&](const LoweredGroup& group) { return !wanted(group); });
    for (const LoweredGroup& group : item.groups) {
      needed_sizes_.merge(group.region.symbols());
      for (size_t i = 0; i < group.operands.size(); ++i)
        if (group.region.params[i].role == ParamRole::input) need(group.operands[i].value);
    }
    list_.items.push_back(std::move(item));
    return true;
  }

  /// Of a node with independent results, only those that someone reads.
  bool wanted(const LoweredGroup& group) const {
    if (!group.step_operands.empty()) return true;
    for (const LoweredOperand& operand : group.operands)
      for (const auto& temporary : list_.temporaries)
        if (operand.value == temporary.get()) return true;
    for (size_t i = 0; i < group.operands.size(); ++i)
      if (group.region.params[i].role == ParamRole::output && needed_.contains(group.operands[i].value)) return true;
    return false;
  }

  void split(Node* node, const Decline& why) {
    std::string evidence;
    for (const std::string& line : why.evidence) evidence += (evidence.empty() ? " [" : ", ") + line;
    list_.notes.push_back(fmt::format("split at {}: {}{}", node->label.empty() ? node->name() : node->label,
                                      why.message, evidence.empty() ? "" : evidence + "]"));
    Graph& graph = list_.graph;
    const Graph body = options_.divide && node->op == fused_op() ? options_.divide(*node) : node->body->clone();
    const std::vector<Value*> results = inline_body(graph, body, node->inputs, node);
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (needed_.erase(node->outputs[i]) > 0) needed_.insert(results[i]);
      const auto follow = [&](const Value*& value) {
        if (value == node->outputs[i]) value = results[i];
      };
      for (WorkItem& item : list_.items) {  // readers were visited before
        for (LoweredGroup& group : item.groups)
          for (LoweredOperand& operand : group.operands) follow(operand.value);
        follow(item.whole);
        for (const Value*& part : item.parts) follow(part);
      }
      const std::string name = value_name(*node->outputs[i]);
      take_over(graph, node->outputs[i], results[i]);
      if (results[i]->name.empty()) results[i]->name = name;  // "%id": reports and proofs know it by that
    }
    graph.erase(node);
  }
};

}  // namespace

std::vector<LoweredGroup> lowered(const Node& node, const BuildOptions& options) {
  Temporaries temporaries;
  auto result = try_lower(node, options, temporaries);
  OPFUSE_CHECK(temporaries.empty(), "a movement of elements needs memory between its stages");
  if (const Decline* why = std::get_if<Decline>(&result))
    throw fail(E::uncompilable, "{}", why->message).node(node.name()).op(source_operator(node));
  return std::move(std::get<std::vector<LoweredGroup>>(result));
}

LoweredGroup copy_group(const Value* from, const Value* to, const Shape& shape, const std::vector<Dim>& offset) {
  const size_t rank = shape.rank();
  const TensorType type{from->type.dtype, shape};
  LoweredGroup group;
  group.region.params = {{from->is_constant() ? ParamRole::constant : ParamRole::input, from->type},
                         {ParamRole::output, type}};
  group.operands.resize(2);
  group.operands[0].value = from;
  if (from->is_constant()) group.operands[0].constant = *from->constant;
  group.operands[1].value = to;
  Stage stage;
  stage.domain = shape.dims;
  IndexMap map = IndexMap::identity(rank);
  for (size_t i = 0; i < offset.size(); ++i) map.dims[i].offset = offset[i];
  stage.reads.push_back({-1, 0, map});
  stage.outputs.push_back({1, Expr::read(0, type.dtype), IndexMap::identity(rank), shape, type.dtype});
  group.region.stages.push_back(std::move(stage));
  return group;
}

WorkList make_work_list(const Graph& fused_graph, const BuildOptions& options) {
  return Worker(fused_graph, options).run();
}

std::vector<Obstacle> find_obstacles(const Graph& fused_graph, const BuildOptions& options) {
  return Worker(fused_graph, options).obstacles();
}

}  // namespace opfuse
