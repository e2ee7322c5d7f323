// Sums of products as matrix products: values, squares (or magnitudes) and errors each from one fp64 product.
//
//   sum over k of A(batch, i, k) * B(batch, j, k)      i: domain axes only A depends on, j: only B, batch: both
//
// The smaller factor is stored whole, of the other columns of 192 points at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/parallel.hpp"
#include "ops/gemm_f64.hpp"
#include "proof/bounded_stage.hpp"
#include "proof/sum_error.hpp"
#include "region/dependence.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr int64_t kChunk = 3 * Lanes::kCount;
constexpr int64_t kFewestPoints = 16;  ///< rows times columns; below, lanes are as fast
constexpr double kWinogradMargin = 2;  ///< probed on 16 outputs and drawn data; maxima of all elements are larger

/// One factor of the products.
struct Side {
  LaneTape tape;
  std::vector<int> axes;
  int64_t points = 1;
  bool plain = false;  ///< a read: the folding error of a weight is in sum_error
};

struct Numbers {
  std::vector<double> value, error;  ///< [k][point]; error empty: all 0, else to either side
  std::vector<char> tie;             ///< by point: any k's error holds a step
  int lowest = 1000;
  double largest = 0;
};

bool is_plain(const Expr& e) {
  if (e.op() == ExprOp::cast) return is_plain(e.args()[0]);
  return e.op() == ExprOp::read;
}

bool reads_results(const Expr& e) {
  bool found = false;
  e.visit([&](const Expr& x) { found = found || x.op() == ExprOp::result; });
  return found;
}

class Product {
 public:
  Product(const StagePlan& plan, size_t reduction) : plan_(plan), dtype_(plan.sums[reduction].dtype) {
    const Expr& value = plan.stage->reductions[reduction].value;
    if (plan.sums[reduction].kind != ReduceKind::sum || value.op() != ExprOp::mul || reads_results(value)) return;
    if (dtype_ == DType::boolean || plan.reduce_points < 4) return;
    for (size_t s = 0; s < 2; ++s) {
      sides_[s].tape = LaneTape(value.args()[s], *plan.symbols, plan.model);
      sides_[s].plain = is_plain(value.args()[s]);
    }
    split(axes_of(*plan.stage, value.args()[0]), axes_of(*plan.stage, value.args()[1]));
    if (sides_[0].points < sides_[1].points) std::swap(sides_[0], sides_[1]);
    fits_ = sides_[0].points * sides_[1].points >= kFewestPoints;
  }
  bool fits() const { return fits_; }

  double run(const WinogradFactor* winograd, ReducedValues& to) {
    for (const Side* side : {&rows(), &columns()})
      offsets(side->axes, side->points, side == &rows() ? row_at_ : column_at_);
    offsets(batch_, batches_, batch_at_);
    if (winograd) magnitudes_.assign(static_cast<size_t>(plan_.outer_points), 0);
    for (int64_t b = 0; b < batches_; ++b) run_batch(b, winograd, to);
    if (winograd) add_winograd(*winograd, to);
    return worst_;
  }

 private:
  const StagePlan& plan_;
  DType dtype_;
  Side sides_[2];  ///< columns, rows
  std::vector<int> batch_;
  int64_t batches_ = 1;
  bool fits_ = false;
  double worst_ = 1;
  std::mutex mutex_;
  std::vector<int64_t> row_at_, column_at_, batch_at_;
  std::vector<double> magnitudes_;

  const Side& rows() const { return sides_[1]; }
  const Side& columns() const { return sides_[0]; }

  void split(const std::set<int>& a, const std::set<int>& b) {
    for (const int axis : plan_.outer) {
      const int64_t extent = plan_.extents[static_cast<size_t>(axis)];
      if (a.contains(axis) && b.contains(axis)) {
        batch_.push_back(axis), batches_ *= extent;
      } else {
        Side& side = sides_[b.contains(axis) ? 1 : 0];
        side.axes.push_back(axis), side.points *= extent;
      }
    }
  }

