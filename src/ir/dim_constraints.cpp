// Collects the assumptions of shape inference, node by node: what `assume` receives, and that no extent is negative.
// Sizes that data decide (ir/defined_symbols.hpp) are symbols as well: what holds between them is checked once they are
// known. Of symbols that nobody gives (results of opaque nodes) nothing is checked.
#include "ir/dim_constraints.hpp"

#include <algorithm>

#include "ir/defined_symbols.hpp"
#include "ir/located.hpp"

namespace opfuse {
namespace {

std::string key_of(const DimRelation& r) {
  return std::to_string(static_cast<int>(r.rule)) + " " + r.a.text() + " | " + r.b.text();
}

class Collector {
 public:
  explicit Collector(const Graph& graph) : symbols_(all_symbols(graph)) {}
  std::vector<DimConstraint> found;

  void walk(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      if (node->body)
        walk(*node->body);
      else
        visit(*node);
    }
  }

 private:
  std::set<std::string> symbols_, known_;

  bool decided_by_run(const DimRelation& r) const { return std::ranges::includes(symbols_, symbols_of(r)); }

  void visit(const Node& node) {
    std::vector<DimRelation> relations;
    {
      const DimRecorder recorder(relations);
      for (const TensorType& type : infer_node(*node.op, node.attrs(), node.inputs, node.outputs.size()))
        for (const Dim& dim : type.shape.dims)
          if (!surely_not_negative(dim)) assume(DimRule::at_least, dim, 0, "an extent of the result is not negative");
    }
    for (DimRelation& relation : relations)
      if (decided_by_run(relation) && known_.insert(key_of(relation)).second) add(node, std::move(relation));
  }

  void add(const Node& node, DimRelation relation) {
    const Diagnostic where =
        located(Error(Diagnostic{}), *node.op, node.inputs, node.sources).node(node.name()).diagnostic();
    found.push_back({std::move(relation), where.node, where.op, where.operands});
  }
};

}  // namespace

void check_given(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols) {
  for (const DimConstraint& c : constraints) {
    const std::set<std::string> used = symbols_of(c.relation);
    const bool given = std::ranges::all_of(used, [&](const std::string& s) { return symbols.contains(s); });
    if (given && !holds(c.relation, symbols)) throw broken(c, symbols);
  }
}

std::vector<DimConstraint> dim_constraints(const Graph& graph) {
  if (all_symbols(graph).empty()) return {};
  Collector collector(graph);
  collector.walk(graph);
  return std::move(collector.found);
}

void add_constraints(std::vector<DimConstraint>& into, const std::vector<DimConstraint>& more) {
  std::set<std::string> known;
  for (const DimConstraint& c : into) known.insert(key_of(c.relation));
  for (const DimConstraint& c : more)
    if (known.insert(key_of(c.relation)).second) into.push_back(c);
}

}  // namespace opfuse
