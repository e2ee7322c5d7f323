// One stage of a region with numbers in place of symbols, and a thread's walk over blocks of its points.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "proof/error_bound.hpp"
#include "proof/lane_index.hpp"

namespace opfuse {

/// Results of a reduction, by point of the outer axes.
struct ReducedValues {
  std::vector<double> value;
  std::vector<Reach> error;
  std::vector<int64_t> integer;
  std::vector<char> tie;
  void resize(DType dtype, int64_t points);
};

struct StagePlan {
  struct Operand {
    const BoundedTensor* tensor = nullptr;
    bool folded = false;  ///< a constant, folded in double: its numbers are off by half an ULP
    BoundMap map;
  };
  struct Result {
    BoundedTensor* tensor = nullptr;
    LaneTape value;
    BoundMap map;
    DType dtype = DType::f32;
    std::optional<ReduceKind> combine;  ///< with what the element holds
    bool clipped = false;               ///< points outside store nothing
  };
  struct Sum {
    ReduceKind kind = ReduceKind::sum;
    DType dtype = DType::f32;
    LaneTape value;
  };
  const Stage* stage = nullptr;
  const SymbolValues* symbols = nullptr;
  ErrorModel model;
  std::atomic<bool>* swallows = nullptr;  ///< of the run: set from any thread
  std::vector<int64_t> extents;           ///< domain then reduce
  std::vector<int> outer, inner, reduce;  ///< axes; reductions depend on the outer ones
  int64_t outer_points = 1, inner_points = 1, reduce_points = 1;
  std::vector<Operand> reads;
  std::vector<Sum> sums;
  std::vector<Result> results;
};

/// Coordinates and operands of a block of points.
class LaneWalk final : public LaneLeaves {
 public:
  explicit LaneWalk(const StagePlan& plan);
  /// Lanes are the points [first, first + count) of these axes; the others are shared.
  void start(const std::vector<int>& axes, int64_t first, int count);
  void share(int axis, int64_t coordinate) { points_.shared[static_cast<size_t>(axis)] = coordinate; }
  void share_all(const std::vector<int>& axes, int64_t point);
  int count() const { return points_.count; }
  const Lanes& run(const LaneTape& tape);
  /// Lanes of a block that store the same element do so in order.
  void store(StagePlan::Result& result, LaneIndex& index);
  LaneIndex index_of(const BoundMap& map) const { return LaneIndex(map); }
  void start(LaneIndex& index) { index.start(points_); }
  /// Where result() finds its numbers; lane i is point `first` + i, or always `first` when `same`.
  void use_results(const std::vector<ReducedValues>* values, int64_t first, bool same) {
    reduced_ = values, reduced_first_ = first, reduced_same_ = same;
  }
  /// Constants without their folding error, for plain products (sum_error has it).
  void exact_constants(bool on) { exact_constants_ = on; }

  void load(int read, Lanes& out) override;
  void in_bounds(int read, Lanes& out) override;
  void coord(int axis, Lanes& out) override;
  void result(int reduction, Lanes& out) override;
  void swallowed() override { plan_.swallows->store(true, std::memory_order_relaxed); }

 private:
  const StagePlan& plan_;
  LanePoints points_;
  std::vector<LaneIndex> reads_;
  std::deque<std::vector<Lanes>> slots_;  ///< by nesting depth of dynamic coordinates
  size_t depth_ = 0;
  const std::vector<ReducedValues>* reduced_ = nullptr;
  int64_t reduced_first_ = 0;
  bool reduced_same_ = false, exact_constants_ = false;
  std::vector<Lanes>& slots();
  static void store_lane(StagePlan::Result& result, const Lanes& v, int lane, size_t at);
};

/// Sums, products and maxima of every reduction over a block of outer points, one reduce point after the other.
/// Returns the largest (worst case / bound).
double reduce_block(const StagePlan& plan, LaneWalk& walk, size_t reduction, int64_t first, int count,
                    ReducedValues& to, std::vector<ReducedValues>& all);

/// The same for sums of products as matrix products; false where the value is none.
bool reduce_as_product(const StagePlan& plan, size_t reduction, const WinogradFactor* winograd, ReducedValues& to,
                       double& worst_of_bound);

}  // namespace opfuse
