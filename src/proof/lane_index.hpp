// Where 64 points of a stage's iteration space lie in a tensor: each coordinate is the sum of what differs from lane to
// lane and what all lanes share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "proof/lane_tape.hpp"
#include "proof/lanes.hpp"
#include "region/region.hpp"

namespace opfuse {

/// An index map with numbers in place of symbols, for a dense tensor of given sizes.
struct BoundMap {
  struct Term {
    int64_t coef = 1, div = 1, mod = 0;
    int axis = 0;
    int64_t at(int64_t coordinate) const {
      const int64_t c = coordinate / div;
      return coef * (mod != 0 ? c % mod : c);
    }
  };
  struct Coordinate {
    std::vector<Term> terms;
    int64_t offset = 0, extent = 0, stride = 0;
    LaneTape dynamic;  ///< instead of terms where not empty
  };
  std::vector<Coordinate> dims;

  BoundMap(const IndexMap& map, const std::vector<int64_t>& sizes, const SymbolValues& symbols,
           const ErrorModel& model);
};

/// The coordinates of a block of points.
struct LanePoints {
  int count = 0;
  std::vector<int64_t> shared;                            ///< by axis
  std::vector<bool> varies;                               ///< by axis: `lanes` counts
  std::vector<std::array<int64_t, Lanes::kCount>> lanes;  ///< by axis
  int64_t at(int axis, int lane) const {
    const auto a = static_cast<size_t>(axis);
    return varies[a] ? lanes[a][static_cast<size_t>(lane)] : shared[a];
  }
};

class LaneIndex {
 public:
  explicit LaneIndex(const BoundMap& map) : map_(&map), parts_(map.dims.size()) {}
  /// After the lanes' own coordinates changed.
  void start(const LanePoints& points);
  /// Offsets of all lanes with the shared coordinates of now. False: some lanes are outside, see `inside`.
  /// Evaluates dynamic coordinates with `leaves`; `uncertain` becomes true where one of them may be another.
  bool locate(const LanePoints& points, LaneLeaves& leaves, std::vector<Lanes>& slots);

  std::array<int64_t, Lanes::kCount> offset;
  std::array<bool, Lanes::kCount> inside;
  std::array<bool, Lanes::kCount> uncertain;
  bool any_uncertain = false;

 private:
  struct Part {
    std::array<int64_t, Lanes::kCount> lane;
    int64_t low = 0, high = 0;
  };
  void add_dynamic(size_t dim, const LanePoints& points, LaneLeaves& leaves, std::vector<Lanes>& slots, bool& all);
  const BoundMap* map_;
  std::vector<Part> parts_;
  std::array<int64_t, Lanes::kCount> base_;  ///< of the lanes' parts of static coordinates
};

}  // namespace opfuse
