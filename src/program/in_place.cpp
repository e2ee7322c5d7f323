// In-place results: decided on lifetimes of roots, after layouts and views are fixed and before the memory
// plan, which then sees one buffer instead of two.
#include "program/in_place.hpp"

#include <algorithm>
#include <set>

#include "program/body.hpp"
#include "program/lifetimes.hpp"
#include "region/dependence.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

/// The parameter is read once in the whole region, where the output stage stores, and by that stage.
bool read_where_stored(const Region& region, int operand, const Stage& stage, const StageOutput& output) {
  int reads = 0;
  bool same = false;
  for (const Stage& s : region.stages)
    for (const Read& read : s.reads) {
      if (read.stage >= 0 || read.index != operand) continue;
      ++reads;
      same |= &s == &stage && read.map == output.map;
    }
  return reads == 1 && same;
}

bool has_dynamic(const Stage& stage) {
  return std::any_of(stage.reads.begin(), stage.reads.end(), [](const Read& read) {
    return std::any_of(read.map.dims.begin(), read.map.dims.end(),
                       [](const IndexExpr& dim) { return static_cast<bool>(dim.dynamic); });
  });
}

/// Axes that some reduction depends on: together they number the rows.
std::set<int> row_axes(const Stage& stage) {
  std::set<int> axes;
  for (const Reduction& reduction : stage.reductions) axes.merge(axes_of(stage, reduction.value));
  return axes;
}

/// The dimension is a single axis, counted as it is.
bool is_axis(const IndexExpr& dim) {
  return dim.terms.size() == 1 && dim.offset == Dim(0) && dim.terms[0].coef == Dim(1) && dim.terms[0].div == Dim(1) &&
         dim.terms[0].mod == Dim(0);
}

/// Whatever a row reads of the operand is stored by the same row: dimensions agree, or run along the row on both sides.
bool read_within_rows(const Region& region, int operand, const Stage& stage, const StageOutput& output) {
  if (!is_single_stage(region) || stage.anchor != Anchor::row || has_dynamic(stage)) return false;
  const std::set<int> rows = row_axes(stage);
  const auto along_row = [&](const IndexExpr& read, const IndexExpr& stored) {
    return is_axis(read) && is_axis(stored) && read.terms[0].axis >= static_cast<int>(stage.domain.size()) &&
           !rows.contains(stored.terms[0].axis);
  };
  bool here = false;
  for (const Read& read : stage.reads) {
    if (read.index != operand) continue;
    here |= read.map == output.map;
    for (size_t d = 0; d < read.map.dims.size(); ++d)
      if (!(read.map.dims[d] == output.map.dims[d]) && !along_row(read.map.dims[d], output.map.dims[d])) return false;
  }
  return here;
}

/// What is known of each buffer while results take their operands' places: kept as views are made, not found again.
class Sharing {
 public:
  explicit Sharing(const Program& program) : program_(program), roots_(roots_of(program)) {
    const std::vector<Lifetime> lives = lifetimes(program);
    for (const Lifetime& life : lives) last_.push_back(life.last);
    viewed_.resize(roots_.size());
    for (const Buffer& buffer : program.buffers)
      if (buffer.view_of >= 0) viewed_[static_cast<size_t>(buffer.view_of)] = true;
  }

  int root(int buffer) const { return roots_[static_cast<size_t>(buffer)]; }
  int last_use(int buffer) const { return last_[static_cast<size_t>(root(buffer))]; }

  /// An intermediate that owns its memory, which nobody else looks into.
  bool plain(int index) const {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
    return buffer.kind == BufferKind::intermediate && buffer.view_of < 0 && !viewed_[static_cast<size_t>(index)];
  }

  /// The whole of an intermediate's memory: itself no view, or the result that took such a buffer's place.
  bool whole(int index) const {
    for (const Buffer* buffer = &program_.buffers[static_cast<size_t>(index)];
         buffer->view_of >= 0 && !taken_.contains(index);
         index = buffer->view_of, buffer = &program_.buffers[static_cast<size_t>(index)]) {
      const Buffer& parent = program_.buffers[static_cast<size_t>(buffer->view_of)];
      if (buffer->view_offset.empty() || !(parent.type == buffer->type) || !(parent.layout == buffer->layout))
        return false;
    }
    return program_.buffers[static_cast<size_t>(root(index))].kind == BufferKind::intermediate;
  }

  /// No other parameter of the launch looks into the same memory.
  bool alone(const Launch& launch, int operand) const {
    const auto same = [&](int b) { return b >= 0 && root(b) == root(operand); };
    return std::count_if(launch.buffers.begin(), launch.buffers.end(), same) == 1;
  }

  /// `result`, a plain one, became a view of the whole of `operand`.
  void share(int result, int operand) {
    int& last = last_[static_cast<size_t>(root(operand))];
    last = std::max(last, last_[static_cast<size_t>(result)]);
    roots_[static_cast<size_t>(result)] = root(operand);
    viewed_[static_cast<size_t>(operand)] = true;
    taken_.insert(result);
  }

 private:
  const Program& program_;
  std::vector<int> roots_, last_;
  std::vector<bool> viewed_;
  std::set<int> taken_;  // views that are the whole of their root
};

/// An expression that uses the operand only in the output (not in a reduction that other parts repeat).
bool only_in_outputs(const Stage& stage, int operand) {
  bool reduced = false;
  for (const Reduction& reduction : stage.reductions)
    reduction.value.visit([&](const Expr& e) {
      if (e.op() == ExprOp::read && stage.reads[static_cast<size_t>(e.index())].index == operand &&
          stage.reads[static_cast<size_t>(e.index())].stage < 0)
        reduced = true;
    });
  return !reduced;
}

/// Whether its kernel reduces a row before it stores any of it; a launch without a schedule has no kernel yet.
bool reduces_before_storing(const Launch& launch) {
  return launch.schedule.skeleton.empty() || launch.schedule.skeleton == "generic";
}

}  // namespace

void share_buffers(Program& program, bool rows) {
  Sharing sharing(program);
  for (size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    const Body* body = body_of(program, l);
    if (body && body->kind == BodyKind::steps) continue;  // its operands are slices that other steps read
    const bool by_rows = rows && reduces_before_storing(launch);
    for (const Stage& stage : launch.region.stages)
      for (const StageOutput& output : stage.outputs) {
        if (output.param < 0 || stage.anchor == Anchor::scatter) continue;  // it writes into what an earlier one made
        const int result = launch.buffers[static_cast<size_t>(output.param)];
        if (!sharing.plain(result)) continue;
        for (size_t p = 0; p < launch.buffers.size(); ++p) {
          const int operand = launch.buffers[p];
          if (launch.region.params[p].role != ParamRole::input || !sharing.whole(operand)) continue;
          const Buffer& from = program.buffers[static_cast<size_t>(operand)];
          Buffer& to = program.buffers[static_cast<size_t>(result)];
          if (!(from.type == to.type) || !(from.layout == to.layout)) continue;
          if (sharing.last_use(operand) != static_cast<int>(l) || !sharing.alone(launch, operand)) continue;
          const bool pointwise = read_where_stored(launch.region, static_cast<int>(p), stage, output) &&
                                 only_in_outputs(stage, static_cast<int>(p));
          if (!pointwise && !(by_rows && read_within_rows(launch.region, static_cast<int>(p), stage, output))) continue;
          to.view_of = operand;
          to.view_offset.assign(to.type.shape.rank(), Dim(0));
          sharing.share(result, operand);
          break;
        }
      }
  }
}

}  // namespace opfuse
