// Stage after stage, with locals stored whole; each stage in blocks of 64 points.
#include "proof/error_bound.hpp"

#include <algorithm>
#include <mutex>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "proof/bounded_stage.hpp"
#include "region/dependence.hpp"

namespace opfuse {

BoundedTensor::BoundedTensor(DType type, std::vector<int64_t> extents) : dtype(type), sizes(std::move(extents)) {
  size_t n = 1;
  for (const int64_t size : sizes) n *= static_cast<size_t>(size);
  if (is_float(dtype))
    value.assign(n, 0);
  else
    integer.assign(n, 0);
  error.assign(n, {});
  tie.assign(n, 0);
  written.assign(n, 0);
}

BoundedTensor::BoundedTensor(const Tensor& t) : dtype(t.dtype()), sizes(t.sizes()) {
  const int64_t n = t.elements();
  if (is_float(dtype)) {
    const Tensor wide = t.cast(DType::f64);
    const auto* from = static_cast<const double*>(wide.data());
    value.assign(from, from + n);
  } else {
    for (int64_t i = 0; i < n; ++i) integer.push_back(t.integer(i));
  }
}

namespace {

constexpr int64_t kLongRow = 24;  ///< lanes along a row of so many, else across rows

class BoundedRegion {
 public:
  BoundedRegion(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols,
                const BoundOptions& options)
      : region_(region), symbols_(symbols), options_(options) {
    for (size_t p = 0; p < region.params.size(); ++p) {
      const Param& param = region.params[p];
      if (const auto given = options.bounded.find(p); given != options.bounded.end())
        params_.push_back(*given->second);
      else
        params_.push_back(param.role == ParamRole::output
                              ? BoundedTensor(param.type.dtype, param.type.shape.evaluate(symbols))
                              : BoundedTensor(params[p]));
    }
  }

  BoundedRun run() {
    locals_.resize(region_.stages.size());
    for (size_t s = 0; s < region_.stages.size(); ++s) run_stage(s);
    BoundedRun result;
    result.worst_of_bound = worst_;
    for (BoundedTensor& t : params_) t.swallows = swallows_;
    for (size_t p = 0; p < params_.size(); ++p)
      result.results.push_back(region_.params[p].role == ParamRole::output ? std::move(params_[p]) : BoundedTensor());
    return result;
  }

 private:
  const Region& region_;
  const SymbolValues& symbols_;
  const BoundOptions& options_;
  std::vector<BoundedTensor> params_;
  std::vector<std::vector<BoundedTensor>> locals_;  ///< by stage, by output
  double worst_ = 1;
  std::atomic<bool> swallows_ = false;

  StagePlan plan_of(size_t number) {
    const Stage& stage = region_.stages[number];
    StagePlan plan;
    plan.stage = &stage;
    plan.symbols = &symbols_;
    plan.model = options_.model;
    plan.swallows = &swallows_;
    for (const Dim& dim : stage.domain) plan.extents.push_back(dim.evaluate(symbols_));
    std::set<int> used;
    for (const Reduction& r : stage.reductions) {
      used.merge(axes_of(stage, r.value));
      plan.sums.push_back({r.kind, r.value.dtype(), LaneTape(r.value, symbols_, options_.model)});
    }
    for (size_t axis = 0; axis < stage.domain.size(); ++axis) {
      const bool outer = stage.reductions.empty() || used.contains(static_cast<int>(axis));
      (outer ? plan.outer : plan.inner).push_back(static_cast<int>(axis));
      (outer ? plan.outer_points : plan.inner_points) *= plan.extents[axis];
    }
    for (const Dim& dim : stage.reduce) {
      plan.reduce.push_back(static_cast<int>(plan.extents.size()));
      plan.extents.push_back(dim.evaluate(symbols_));
      plan.reduce_points *= plan.extents.back();
    }
    for (const Read& read : stage.reads) {
      const auto index = static_cast<size_t>(read.index);
      const BoundedTensor& t = read.stage < 0 ? params_[index] : locals_[static_cast<size_t>(read.stage)][index];
      const bool folded =
          read.stage < 0 && region_.params[index].role == ParamRole::constant && !options_.as_given.contains(index);
      plan.reads.push_back({&t, folded, BoundMap(read.map, t.sizes, symbols_, options_.model)});
    }
    for (size_t i = 0; i < stage.outputs.size(); ++i) {
      const StageOutput& o = stage.outputs[i];
      BoundedTensor& t = o.param >= 0 ? params_[static_cast<size_t>(o.param)] : locals_[number][i];
      plan.results.push_back({&t, LaneTape(o.value, symbols_, options_.model),
                              BoundMap(o.map, t.sizes, symbols_, options_.model), o.dtype, o.combine,
                              o.clipped || stage.anchor == Anchor::scatter});
    }
    return plan;
  }

