// Which tables an integer input indexes: follows its readers through operators that keep values, into the bodies
// of fused nodes, to the index operand of a gather.
#include <algorithm>
#include <set>

#include "interp/random_inputs.hpp"
#include "ops/cast.hpp"
#include "ops/gather.hpp"
#include "ops/is_a.hpp"
#include "ops/scatter.hpp"

namespace opfuse {
namespace {

struct Search {
  const SymbolValues& symbols;
  std::optional<int64_t> rows;
  std::set<int> seen;  // by value id
  std::vector<const Value*> open;

  void table(const Node& node, size_t data, int64_t axis) {
    const Value* value = node.input(data);
    if (!value || !value->type.shape.ranked || value->type.shape.rank() == 0) return;
    const auto rank = static_cast<int64_t>(value->type.shape.rank());
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return;
    const auto extent = value->type.shape[static_cast<size_t>(at)].substitute(symbols).constant();
    if (extent) rows = std::min(rows.value_or(*extent), *extent);
  }

  static int64_t axis_of(const Node& node) {
    const AttrMap attrs = node.attr_map();
    const AttrValue* axis = find(attrs, "axis");
    const int64_t* number = axis ? std::get_if<int64_t>(axis) : nullptr;
    return number ? *number : 0;
  }

  /// All leading dimensions that gather_nd's indices address share one generator: the smallest counts.
  void tables(const Node& node) {
    const Value* index = node.input(1);
    if (!index->type.shape.ranked || index->type.shape.rank() == 0) return;
    const auto depth = index->type.shape.dims.back().substitute(symbols).constant();
    for (int64_t axis = 0; depth && axis < *depth; ++axis) table(node, 0, axis);
  }

  static bool keeps_values(const Node& node, size_t operand) {
    if (node.op->moves == Moves::all || is_a<Cast>(node)) return true;
    return node.op->moves != Moves::nothing && operand == 0;
  }

  void read_by(const Use& use) {
    const Node& node = *use.node;
    if (node.body) {
      Search inner{symbols, rows, {}, {}};
      inner.follow(*node.body->inputs()[use.index]);
      rows = inner.rows;
      return;
    }
    if (use.index == 1 && (is_a<Gather>(node) || is_a<GatherElements>(node) || is_a<ScatterElements>(node)))
      table(node, 0, axis_of(node));
    if (use.index == 1 && (is_a<GatherND>(node) || is_a<ScatterND>(node))) tables(node);
    if (!keeps_values(node, use.index)) return;
    for (const Value* result : node.outputs)
      if (seen.insert(result->id).second) open.push_back(result);
  }

  void follow(const Value& value) {
    open.push_back(&value);
    while (!open.empty()) {
      const Value* next = open.back();
      open.pop_back();
      for (const Use& use : next->uses) read_by(use);
    }
  }
};

}  // namespace

std::optional<int64_t> indexed_rows(const Value& value, const SymbolValues& symbols) {
  Search search{symbols, std::nullopt, {}, {}};
  search.follow(value);
  return search.rows;
}

}  // namespace opfuse
