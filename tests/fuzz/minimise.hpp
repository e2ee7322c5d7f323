// A failing graph as a few nodes on disk, with what is needed to run it again.
#pragma once

#include "fuzz/check.hpp"

namespace opfuse::fuzz {

struct Minimised {
  Graph graph;
  Outcome outcome;
};

/// The smallest part that fails in the same way, within `seconds`.
Minimised minimise(const Graph& graph, const Task& task, const Outcome& outcome, int seconds);

/// Writes FOLDER/model.onnx, the inputs and expected outputs of the failing run and FOLDER/command.txt.
void save_failure(const std::string& folder, const Minimised& minimised, const Task& task);

}  // namespace opfuse::fuzz