  /// Where points of some axes lie among the outer points.
  void offsets(const std::vector<int>& axes, int64_t points, std::vector<int64_t>& to) const {
    std::vector<int64_t> stride(plan_.extents.size(), 0);
    int64_t step = 1;
    for (size_t k = plan_.outer.size(); k-- > 0;) {
      stride[static_cast<size_t>(plan_.outer[k])] = step;
      step *= plan_.extents[static_cast<size_t>(plan_.outer[k])];
    }
    to.assign(static_cast<size_t>(points), 0);
    for (int64_t p = 0; p < points; ++p) {
      int64_t rest = p;
      for (size_t k = axes.size(); k-- > 0;) {
        const auto axis = static_cast<size_t>(axes[k]);
        to[static_cast<size_t>(p)] += rest % plan_.extents[axis] * stride[axis];
        rest /= plan_.extents[axis];
      }
    }
  }

  /// A factor at `count` of its points, for every reduce point.
  Numbers evaluate(const Side& side, int64_t batch, int64_t first, int64_t count) const {
    Numbers n;
    n.value.assign(static_cast<size_t>(plan_.reduce_points * count), 0);
    n.tie.assign(static_cast<size_t>(count), 0);
    LaneWalk walk(plan_);
    walk.exact_constants(side.plain);
    for (int64_t at = 0; at < count; at += Lanes::kCount) {
      const int lanes = static_cast<int>(std::min<int64_t>(Lanes::kCount, count - at));
      walk.start(side.axes, first + at, lanes);
      walk.share_all(batch_, batch);
      for (int64_t k = 0; k < plan_.reduce_points; ++k) {
        walk.share_all(plan_.reduce, k);
        keep(walk.run(side.tape), lanes, static_cast<size_t>(k * count + at), static_cast<size_t>(at), n);
      }
    }
    return n;
  }

  static void keep(const Lanes& v, int lanes, size_t at, size_t point, Numbers& n) {
    if (!v.certain && n.error.empty()) n.error.assign(n.value.size(), 0);
    for (int i = 0; i < lanes; ++i) {
      const double x = v.real(i);
      n.value[at + static_cast<size_t>(i)] = x;
      n.largest = std::max(n.largest, std::fabs(x));
      if (x != 0 && std::isfinite(x)) n.lowest = std::min(n.lowest, lowest_bit(x));
      if (v.certain) continue;
      n.error[at + static_cast<size_t>(i)] = v.error_of(i).most();
      if (v.tie_of(i)) n.tie[point + static_cast<size_t>(i)] = 1;
    }
  }