  void run_stage(size_t number) {
    for (const StageOutput& o : region_.stages[number].outputs)
      locals_[number].push_back(o.param >= 0 ? BoundedTensor() : BoundedTensor(o.dtype, o.shape.evaluate(symbols_)));
    StagePlan plan = plan_of(number);
    std::vector<ReducedValues> reduced(plan.sums.size());
    for (size_t k = 0; k < plan.sums.size(); ++k) reduced[k].resize(plan.sums[k].dtype, plan.outer_points);
    reduce(number, plan, reduced);
    store(plan, reduced);
  }

  const WinogradFactor* winograd_of(size_t number) const {
    for (const WinogradFactor& w : options_.winograd)
      if (static_cast<size_t>(w.stage) == number) return &w;
    return nullptr;
  }

  /// Every reduction of all points before the next one, which may read its results.
  void reduce(size_t number, const StagePlan& plan, std::vector<ReducedValues>& reduced) {
    for (size_t k = 0; k < plan.sums.size() && plan.outer_points > 0; ++k) {
      if (reduce_as_product(plan, k, winograd_of(number), reduced[k], worst_)) continue;
      std::mutex mutex;
      each_block(plan.outer_points, [&](int64_t first, int count) {
        LaneWalk walk(plan);
        walk.start(plan.outer, first, count);
        const double worst = reduce_block(plan, walk, k, first, count, reduced[k], reduced);
        const std::lock_guard lock(mutex);
        worst_ = std::max(worst_, worst);
      });
    }
  }

  /// `threads`: 1 keeps the order of blocks.
  static void each_block(int64_t points, const std::function<void(int64_t, int)>& body, int threads = 0) {
    const auto run = [&](int64_t block) {
      const int64_t first = block * Lanes::kCount;
      body(first, static_cast<int>(std::min<int64_t>(Lanes::kCount, points - first)));
    };
    parallel_for((points + Lanes::kCount - 1) / Lanes::kCount, run, threads);
  }

  static void store(StagePlan& plan, const std::vector<ReducedValues>& reduced) {
    if (plan.inner_points >= kLongRow) return store_rows(plan, reduced);
    const auto block = [&](int64_t first, int count) {
      LaneWalk walk(plan);
      walk.start(plan.outer, first, count);
      walk.use_results(&reduced, first, false);
      for (StagePlan::Result& result : plan.results) {
        LaneIndex index = walk.index_of(result.map);
        walk.start(index);
        for (int64_t i = 0; i < plan.inner_points; ++i) {
          walk.share_all(plan.inner, i);
          walk.store(result, index);
        }
      }
    };
    each_block(plan.outer_points, block, plan.stage->anchor == Anchor::scatter ? 1 : 0);
  }

  static void store_rows(StagePlan& plan, const std::vector<ReducedValues>& reduced) {
    const int64_t blocks = (plan.inner_points + Lanes::kCount - 1) / Lanes::kCount;
    parallel_for(plan.outer_points, [&](int64_t row) {
      LaneWalk walk(plan);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * Lanes::kCount;
        walk.start(plan.inner, first, static_cast<int>(std::min<int64_t>(Lanes::kCount, plan.inner_points - first)));
        walk.share_all(plan.outer, row);
        walk.use_results(&reduced, row, true);
        for (StagePlan::Result& result : plan.results) {
          LaneIndex index = walk.index_of(result.map);
          walk.start(index);
          walk.store(result, index);
        }
      }
    });
  }
};

}  // namespace

BoundedRun bound_errors(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols,
                        const BoundOptions& options) {
  return BoundedRegion(region, params, symbols, options).run();
}

}  // namespace opfuse
