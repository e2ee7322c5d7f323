// Whether a model can be compiled, asked before compiling it.
#pragma once

#include <string>
#include <vector>

#include "opfuse/opfuse.hpp"

namespace opfuse {

/// A node that has no kernel on the target.
struct Unsupported {
  std::string node;      ///< its name in the model
  std::string op;        ///< as the model calls it: "If"
  std::string reason;    ///< one sentence, no trailing full stop
  std::string remedy;    ///< what the user can do
  bool follows = false;  ///< only because a node before it has no known shape
};

/// All of them, in topological order; none: compile() finds a kernel for every node. Nothing is generated. Throws what
/// planning throws.
OPFUSE_API std::vector<Unsupported> unsupported(const Model& model, const Target& target,
                                                const CompileOptions& options = {});

}  // namespace opfuse