  /// c[row][column] = sum over k of f(row value) * g(column value).
  template <class F, class G>
  std::vector<double> multiply(const std::vector<double>& r, const std::vector<double>& c, int64_t count, F f,
                               G g) const {
    std::vector<double> left(r.size());
    std::transform(r.begin(), r.end(), left.begin(), f);
    const int64_t row_count = rows().points;
    const PackedRows packed(row_count, plan_.reduce_points, {left.data(), 1, row_count});
    std::vector<double> result(static_cast<size_t>(row_count * count), 0);
    const PackColumns pack = [&](int64_t k0, int64_t depth, int64_t j0, int64_t columns, double* to) {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < columns; ++j)
          to[k * kColumnTile + j] = g(c[static_cast<size_t>((k0 + k) * count + j0 + j)]);
    };
    multiply_add(packed, 0, row_count, pack, 0, count, result.data(), count);
    return result;
  }

  void run_batch(int64_t batch, const WinogradFactor* winograd, ReducedValues& to) {
    const Numbers r = evaluate(rows(), batch, 0, rows().points);
    const int64_t chunks = (columns().points + kChunk - 1) / kChunk;
    parallel_for(chunks, [&](int64_t c) {
      const int64_t first = c * kChunk, count = std::min(kChunk, columns().points - first);
      run_chunk(r, evaluate(columns(), batch, first, count), batch, first, count, winograd != nullptr, to);
    });
  }

  void run_chunk(const Numbers& r, const Numbers& c, int64_t batch, int64_t first, int64_t count, bool winograd,
                 ReducedValues& to) {
    const auto same = [](double x) { return x; };
    const auto size = [](double x) { return std::fabs(x); };
    const auto square = [](double x) { return x * x; };
    const std::vector<double> sums = multiply(r.value, c.value, count, same, same);
    std::vector<double> squares, sizes, errors;
    const double most = std::ldexp(1.0, std::clamp(r.lowest + c.lowest + 24, -1000, 1000));
    const bool exact = is_float(dtype_) && r.error.empty() && c.error.empty() && r.largest * c.largest <= most;
    const double largest_sum = r.largest * c.largest * static_cast<double>(plan_.reduce_points);
    const bool vast = is_float(dtype_) && largest_sum > largest_of(computed_in(dtype_)) / 2;
    if (exact || winograd || vast) sizes = multiply(r.value, c.value, count, size, size);
    const bool all_exact = exact && *std::max_element(sizes.begin(), sizes.end()) <= most;
    if (is_float(dtype_) && !all_exact && !winograd) squares = multiply(r.value, c.value, count, square, square);
    if (!c.error.empty()) errors = multiply(r.value, c.error, count, size, same);
    if (!r.error.empty()) add(errors, multiply(r.error, c.value, count, same, size));
    if (!r.error.empty() && !c.error.empty()) add(errors, multiply(r.error, c.error, count, same, same));
    double worst = 1;
    for (int64_t i = 0; i < rows().points; ++i)
      for (int64_t j = 0; j < count; ++j) {
        const auto from = static_cast<size_t>(i * count + j);
        const auto at = static_cast<size_t>(batch_at_[static_cast<size_t>(batch)] + row_at_[static_cast<size_t>(i)] +
                                            column_at_[static_cast<size_t>(first + j)]);
        const double error = errors.empty() ? 0 : claimed(errors[from]);
        SumOfTerms s{sums[from], squares.empty() ? 0 : squares[from], Reach::both(error),
                     static_cast<double>(plan_.reduce_points)};
        keep_sum(s, exact && sizes[from] <= most, at, to, worst);
        if (vast && overflow_sum(dtype_, sizes[from], plan_.model.typed, to.value[at], to.error[at]))
          plan_.swallows->store(true, std::memory_order_relaxed);
        to.tie[at] = !s.errors.none() && (r.tie[static_cast<size_t>(i)] || c.tie[static_cast<size_t>(j)]);
        if (winograd) magnitudes_[at] = sizes[from];
      }
    const std::lock_guard lock(mutex_);
    worst_ = std::max(worst_, worst);
  }

  static void add(std::vector<double>& to, const std::vector<double>& more) {
    if (to.empty()) to.assign(more.size(), 0);
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  }

  void keep_sum(const SumOfTerms& s, bool exact, size_t at, ReducedValues& to, double& worst) const {
    if (!is_float(dtype_)) {
      to.integer[at] = wrap_to(dtype_, static_cast<int64_t>(s.sum));
      to.error[at] = s.errors;
      return;
    }
    to.value[at] = s.sum;
    to.error[at] = exact ? Reach::both(rounding_of(computed_in(dtype_), s.sum)) : sum_error(dtype_, s);
    if (!to.error[at].none()) worst = std::max(worst, worst_sum_error(dtype_, s) / to.error[at].most());
  }

  /// An element shares transforms with all of its tile.
  void add_winograd(const WinogradFactor& w, ReducedValues& to) const {
    std::vector<double> largest = magnitudes_;
    for (const auto& [axis, reach] : {std::pair{w.column, w.tile_w - 1}, std::pair{w.row, w.tile_h - 1}}) {
      int64_t step = 1;
      for (size_t k = plan_.outer.size(); k-- > 0 && plan_.outer[k] != axis;)
        step *= plan_.extents[static_cast<size_t>(plan_.outer[k])];
      const int64_t extent = plan_.extents[static_cast<size_t>(axis)];
      const std::vector<double> before = largest;
      for (int64_t p = 0; p < plan_.outer_points; ++p) {
        const int64_t here = p / step % extent;
        for (int64_t d = -std::min(reach, here); d <= std::min(reach, extent - 1 - here); ++d)
          largest[static_cast<size_t>(p)] =
              std::max(largest[static_cast<size_t>(p)], before[static_cast<size_t>(p + d * step)]);
      }
    }
    for (size_t p = 0; p < largest.size(); ++p) to.error[p] += Reach::both(kWinogradMargin * w.factor * largest[p]);
  }
};

}  // namespace

bool reduce_as_product(const StagePlan& plan, size_t reduction, const WinogradFactor* winograd, ReducedValues& to,
                       double& worst_of_bound) {
  Product product(plan, reduction);
  if (!product.fits()) return false;
  worst_of_bound = std::max(worst_of_bound, product.run(winograd, to));
  return true;
}

}  // namespace opfuse
