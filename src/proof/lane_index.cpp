// Terms of index maps name one axis each, so a coordinate splits into a part of the lanes, computed once per block, and
// a shared part, computed for every point of a reduction. When the smallest and the largest lane are inside, all are.
#include "proof/lane_index.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {

BoundMap::BoundMap(const IndexMap& map, const std::vector<int64_t>& sizes, const SymbolValues& symbols,
                   const ErrorModel& model)
    : dims(sizes.size()) {
  OPFUSE_CHECK(map.dims.size() == sizes.size(), "an index map of rank {} for a tensor of rank {}", map.dims.size(),
               sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
    Coordinate& c = dims[d];
    for (const IndexTerm& t : map.dims[d].terms)
      c.terms.push_back({t.coef.evaluate(symbols), t.div.evaluate(symbols), t.mod.evaluate(symbols), t.axis});
    c.offset = map.dims[d].offset.evaluate(symbols);
    c.extent = sizes[d];
    c.stride = stride;
    if (map.dims[d].dynamic) c.dynamic = LaneTape(map.dims[d].dynamic, symbols, model);
  }
}

void LaneIndex::start(const LanePoints& points) {
  base_.fill(0);
  for (size_t d = 0; d < parts_.size(); ++d) {
    const BoundMap::Coordinate& c = map_->dims[d];
    if (!c.dynamic.empty()) continue;
    Part& part = parts_[d];
    part.lane.fill(0);
    for (const BoundMap::Term& t : c.terms)
      if (points.varies[static_cast<size_t>(t.axis)])
        for (int i = 0; i < points.count; ++i)
          part.lane[static_cast<size_t>(i)] += t.at(points.lanes[static_cast<size_t>(t.axis)][static_cast<size_t>(i)]);
    const auto [low, high] = std::minmax_element(part.lane.begin(), part.lane.begin() + points.count);
    part.low = *low, part.high = *high;
    for (int i = 0; i < points.count; ++i)
      base_[static_cast<size_t>(i)] += part.lane[static_cast<size_t>(i)] * c.stride;
  }
}

void LaneIndex::add_dynamic(size_t dim, const LanePoints& points, LaneLeaves& leaves, std::vector<Lanes>& slots,
                            bool& all) {
  const BoundMap::Coordinate& c = map_->dims[dim];
  const Lanes& at = c.dynamic.run(leaves, points.count, slots);
  for (int i = 0; i < points.count; ++i) {
    const auto lane = static_cast<size_t>(i);
    const bool in = !at.outside_of(i) && at.integer[lane] >= 0 && at.integer[lane] < c.extent;
    if (!in && all) inside.fill(true);
    all = all && in;
    if (!in) inside[lane] = false;
    offset[lane] += in ? at.integer[lane] * c.stride : 0;
    if (!at.error_of(i).none()) {
      if (!any_uncertain) uncertain.fill(false);
      any_uncertain = uncertain[lane] = true;
    }
  }
}

bool LaneIndex::locate(const LanePoints& points, LaneLeaves& leaves, std::vector<Lanes>& slots) {
  bool all = true;
  int64_t shift = 0;
  any_uncertain = false;
  for (size_t d = 0; d < parts_.size(); ++d) {
    const BoundMap::Coordinate& c = map_->dims[d];
    if (!c.dynamic.empty()) continue;
    int64_t shared = c.offset;
    for (const BoundMap::Term& t : c.terms)
      if (!points.varies[static_cast<size_t>(t.axis)]) shared += t.at(points.shared[static_cast<size_t>(t.axis)]);
    shift += shared * c.stride;
    const Part& part = parts_[d];
    if (part.low + shared >= 0 && part.high + shared < c.extent) continue;
    if (all) inside.fill(true);
    all = false;
    for (int i = 0; i < points.count; ++i) {
      const int64_t at = part.lane[static_cast<size_t>(i)] + shared;
      inside[static_cast<size_t>(i)] = inside[static_cast<size_t>(i)] && at >= 0 && at < c.extent;
    }
  }
  for (int i = 0; i < points.count; ++i) offset[static_cast<size_t>(i)] = base_[static_cast<size_t>(i)] + shift;
  for (size_t d = 0; d < parts_.size(); ++d)
    if (!map_->dims[d].dynamic.empty()) add_dynamic(d, points, leaves, slots, all);
  return all;
}

}  // namespace opfuse
