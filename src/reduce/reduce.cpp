// Every step lists edits of the selection, which are tried in chunks: all at once, then halves, then one by one. A
// chunk that still fails stays. Bisection goes first (the shortest prefix of the nodes that fails, then its shortest
// suffix), because a model of a thousand nodes would need a thousand questions otherwise.
#include "reduce/reduce.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.hpp"
#include "reduce/selection.hpp"

namespace opfuse {
namespace {

using Edit = std::function<void(Selection&)>;

class Reduction {
 public:
  Reduction(const Graph& graph, const std::function<bool(const Graph&)>& fails, const ReduceOptions& options)
      : graph_(graph), fails_(fails), options_(options), best_(all_of(graph)) {
    for (const Value* value : graph.values()) values_[value->id] = value;
  }

  Reduced run() {
    if (!try_selection(best_, true))
      throw fail(E::bad_option, "the model as opfuse reads and writes it does not fail")
          .hint("the failure is in reading the model's bytes, or the command tests something else");
    bisect_outputs();
    drop_outputs();
    bisect_inputs();
    Selection before;
    do {
      before = best_;
      drop_outputs();
      cut();
      bypass();
      move_outputs_up();
      drop_attributes();
      bind_symbols();
      shrink_extents();
      plain_constants();
    } while (best_ != before && !exhausted());
    return {selected(graph_, best_), tried_, !exhausted()};
  }

 private:
  const Graph& graph_;
  const std::function<bool(const Graph&)>& fails_;
  const ReduceOptions& options_;
  Selection best_;
  size_t tried_ = 0;
  std::string step_;
  std::unordered_map<int, const Value*> values_;

  bool exhausted() const { return tried_ >= options_.max_tries || (options_.stopped && options_.stopped()); }

  bool try_selection(const Selection& selection, bool first = false) {
    if (!first && (exhausted() || selection == best_)) return false;
    try {
      const Graph part = selected(graph_, selection);
      ++tried_;
      if (options_.progress) options_.progress({step_, tried_, nodes_left(graph_, best_).size()});
      if (!fails_(part)) return false;
      if (!first && options_.improved) options_.improved(part);
    } catch (const Error&) {
      if (first) throw;
      return false;  // no model
    }
    best_ = selection;
    return true;
  }

  bool try_edit(const Edit& edit) {
    Selection selection = best_;
    edit(selection);
    return try_selection(selection);
  }

  void try_all(const std::string& step, std::vector<Edit> edits) {
    step_ = step;
    for (size_t chunk = edits.size(); chunk >= 1; chunk /= 2) {
      for (size_t begin = 0; begin < edits.size();) {
        const size_t end = std::min(edits.size(), begin + chunk);
        const bool kept = try_edit([&](Selection& s) {
          for (size_t i = begin; i < end; ++i) edits[i](s);
        });
        if (kept)
          edits.erase(edits.begin() + static_cast<std::ptrdiff_t>(begin),
                      edits.begin() + static_cast<std::ptrdiff_t>(end));
        else
          begin = end;
      }
    }
  }

  std::vector<const Node*> nodes() const {
    const std::vector<int> ids = nodes_left(graph_, best_);
    const std::unordered_set<int> left(ids.begin(), ids.end());
    std::vector<const Node*> nodes;
    for (const Node* node : graph_.nodes())
      if (left.contains(node->id)) nodes.push_back(node);
    return nodes;
  }

