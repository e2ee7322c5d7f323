// Rows read the window's value at [pixel, reduce axis] in reductions and at [pixel, channel axis] in results, in any
// order of the dimensions.
#include "cuda/window_rows_view.hpp"

#include "kernel/reads.hpp"
#include "region/dependence.hpp"

namespace opfuse::cuda {
namespace {

bool in_float(DType d) { return d == DType::f32 || d == DType::f16 || d == DType::bf16; }

/// The axis that a coordinate is; -1: it is 0; -2: something else.
int axis_of(const IndexExpr& e) {
  if (e.dynamic || !(e.offset == Dim(0)) || e.terms.size() > 1) return -2;
  if (e.terms.empty()) return -1;
  const IndexTerm& t = e.terms[0];
  return t.coef == Dim(1) && t.div == Dim(1) && t.mod == Dim(0) ? t.axis : -2;
}

class Finder {
 public:
  explicit Finder(const Region& region) : window_(region.stages[0]), rows_(region.stages[1]) {}

  std::variant<WindowRowsView, std::string> find() {
    if (std::string why = stages(); !why.empty()) return why;
    view_.row_axes.assign(window_.domain.size(), -2);
    view_.channel = -1;
    for (const Read& r : rows_.reads)
      if (r.stage == 0)
        if (std::string why = place(r); !why.empty()) return why;
    if (view_.channel < 0) return "rows do not run along the window's channels";
    view_.row_channel = view_.row_axes[static_cast<size_t>(view_.channel)];
    if (view_.row_channel < 0) return "results do not read what the window computes";
    const auto channels = window_.domain[static_cast<size_t>(view_.channel)].constant();
    if (!channels || !(rows_.domain[static_cast<size_t>(view_.row_channel)] == Dim(*channels)) ||
        !(rows_.reduce[0] == Dim(*channels)))
      return "the number of channels is open";
    view_.channels = *channels;
    return other_axes();
  }

 private:
  const Stage &window_, &rows_;
  WindowRowsView view_;

  std::string stages() {
    if (window_.outputs.size() != 1 || window_.outputs[0].param >= 0 || window_.reductions.size() != 1)
      return "the window's result is needed elsewhere too";
    if (!in_float(window_.outputs[0].dtype) || !in_float(window_.reductions[0].value.dtype()))
      return "the window is not computed in f32";
    for (const Read& r : window_.reads)
      for (const IndexExpr& d : r.map.dims)
        if (r.stage >= 0 || d.dynamic) return "the window reads at computed indices";
    if (rows_.reduce.size() != 1 || rows_.reductions.empty()) return "not rows along one axis";
    for (const Reduction& r : rows_.reductions)
      if (!in_float(r.value.dtype())) return "rows are not computed in f32";
    for (const StageOutput& o : rows_.outputs)
      if (o.param < 0 || o.clipped) return "a result stays in the kernel";
    const std::set<int> guarded = guarded_reads(rows_);
    for (size_t i = 0; i < rows_.reads.size(); ++i)
      if (rows_.reads[i].stage > 0 || (rows_.reads[i].stage == 0 && guarded.count(static_cast<int>(i))))
        return "guarded rows";
    return "";
  }

  /// Each read says where the window's axes are in the rows; all agree.
  std::string place(const Read& r) {
    const auto domain = static_cast<int>(rows_.domain.size());
    for (size_t d = 0; d < r.map.dims.size(); ++d) {
      const int axis = axis_of(r.map.dims[d]);
      if (axis == -2 || (axis == -1 && !(window_.domain[d] == Dim(1)))) return "rows read parts of the window";
      if (axis >= domain) {
        if (view_.channel >= 0 && view_.channel != static_cast<int>(d)) return "rows run along two axes";
        view_.channel = static_cast<int>(d);
        continue;
      }
      int& known = view_.row_axes[d];
      if (known >= -1 && known != axis) return "rows read other pixels than their own";
      known = axis;
    }
    return "";
  }

  /// Nothing but the channel varies within a row, and rows have no axes of their own.
  std::variant<WindowRowsView, std::string> other_axes() {
    view_.reduced = static_cast<int>(rows_.domain.size());
    std::set<int> seen;
    for (size_t d = 0; d < view_.row_axes.size(); ++d) {
      const int axis = view_.row_axes[d];
      if (axis == -2) return "rows are read along more than channels";
      if (axis >= 0 && !seen.insert(axis).second) return "an axis is read twice";
      if (axis >= 0 && !(rows_.domain[static_cast<size_t>(axis)] == window_.domain[d])) return "rows of another shape";
    }
    for (size_t axis = 0; axis < rows_.domain.size(); ++axis)
      if (!seen.count(static_cast<int>(axis)) && !(rows_.domain[axis] == Dim(1))) return "rows repeat the window";
    for (const Reduction& r : rows_.reductions)
      if (axes_of(rows_, r.value).count(view_.row_channel)) return "each channel has sums of its own";
    return view_;
  }
};

}  // namespace

bool resembles_window_rows(const Region& region) {
  return region.stages.size() == 2 && region.stages[0].anchor == Anchor::window &&
         region.stages[1].anchor == Anchor::row;
}

std::variant<WindowRowsView, std::string> view_window_rows(const Region& region) { return Finder(region).find(); }

}  // namespace opfuse::cuda
