// Minimising a graph that fails: delta debugging over outputs, nodes, attributes, extents and constants.
#pragma once

#include <functional>
#include <string>

#include "ir/graph.hpp"

namespace opfuse {

struct ReduceProgress {
  std::string step;  ///< "cut inputs"
  size_t tried = 0, nodes = 0;
};

struct ReduceOptions {
  std::function<void(const ReduceProgress&)> progress{};
  std::function<void(const Graph& better)> improved{};  ///< called for every smaller graph that fails
  std::function<bool()> stopped{};                      ///< true: end with the best so far
  size_t max_tries = 5000;
};

struct Reduced {
  Graph graph;
  size_t tried = 0;
  bool complete = false;  ///< nothing more can go; false when stopped, or at max_tries
};

/// `fails` answers whether a graph still fails in the way that matters; it is asked about graphs that pass verify().
/// E::bad_option when the whole graph does not fail.
Reduced reduce(const Graph& graph, const std::function<bool(const Graph&)>& fails, const ReduceOptions& options = {});

}  // namespace opfuse
