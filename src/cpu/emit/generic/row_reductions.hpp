// What rows of the plain nest are reduced to, and how the nest is laid out for that.
#pragma once

#include <functional>
#include <vector>

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// Sums that do not wait for each other, of one row: an addition takes 3 or 4 cycles, two start in each.
inline constexpr int64_t kMostChains = 4;

inline constexpr int64_t kUnrolledWindow = 16;  ///< points of a reduction that are emitted one by one

struct NestPlan {
  int width = 1;
  int lane_axis = -1;  ///< domain axis
  int64_t lane_block = 1;
  int reduce_lane = -1;  ///< reduce axis (numbered after the domain axes)
  int reduce_width = 1;
  std::vector<int> rows, inner;
  int64_t tile = 1;                    ///< rows, or vectors of a map, at once, along the last of `rows`
  int64_t chains = kMostChains;        ///< partial sums of a row, the same whether it is in a tile or alone
  std::map<int, AxisRange> interiors;  ///< by axis
};

class RowReductions {
 public:
  RowReductions(Kernel& k, StageEmitter& stage, const NestPlan& plan)
      : k_(k), s_(stage), plan_(plan), domain_(static_cast<int>(stage.stage.domain.size())) {}

  /// Called at each point of a reduction, when its value is emitted.
  using Stored = std::function<void(size_t reduction, const Env& env, ExprEmitter& point)>;
  void also(Stored stored) { stored_ = std::move(stored); }

  using Results = std::vector<std::vector<Value*>>;  ///< of the reductions, by row of the tile
  Results reduce(const Env& env);
  /// The place of a row, or vector, of the tile at `env`.
  Env row_of(const Env& env, size_t row) const;

 private:
  Kernel& k_;
  StageEmitter& s_;
  const NestPlan& plan_;
  int domain_;
  Stored stored_;

  /// A point of the reduction, some lanes masked in `env` or none.
  struct Point {
    Env env;
    size_t chain = 0;
  };
  /// Neighbours that are emitted together: each the next chain's.
  using Body = std::function<void(const std::vector<Point>&)>;
  const Dim& extent(int axis) const { return s_.stage.reduce[static_cast<size_t>(axis - domain_)]; }
  void reduce_one(size_t index, const Env& env, Results& results);
  bool is_window() const;
  void unroll_window(const Env& env, const Body& body);
  void loops(size_t index, const std::vector<int>& axes, Env env, const Body& body);
  void chains(Value* count, const std::function<Env(Value*)>& at, const Body& body);
  std::vector<ExprEmitter> emit_points(const Reduction& r, const std::vector<Point>& points, Results& results);
};

}  // namespace opfuse::cpu
