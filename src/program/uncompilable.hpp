// What stands between a graph and its program: operators without a kernel, and values without a shape.
#pragma once

#include <string>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"
#include "program/build.hpp"

namespace opfuse {

struct Obstacle {
  std::string node;          ///< source name
  std::string op;            ///< as the model calls it: "If"
  std::string reason;        ///< one sentence, no trailing full stop
  std::string remedy;        ///< what the user can do
  bool follows = false;      ///< only because something before it has no known shape
  bool interpreted = false;  ///< --allow-reference runs it
  bool known = false;  ///< the interpreter has the operator: a whole model (run --reference) has no plan of memory
};

/// What helps where ONNX's operator of that name cannot be compiled; empty where there is nothing particular to say.
std::string_view remedy_for(std::string_view onnx_op);

/// All of them, in topological order; none: every node that the outputs need becomes a launch or a view.
std::vector<Obstacle> find_obstacles(const Graph& fused_graph, const BuildOptions& options);

struct Missing {
  const Node* node = nullptr;
  Decline why;
};

/// Whether the interpreter can run the node as a launch of the host: it knows the operator, and all that the node reads
/// and writes has a type and a shape from which its memory follows.
bool runs_in_interpreter(const Node& node, const Graph& graph);

std::vector<Obstacle> obstacles_of(const Graph& graph, const std::vector<Missing>& missing);

/// E::uncompilable with all of them, and the share of the model's FLOP that could be compiled.
[[noreturn]] void refuse(const Graph& graph, const std::vector<Missing>& missing, bool allow_reference);

}  // namespace opfuse
