// The features of a dense block lie in one buffer, and each layer normalises a prefix of it:
//
//     map [1, 64, 56, 56]   map [1, 96, 56, 56]   map [1, 128, 56, 56]   ...      layout [N][C/16][H][W][16]
//     map [1, 16 n, 56, 56]                                            n = 4, 6, 8 ...
//
// Only the outermost loop that has more than one trip may be open: what is inside keeps its constants, strides too.
// Every tensor that the axis walks has its extent, and is walked by the axis itself.
#include "link/open_size.hpp"

#include <algorithm>

#include "kernel/launch_size.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

bool is_axis(const IndexExpr& e, int axis) {
  return !e.dynamic && e.offset == Dim(0) && e.terms.size() == 1 && e.terms[0] == IndexTerm{1, axis, 1, 0};
}

bool asks_place(const Expr& e, int axis) {
  bool asks = false;
  if (e) e.visit([&](const Expr& x) { asks |= x.op() == ExprOp::coord && x.index() == axis; });
  return asks;
}

bool mentions(const IndexExpr& e, int axis) {
  return asks_place(e.dynamic, axis) ||
         std::any_of(e.terms.begin(), e.terms.end(), [&](const IndexTerm& t) { return t.axis == axis; });
}

/// The dimension that lies outermost in memory but for extents of 1, where it is the one in blocks, all of them whole.
std::optional<size_t> outermost_blocked(const Shape& shape, const Layout& layout) {
  if (layout.blocks.size() != 1 || layout.is_transformed()) return std::nullopt;
  for (const int d : layout.order) {
    const Dim& extent = shape[static_cast<size_t>(d)];
    if (extent == Dim(1)) continue;
    const Block& block = layout.blocks[0];
    const bool whole = extent.is_constant() && extent.value() > 0 && extent.value() % block.factor == 0;
    return block.axis == d && whole ? std::optional(static_cast<size_t>(d)) : std::nullopt;
  }
  return std::nullopt;
}

/// The axis of the first result's blocks.
std::optional<int> axis_of_blocks(const KernelSpec& spec, const Stage& stage) {
  const StageOutput& o = stage.outputs[0];
  const auto d = outermost_blocked(o.shape, spec.layouts[static_cast<size_t>(o.param)].layout);
  if (!d) return std::nullopt;
  const std::vector<IndexTerm>& terms = o.map.dims[*d].terms;
  return terms.size() == 1 && is_axis(o.map.dims[*d], terms[0].axis) ? std::optional(terms[0].axis) : std::nullopt;
}

class Opening {
 public:
  Opening(const KernelSpec& spec, int axis, int64_t factor) : open_{spec, 0}, axis_(axis) {
    Dim& extent = stage().domain[static_cast<size_t>(axis)];
    was_ = extent.value();
    open_.size = was_ / factor;
    open_.spec.symbols.emplace_back(kLaunchSize);
    now_ = Dim::symbol(kLaunchSize) * Dim(factor);
    extent = now_;
  }

  std::optional<OpenSize> run() {
    for (const Read& read : stage().reads)
      if (!open_param(read.index, read.map)) return std::nullopt;
    for (StageOutput& o : stage().outputs) {
      if (asks_place(o.value, axis_) || !open_param(o.param, o.map)) return std::nullopt;
      o.shape = open_.spec.region.params[static_cast<size_t>(o.param)].type.shape;
    }
    settle_unit_strides(open_.spec);
    return std::move(open_);
  }

 private:
  OpenSize open_;
  int axis_;
  int64_t was_ = 0;
  Dim now_ = 0;

  Stage& stage() { return open_.spec.region.stages[0]; }

  bool open_param(int param, const IndexMap& map) {
    Shape& shape = open_.spec.region.params[static_cast<size_t>(param)].type.shape;
    for (size_t d = 0; d < map.dims.size(); ++d) {
      if (!mentions(map.dims[d], axis_)) continue;
      if (!is_axis(map.dims[d], axis_) || !(shape[d] == Dim(was_) || shape[d] == now_)) return false;
      if (shape[d] == now_) continue;
      if (!is_outermost(open_.spec.layouts[static_cast<size_t>(param)].layout, shape, static_cast<int>(d)))
        return false;  // strides of what is outside would be open as well
      shape[d] = now_;
    }
    return true;
  }

  static bool is_outermost(const Layout& layout, const Shape& shape, int dim) {
    if (layout.is_transformed()) return false;
    for (const int d : layout.order) {
      if (d == dim) return true;
      if (!(shape[static_cast<size_t>(d)] == Dim(1))) return false;
    }
    return false;
  }
};

}  // namespace

std::optional<OpenSize> open_size(const KernelSpec& spec) {
  if (!is_single_stage(spec.region) || spec.schedule.skeleton != "generic") return std::nullopt;
  const Stage& stage = spec.region.stages[0];
  const bool stored = std::all_of(stage.outputs.begin(), stage.outputs.end(),
                                  [](const StageOutput& o) { return o.param >= 0 && !o.clipped && !o.combine; });
  if (stage.anchor != Anchor::map || !stage.reductions.empty() || stage.outputs.empty() || !stored) return std::nullopt;
  if (std::find(spec.symbols.begin(), spec.symbols.end(), kLaunchSize) != spec.symbols.end()) return std::nullopt;
  const std::optional<int> axis = axis_of_blocks(spec, stage);
  if (!axis) return std::nullopt;
  const size_t first = static_cast<size_t>(stage.outputs[0].param);
  return Opening(spec, *axis, spec.layouts[first].layout.blocks[0].factor).run();
}

void settle_unit_strides(KernelSpec& spec) {
  for (size_t p = 0; p < spec.layouts.size(); ++p) {
    ParamLayout& l = spec.layouts[p];
    const std::vector<Dim> extents = l.layout.physical_extents(spec.region.params[p].type.shape);
    for (size_t i = l.strides.size(); i-- > 0;)
      if (extents[i] == Dim(1)) l.strides[i] = i + 1 < l.strides.size() ? l.strides[i + 1] * extents[i + 1] : Dim(1);
  }
}

}  // namespace opfuse
