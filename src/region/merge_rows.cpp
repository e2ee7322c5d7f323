// Rows that were lowered stage by stage become one, as norms spelled in primitives are:
//
//   row [n,1]: mean of x^2 over c                      row [n,c] over c: result 0 = sum of x^2
//   map [n,c]: x / sqrt(stage 0 + eps) * scale   ->      x / sqrt(result 0 / c + eps) * scale
//
// Each statistic reads only the row itself and statistics before it, so they are reductions of one loop nest. Between
// other stages the same holds for rows that follow each other: attention whose rows without keys become 0 asks for the
// largest score, which its softmax has anyway. Behind a product all of them become one, what is stored at the end too.
#include <span>

#include "region/lowering.hpp"

namespace opfuse {
namespace {

using Stages = std::span<const Stage>;

bool is_zero(const IndexExpr& index) { return index.terms.empty() && index.offset == Dim(0) && !index.dynamic; }
bool is_axis(const IndexExpr& index, size_t axis) {
  return index.terms == std::vector<IndexTerm>{{1, static_cast<int>(axis)}} && index.offset == Dim(0) && !index.dynamic;
}

/// Row stages over the same reduce axes, the last of them perhaps a map; along each axis they have the last one's
/// extent, or 1. What they store has the last one's domain.
bool are_rows(Stages stages) {
  const Stage &first = stages.front(), &last = stages.back();
  for (const Stage& stage : stages) {
    const bool statistic = &stage != &last;
    if (stage.anchor != Anchor::row && (statistic || stage.anchor != Anchor::map)) return false;
    if (stage.anchor == Anchor::row && stage.reduce != first.reduce) return false;
    if (stage.domain.size() != last.domain.size()) return false;
    for (size_t i = 0; i < stage.domain.size(); ++i)
      if (!(stage.domain[i] == last.domain[i]) && !(stage.domain[i] == Dim(1))) return false;
    for (const StageOutput& output : stage.outputs)
      if (statistic && output.param >= 0 && stage.domain != last.domain) return false;
  }
  return true;
}

class Merge {
 public:
  /// `stages` of a region, the first of them its stage `first`.
  Merge(Stages stages, int first) : stages_(stages), first_(first) {}

  /// Nothing where a stage reads another one elsewhere than at its own row.
  std::optional<Stage> run() {
    merged_.anchor = Anchor::row;
    merged_.domain = stages_.back().domain;
    merged_.reduce = stages_.front().reduce;
    for (const Stage& stage : stages_) {
      if (!take_reads(stage)) return std::nullopt;
      results_.clear();
      for (const Reduction& r : stage.reductions) results_.push_back(result_of({r.kind, moved(stage, r.value)}));
      values_.emplace_back();
      for (const StageOutput& output : stage.outputs) {
        const Expr value = moved(stage, output.value);
        values_.back().push_back(value.dtype() == output.dtype ? value : Expr::make_cast(value, output.dtype));
        const StageOutput result{output.param, value, output.map, output.shape, output.dtype};
        if (&stage == &stages_.back())
          merged_.outputs.push_back(result);
        else if (output.param >= 0)
          stored_.push_back(result);
      }
    }
    // behind those of the last stage, whose numbers later stages know
    merged_.outputs.insert(merged_.outputs.end(), stored_.begin(), stored_.end());
    return std::move(merged_);
  }

 private:
  Stages stages_;
  int first_;
  Stage merged_;
  std::vector<StageOutput> stored_;        ///< of the stages in front of the last
  std::vector<std::vector<Expr>> values_;  ///< by stage and output
  std::vector<Expr> reads_;                ///< what stands for the reads of the stage at hand
  std::vector<int> results_;               ///< the merged number of its reductions

  /// Two stages may ask for the same.
  int result_of(Reduction reduction) {
    std::vector<Reduction>& all = merged_.reductions;
    const auto at = std::find(all.begin(), all.end(), reduction);
    const auto number = static_cast<int>(at - all.begin());
    if (at == all.end()) all.push_back(std::move(reduction));
    return number;
  }

  size_t number_of(const Read& read) const { return static_cast<size_t>(read.stage - first_); }

  bool take_reads(const Stage& stage) {
    reads_.clear();
    for (const Read& read : stage.reads) {
      if (read.stage >= first_) {
        if (!at_own_row(stage, read)) return false;
        reads_.push_back(values_[number_of(read)][static_cast<size_t>(read.index)]);
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
    const Stage& from = stages_[number_of(read)];
    for (size_t i = 0; i < read.map.dims.size(); ++i) {
      const bool single = from.domain[i] == Dim(1);
      if (!(single && is_zero(read.map.dims[i])) &&
          !(is_axis(read.map.dims[i], i) && stage.domain[i] == from.domain[i]))
        return false;
    }
    return true;
  }

  Expr moved(const Stage& stage, const Expr& expr) const {
    return expr.map_leaves([&](const Expr& leaf) {
      switch (leaf.op()) {
        case ExprOp::read: {
          const Expr& stands = reads_[static_cast<size_t>(leaf.index())];
          return is_local(stage, leaf) ? stands : Expr::read(stands.index(), leaf.dtype());
        }
        case ExprOp::in_bounds:  // a statistic is always there
          return is_local(stage, leaf) ? Expr::integer(DType::boolean, 1) : reads_[static_cast<size_t>(leaf.index())];
        case ExprOp::result:
          return Expr::result(results_[static_cast<size_t>(leaf.index())], leaf.dtype());
        case ExprOp::coord:
          return is_single(stage, leaf.index()) ? Expr::integer(DType::i64, 0) : leaf;
        default:
          return leaf;
      }
    });
  }
  bool is_local(const Stage& stage, const Expr& leaf) const {
    return stage.reads[static_cast<size_t>(leaf.index())].stage >= first_;
  }
};

/// Stages first .. last, whose results only stages up to `last` read.
bool are_read_inside(const Region& region, size_t first, size_t last) {
  for (size_t s = last + 1; s < region.stages.size(); ++s)
    for (const Read& read : region.stages[s].reads)
      if (read.stage >= static_cast<int>(first) && read.stage < static_cast<int>(last)) return false;
  return true;
}

bool merge_between(Region& region, size_t first, size_t last) {
  const Stages stages = Stages(region.stages).subspan(first, last - first + 1);
  if (!are_rows(stages) || !are_read_inside(region, first, last)) return false;
  std::optional<Stage> merged = Merge(stages, static_cast<int>(first)).run();
  if (!merged) return false;
  region.stages[first] = std::move(*merged);
  region.stages.erase(region.stages.begin() + static_cast<int64_t>(first) + 1,
                      region.stages.begin() + static_cast<int64_t>(last) + 1);
  for (size_t s = first + 1; s < region.stages.size(); ++s)
    for (Read& read : region.stages[s].reads)
      if (read.stage >= static_cast<int>(last)) read.stage -= static_cast<int>(last - first);
  return true;
}

}  // namespace

void merge_rows(Region& region) {
  if (region.stages.size() < 2 || merge_between(region, 0, region.stages.size() - 1)) return;
  for (size_t s = 1; s < region.stages.size(); ++s)
    if (region.stages[s].anchor == Anchor::row && merge_between(region, s - 1, s)) --s;
  // rows behind a product end in what is stored of them
  if (region.stages[0].anchor == Anchor::contraction && region.stages.size() > 2)
    merge_between(region, 1, region.stages.size() - 1);
}

}  // namespace opfuse
