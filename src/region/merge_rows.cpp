// Rows that were lowered stage by stage become one, as norms spelled in primitives are:
//
//   row [n,1]: mean of x^2 over c                      row [n,c] over c: result 0 = sum of x^2
//   map [n,c]: x / sqrt(stage 0 + eps) * scale   ->      x / sqrt(result 0 / c + eps) * scale
//
// Each statistic reads only the row itself and statistics before it, so they are reductions of one loop nest.
#include "region/lowering.hpp"

namespace opfuse {
namespace {

bool is_zero(const IndexExpr& index) { return index.terms.empty() && index.offset == Dim(0) && !index.dynamic; }
bool is_axis(const IndexExpr& index, size_t axis) {
  return index.terms == std::vector<IndexTerm>{{1, static_cast<int>(axis)}} && index.offset == Dim(0) && !index.dynamic;
}

/// Row stages without stored results in front of the last stage, all over the same reduce axes; along each axis they
/// have the last one's extent, or 1.
bool are_rows(const std::vector<Stage>& stages) {
  const Stage &first = stages.front(), &last = stages.back();
  for (const Stage& stage : stages) {
    const bool statistic = &stage != &last;
    if (stage.anchor != Anchor::row && (statistic || stage.anchor != Anchor::map)) return false;
    if (stage.anchor == Anchor::row && stage.reduce != first.reduce) return false;
    if (stage.domain.size() != last.domain.size()) return false;
    for (size_t i = 0; i < stage.domain.size(); ++i)
      if (!(stage.domain[i] == last.domain[i]) && !(stage.domain[i] == Dim(1))) return false;
    for (const StageOutput& output : stage.outputs)
      if (statistic && output.param >= 0) return false;
  }
  return true;
}

class Merge {
 public:
  explicit Merge(const std::vector<Stage>& stages) : stages_(stages) {}

  /// Nothing where a stage reads another one elsewhere than at its own row.
  std::optional<Stage> run() {
    merged_.anchor = Anchor::row;
    merged_.domain = stages_.back().domain;
    merged_.reduce = stages_.front().reduce;
    for (const Stage& stage : stages_) {
      if (!take_reads(stage)) return std::nullopt;
      const int before = static_cast<int>(merged_.reductions.size());
      for (const Reduction& r : stage.reductions) merged_.reductions.push_back({r.kind, moved(stage, r.value, before)});
      values_.emplace_back();
      for (const StageOutput& output : stage.outputs) {
        const Expr value = moved(stage, output.value, before);
        values_.back().push_back(value.dtype() == output.dtype ? value : Expr::make_cast(value, output.dtype));
        if (&stage == &stages_.back())
          merged_.outputs.push_back({output.param, value, output.map, output.shape, output.dtype});
      }
    }
    return std::move(merged_);
  }

 private:
  const std::vector<Stage>& stages_;
  Stage merged_;
  std::vector<std::vector<Expr>> values_;  ///< by stage and output
  std::vector<Expr> reads_;                ///< what stands for the reads of the stage at hand

  bool take_reads(const Stage& stage) {
    reads_.clear();
    for (const Read& read : stage.reads) {
      if (read.stage >= 0) {
        if (!at_own_row(stage, read)) return false;
        reads_.push_back(values_[static_cast<size_t>(read.stage)][static_cast<size_t>(read.index)]);
        continue;
      }
      Read wider = read;
      for (IndexExpr& dim : wider.map.dims) {
        if (dim.dynamic) return false;
        std::erase_if(dim.terms, [&](const IndexTerm& term) { return is_single(stage, term.axis); });
      }
      const auto at = std::find(merged_.reads.begin(), merged_.reads.end(), wider);
      const int index = static_cast<int>(at - merged_.reads.begin());
      if (at == merged_.reads.end()) merged_.reads.push_back(std::move(wider));
      reads_.push_back(Expr::in_bounds(index));  // its number; the type stands at each place that reads
    }
    return true;
  }

  /// A domain axis of extent 1: its coordinate is 0, which the merged stage's need not be.
  bool is_single(const Stage& stage, int axis) const {
    return axis < static_cast<int>(stage.domain.size()) && stage.domain[static_cast<size_t>(axis)] == Dim(1);
  }

  bool at_own_row(const Stage& stage, const Read& read) const {
    const Stage& from = stages_[static_cast<size_t>(read.stage)];
    for (size_t i = 0; i < read.map.dims.size(); ++i) {
      const bool single = from.domain[i] == Dim(1);
      if (!(single && is_zero(read.map.dims[i])) &&
          !(is_axis(read.map.dims[i], i) && stage.domain[i] == from.domain[i]))
        return false;
    }
    return true;
  }

  Expr moved(const Stage& stage, const Expr& expr, int results_before) const {
    return expr.map_leaves([&](const Expr& leaf) {
      switch (leaf.op()) {
        case ExprOp::read: {
          const Expr& stands = reads_[static_cast<size_t>(leaf.index())];
          return is_local(stage, leaf) ? stands : Expr::read(stands.index(), leaf.dtype());
        }
        case ExprOp::in_bounds:  // a statistic is always there
          return is_local(stage, leaf) ? Expr::integer(DType::boolean, 1) : reads_[static_cast<size_t>(leaf.index())];
        case ExprOp::result:
          return Expr::result(results_before + leaf.index(), leaf.dtype());
        case ExprOp::coord:
          return is_single(stage, leaf.index()) ? Expr::integer(DType::i64, 0) : leaf;
        default:
          return leaf;
      }
    });
  }
  static bool is_local(const Stage& stage, const Expr& leaf) {
    return stage.reads[static_cast<size_t>(leaf.index())].stage >= 0;
  }
};

}  // namespace

void merge_rows(Region& region) {
  if (region.stages.size() < 2 || !are_rows(region.stages)) return;
  if (std::optional<Stage> merged = Merge(region.stages).run()) region.stages = {std::move(*merged)};
}

}  // namespace opfuse
