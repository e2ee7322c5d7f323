#include "cpu/product_rows/product_rows_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integers.hpp"
#include "region/dependence.hpp"

namespace opfuse {
namespace {

bool is_axis(const IndexExpr& index, int axis) {
  return !index.dynamic && index.offset == Dim(0) && index.terms.size() == 1 && index.terms[0] == IndexTerm{1, axis};
}

bool is_zero(const IndexExpr& index) { return !index.dynamic && index.offset == Dim(0) && index.terms.empty(); }

class Finder {
 public:
  explicit Finder(const Region& region) : region_(region), first_(region.stages[0]), second_(region.stages[1]) {}

  std::variant<ProductRowsView, std::string> find() {
    const auto product = view_products(region_, 0);
    if (const auto* why = std::get_if<std::string>(&product)) return *why;
    view_.product = std::get<ContractionView>(product);
    view_.row = view_.product.pixel;
    for (const std::string& why : {product_misfit(), rows_misfit(), reads_misfit()})
      if (!why.empty()) return why;
    return view_;
  }

 private:
  const Region& region_;
  const Stage &first_, &second_;
  ProductRowsView view_;

  std::string product_misfit() {
    const ContractionView& p = view_.product;
    const auto last = static_cast<int>(first_.domain.size()) - 1;
    if (p.sums() != 1 || p.types.data != DType::f32 || p.types.weights != DType::f32 || p.coded)
      return "not one sum of products of f32";
    const Read& weights = first_.reads[static_cast<size_t>(p.weights)];
    if (weights.stage >= 0 || region_.params[static_cast<size_t>(weights.index)].role != ParamRole::constant)
      return "both factors are computed, so each part would pack all columns";
    if (p.pixel < 0) return "one row alone, as a vector";
    if (p.vec != last || p.pixel != last - 1 || !p.taps.empty() || p.group_out || p.guarded || row_axis_of(p) >= 0)
      return "not one of matrices whose columns are the last axis";
    const auto columns = axis_extent(first_, p.vec).constant();
    if (!columns || !channel_depth(first_, p)) return "columns or depth are not known";
    if (first_.outputs.size() != 1 || first_.outputs[0].param >= 0 || first_.outputs[0].dtype != DType::f32)
      return "the product is needed elsewhere too, or is no f32";
    view_.columns = *columns;
    return "";
  }

  std::string rows_misfit() const {
    const auto rank = static_cast<size_t>(view_.row) + 1;
    if (second_.reduce.size() != 1 || second_.domain.size() < rank) return "rows are reduced over several axes";
    for (size_t axis = 0; axis < rank; ++axis)
      if (!(second_.domain[axis] == first_.domain[axis]))
        return "the rows that are reduced are not those of the product";
    for (const Reduction& r : second_.reductions)
      for (const int axis : axes_of(second_, r.value))
        if (axis > view_.row && axis < static_cast<int>(second_.domain.size()))
          return "a reduction for each column, not for each row";
    for (const StageOutput& o : second_.outputs)
      if (o.param < 0 || o.clipped || o.combine) return "results that are not stored as they are";
    return "";
  }

  /// Each element of the product is read by its own row.
  std::string reads_misfit() const {
    for (const Read& read : second_.reads) {
      if (read.stage < 0) continue;
      const auto& dims = read.map.dims;
      for (int axis = 0; axis <= view_.row; ++axis) {
        const bool single = first_.domain[static_cast<size_t>(axis)] == Dim(1);
        const IndexExpr& index = dims[static_cast<size_t>(axis)];
        if (!is_axis(index, axis) && !(single && is_zero(index))) return reduced_elsewhere();
      }
      const IndexExpr& column = dims.back();
      if (column.dynamic || column.terms.size() != 1 || !is_axis(column, column.terms[0].axis) ||
          column.terms[0].axis <= view_.row || !(axis_extent(second_, column.terms[0].axis) == Dim(view_.columns)))
        return reduced_elsewhere();
    }
    return "";
  }

  static std::string reduced_elsewhere() { return "what is reduced are not rows of the product along its columns"; }
};

}  // namespace

int64_t ProductRowsView::row_floats(const TargetInfo& target) const {
  return (ceil_of(columns, target.line_floats()) | 1) * target.line_floats();
}

bool resembles_product_rows(const Region& region) {
  return region.stages.size() == 2 && region.stages[0].anchor == Anchor::contraction &&
         region.stages[1].anchor == Anchor::row;
}

std::variant<ProductRowsView, std::string> view_product_rows(const Region& region) {
  if (!resembles_product_rows(region)) return "not a product and a reduction of rows behind it";
  return Finder(region).find();
}

}  // namespace opfuse