  /// Values of the first `count` nodes that later nodes or the graph's outputs read.
  static std::vector<int> frontier(const std::vector<const Node*>& nodes, size_t count, const Selection& selection) {
    std::unordered_set<const Node*> front(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<int> ids;
    for (size_t i = 0; i < count; ++i)
      for (const Value* value : nodes[i]->outputs) {
        const bool leaves = std::any_of(value->uses.begin(), value->uses.end(),
                                        [&](const Use& use) { return !front.contains(use.node); }) ||
                            std::count(selection.outputs.begin(), selection.outputs.end(), value->id) > 0;
        if (leaves) ids.push_back(value->id);
      }
    return ids;
  }

  void bisect_outputs() {
    step_ = "shortest prefix";
    const std::vector<const Node*> all = nodes();
    size_t low = 0, high = all.size();  // high fails
    while (high - low > 1 && !exhausted()) {
      const size_t middle = low + (high - low) / 2;
      Selection selection = best_;
      selection.outputs = frontier(all, middle, all_of(graph_));
      (!selection.outputs.empty() && try_selection(selection) ? high : low) = middle;
    }
  }

  void bisect_inputs() {
    step_ = "shortest suffix";
    const std::vector<const Node*> all = nodes();
    size_t low = 0, high = all.size();  // low fails
    while (high - low > 1 && !exhausted()) {
      const size_t middle = low + (high - low) / 2;
      Selection selection = best_;
      for (const int id : frontier(all, middle, best_)) selection.cuts.insert(id);
      (try_selection(selection) ? low : high) = middle;
    }
  }

  void drop_outputs() {
    std::vector<Edit> edits;
    for (const int id : best_.outputs) edits.push_back([id](Selection& s) { std::erase(s.outputs, id); });
    if (edits.size() > 1) try_all("drop outputs", edits);
  }

  void cut() {
    std::vector<Edit> edits;
    for (const Node* node : nodes())
      for (const Value* value : node->outputs)
        if (!best_.cuts.contains(value->id) && !value->uses.empty())
          edits.push_back([id = value->id](Selection& s) { s.cuts.insert(id); });
    try_all("cut inputs", edits);
  }

  void bypass() {
    std::vector<Edit> edits;
    for (const Node* node : nodes())
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] && node->outputs.size() == 1 && node->inputs[i]->type == node->output()->type &&
            !best_.bypassed.contains(node->output()->id))
          edits.push_back([id = node->output()->id, i](Selection& s) { s.bypassed[id] = i; });
    try_all("bypass nodes", edits);
  }

  void move_outputs_up() {
    step_ = "move outputs up";
    for (size_t k = 0; k < best_.outputs.size(); ++k) {
      const Value* output = values_.at(best_.outputs[k]);
      bool moved = output->producer != nullptr;
      while (moved && !exhausted()) {
        moved = false;
        for (const Value* operand : output->producer->inputs) {
          if (!operand || !operand->producer || best_.cuts.contains(operand->id)) continue;
          moved = try_edit([&](Selection& s) { s.outputs[k] = operand->id; });
          if (!moved) continue;
          output = operand;
          break;
        }
      }
    }
  }

  void drop_attributes() {
    std::vector<Edit> edits;
    for (const Node* node : nodes())
      if (node->op->attrs_to_map && node->op->kind != OpKind::opaque)
        for (const auto& [name, value] : node->attr_map())
          if (const AttrValue* usual = find(node->op->default_attrs, name); usual && !(*usual == value))
            edits.push_back([id = node->id, name = name](Selection& s) { s.default_attr.insert({id, name}); });
    try_all("default attributes", edits);
  }

  void bind_symbols() {
    std::vector<Edit> edits;
    for (const std::string& symbol : graph_.symbols())
      if (!best_.symbols.contains(symbol))
        for (const int64_t size : {1, 2, 3})
          edits.push_back([symbol, size](Selection& s) { s.symbols.emplace(symbol, size); });
    step_ = "bind dimensions";
    for (const Edit& edit : edits) try_edit(edit);
  }

  std::set<int64_t> extents_left() const {
    std::set<int64_t> sizes;
    const auto add = [&](const Value* value) {
      if (!value || !value->type.shape.ranked) return;
      for (const Dim& dim : value->type.shape.dims)
        if (dim.is_constant() && dim.value() > 1) sizes.insert(dim.value());
    };
    for (const Node* node : nodes())
      for (const Value* value : node->inputs)
        if (value && (!value->producer || best_.cuts.contains(value->id))) add(value);
    return sizes;
  }

  void shrink_extents() {
    step_ = "shrink extents";
    const std::set<int64_t> sizes = extents_left();
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      const int64_t now = best_.extents.contains(*size) ? best_.extents.at(*size) : *size;
      for (const int64_t less : {int64_t{1}, int64_t{2}, int64_t{3}, now / 4, now / 2, now - 1})
        if (less >= 1 && less < now && try_edit([&](Selection& s) { s.extents[*size] = less; })) break;
    }
  }

  void plain_constants() {
    std::vector<Edit> edits;
    for (const Node* node : nodes())
      for (const Value* value : node->inputs)
        if (value && value->is_constant() && is_float(value->type.dtype) && value->constant->elements() > 1)
          edits.push_back([id = value->id](Selection& s) { s.plain.insert(id); });
    try_all("plain constants", edits);
  }
};

}  // namespace

Reduced reduce(const Graph& graph, const std::function<bool(const Graph&)>& fails, const ReduceOptions& options) {
  return Reduction(graph, fails, options).run();
}

}  // namespace opfuse
