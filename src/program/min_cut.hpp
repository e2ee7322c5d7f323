// Two-label assignment of least cost: each vertex is 0 or 1 at a cost, each edge costs where its ends
// differ. Solved exactly as a minimum cut.
#pragma once

#include <cstdint>
#include <vector>

namespace opfuse {

class TwoLabels {
 public:
  explicit TwoLabels(int vertices);
  void add_cost(int vertex, int label, int64_t cost);
  void add_edge(int a, int b, int64_t cost);  ///< paid when the labels differ
  /// Least-cost labels; of equal ones those with the most zeros.
  std::vector<char> solve();

 private:
  struct Arc {
    int to;
    int64_t capacity;
    int reverse;
  };
  int vertices_, source_, sink_;
  std::vector<std::vector<Arc>> arcs_;
  std::vector<int> level_, next_;
  void connect(int from, int to, int64_t forward, int64_t backward);
  bool layer();
  int64_t push(int vertex, int64_t amount);
};

}  // namespace opfuse
