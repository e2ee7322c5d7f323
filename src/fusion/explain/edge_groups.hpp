// Edges that are not one launch, as a person reads them: alike ones together, by predicted gain.
#pragma once

#include <string>
#include <vector>

#include "fusion/plan.hpp"

namespace opfuse {

struct EdgeGroup {
  std::string code;                ///< why
  std::string producer, consumer;  ///< operators: "layer_norm", "gemm"
  std::vector<const EdgeVerdict*> edges;
  int64_t bytes = 0;        ///< stores and loads of the values between them
  double microseconds = 0;  ///< what one launch each would save, predicted; negative: it is slower; 0: none is legal
  bool has_time = false;
};

/// Of edges that two launches run, or a copy; with `executed` empty, of those that no group has.
std::vector<EdgeGroup> edge_groups(const Graph& graph, const FusionPlan& plan);
std::string text_of(const EdgeGroup& group);

/// Everything about the edges between two nodes, either way; "" where there is none.
std::string text_of_edges(const Graph& graph, const FusionPlan& plan, const std::string& a, const std::string& b);

}  // namespace opfuse
