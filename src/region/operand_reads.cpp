#include "region/operand_reads.hpp"

#include <algorithm>

#include "region/dependence.hpp"
#include "region/read_shape.hpp"

namespace opfuse {

namespace {

double extent_of(const Dim& d) { return static_cast<double>(std::max<int64_t>(d.constant().value_or(1), 0)); }

double points_of(const Stage& stage, const IndexMap& map) {
  std::set<int> axes = axes_of(map);
  for (const IndexExpr& index : map.dims)
    if (index.dynamic) axes.merge(axes_of(stage, index.dynamic));
  double points = 1;
  for (const int axis : axes) {
    const auto at = static_cast<size_t>(axis);
    points *= extent_of(at < stage.domain.size() ? stage.domain[at] : stage.reduce[at - stage.domain.size()]);
  }
  return points;
}

/// Points at which some of the values read the parameter.
double points_read(const Stage& stage, const std::vector<const Expr*>& values, int param) {
  Dependence found;
  for (const Expr* value : values) add_dependence(stage, *value, found);
  std::vector<IndexMap> done;
  double points = 0;
  for (const int r : found.reads) {
    const Read& read = stage.reads[static_cast<size_t>(r)];
    if (read.stage >= 0 || read.index != param || std::find(done.begin(), done.end(), read.map) != done.end()) continue;
    done.push_back(read.map);
    points += points_of(stage, read.map);
  }
  return points;
}

}  // namespace

double reads_by_element(const Region& region, int param) {
  double elements = 1, points = 0;
  for (const Dim& d : region.params[static_cast<size_t>(param)].type.shape.dims) elements *= extent_of(d);
  for (const Stage& stage : region.stages) {
    for (const Reduction& reduction : stage.reductions) points += points_read(stage, {&reduction.value}, param);
    std::vector<const Expr*> outputs;
    for (const StageOutput& output : stage.outputs) outputs.push_back(&output.value);
    points += points_read(stage, outputs, param);
  }
  return elements > 0 ? points / elements : 0;
}

}  // namespace opfuse
