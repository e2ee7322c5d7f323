#include "region/operand_reads.hpp"

#include <algorithm>
#include <map>

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

/// Adds, by parameter, the points at which some of the values read it.
void add_points(const Stage& stage, const std::vector<const Expr*>& values, std::vector<double>& points) {
  Dependence found;
  for (const Expr* value : values) add_dependence(stage, *value, found);
  std::map<int, std::vector<IndexMap>> done;
  for (const int r : found.reads) {
    const Read& read = stage.reads[static_cast<size_t>(r)];
    if (read.stage >= 0) continue;
    std::vector<IndexMap>& maps = done[read.index];
    if (std::find(maps.begin(), maps.end(), read.map) != maps.end()) continue;
    maps.push_back(read.map);
    points[static_cast<size_t>(read.index)] += points_of(stage, read.map);
  }
}

}  // namespace

std::vector<double> reads_by_element(const Region& region) {
  std::vector<double> reads(region.params.size(), 0);
  for (const Stage& stage : region.stages) {
    for (const Reduction& reduction : stage.reductions) add_points(stage, {&reduction.value}, reads);
    std::vector<const Expr*> outputs;
    for (const StageOutput& output : stage.outputs) outputs.push_back(&output.value);
    add_points(stage, outputs, reads);
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    double elements = 1;
    for (const Dim& d : region.params[i].type.shape.dims) elements *= extent_of(d);
    reads[i] = elements > 0 ? reads[i] / elements : 0;
  }
  return reads;
}

}  // namespace opfuse
