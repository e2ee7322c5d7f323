// Turning a set of nodes into one node whose body is those nodes: fused groups and composites.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// What a set of nodes (topological order) reads from outside, constants too, in order of first reading.
std::vector<Value*> external_reads(const std::vector<Node*>& nodes);
/// Results of the set that something outside reads, graph outputs included.
std::vector<Value*> external_results(const Graph& graph, const std::vector<Node*>& nodes);
bool read_outside(const Graph& graph, const Value* value, const std::vector<Node*>& nodes);
std::vector<Source> united_sources(const std::vector<Node*>& nodes);

/// What a value of the node's body is outside: the operand for an input of the body, null for others. Of nodes
/// without a body it is asked for operands.
Value* outside_of(const Node& node, const Value* inner);

/// `now` replaces `old` for every reader and takes its name.
void take_over(Graph& graph, Value* old, Value* now);

struct Outline {
  const OpInfo* op = nullptr;  ///< fused_op() or composite_op()
  std::string label;           ///< "FusedConvBNReLU__conv1", "gelu"
  std::string pattern;         ///< fused: what made it
};

/// Replaces `nodes` (topological order, convex) by one node and returns it. Scalars and integer constants they read
/// move into the body; everything else from outside becomes an operand in order of first reading. Results that are
/// read outside keep their names and become the node's outputs; sources are united.
Node* outline(Graph& graph, const std::vector<Node*>& nodes, const Outline& how);

/// The same node in a graph of its own, whose inputs and constants are what the group reads. `graph` is not changed.
struct OutlinedCopy {
  Graph graph;
  Node* node = nullptr;
};
OutlinedCopy outline_copy(const Graph& graph, const std::vector<Node*>& nodes, const Outline& how);

/// True for constants that live inside a body (they parametrise an operator; weights are operands).
bool belongs_in_body(const Value& constant);

/// Replaces fused nodes of this graph by their bodies; composites stay.
void expand_groups(Graph& graph);

/// Replaces fused and composite nodes by their bodies, at every depth and in the bodies that stay. Returns whether
/// there were any.
bool expand_bodies(Graph& graph);

/// Appends copies of `body`'s nodes before `before`; `inputs` stand for the body's inputs. Returns what the body's
/// outputs became: unnamed, while values between keep their names where those are free.
std::vector<Value*> inline_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs, Node* before);

/// The same of many bodies, one after the other: the names that are taken are gathered once. `taken`:
/// names_of_values(graph) at first; the copies' names are added.
std::vector<Value*> inline_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs, Node* before,
                                std::unordered_set<std::string>& taken);
/// The names of all values of a graph, not of those in bodies.
std::unordered_set<std::string> names_of_values(const Graph& graph);

}  // namespace opfuse
