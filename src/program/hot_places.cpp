//     launch    0    1    2    3              address
//     a         |----|                        0
//     b              |----|                   1
//     c                   |----|              0 (a's: written two launches ago), not 2 (never touched)
//
// The age of a byte is what was touched since it was, in bytes; what a run touched last is old at the next one's begin.
// An item is moved to where the sum of its bytes' ages is least, of where an item was before it, and stays where it is
// when that is no less. All others keep their places meanwhile.
#include "program/hot_places.hpp"

#include <algorithm>
#include <numeric>

namespace opfuse {
namespace {

constexpr size_t kMostPlaces = 24;   ///< of the last that ended before an item begins
constexpr size_t kMostBefore = 256;  ///< what ended before these is as old as what was never touched

using Range = std::pair<int64_t, int64_t>;

class Mover {
 public:
  explicit Mover(std::vector<ArenaItem>& items) : items_(items) {
    for (const ArenaItem& item : items_) end_ = std::max(end_, item.offset + item.bytes);
    for (const ArenaItem& item : items_) {
      grow(item.life.last + 1);
      touched_[static_cast<size_t>(item.life.first) + 1] += static_cast<double>(item.bytes);
      touched_[static_cast<size_t>(item.life.last) + 1] += static_cast<double>(item.bytes);
    }
    std::partial_sum(touched_.begin(), touched_.end(), touched_.begin());
    by_end_.resize(items_.size());
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [&](size_t a, size_t b) { return items_[a].life.last > items_[b].life.last; });
  }

  void run() {
    std::vector<size_t> order(items_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(items_[a].life.first, -items_[a].bytes) < std::pair(items_[b].life.first, -items_[b].bytes);
    });
    for (const size_t i : order) move(items_[i]);
  }

 private:
  std::vector<ArenaItem>& items_;
  std::vector<double> touched_;  ///< bytes touched before a launch
  std::vector<size_t> by_end_;   ///< the latest first
  int64_t end_ = 0;

  void grow(int launch) {
    const auto size = static_cast<size_t>(launch) + 2;
    if (touched_.size() < size) touched_.resize(size, 0);
  }

  double touched_between(int from, int to) const {
    return touched_[static_cast<size_t>(to)] - touched_[static_cast<size_t>(from) + 1];
  }

  void move(ArenaItem& item) {
    std::vector<Range> taken;
    for (const ArenaItem& other : items_)
      if (&other != &item && other.life.first <= item.life.last && item.life.first <= other.life.last)
        taken.emplace_back(other.offset, other.offset + other.bytes);
    const auto dead = std::partition_point(by_end_.begin(), by_end_.end(),
                                           [&](size_t i) { return items_[i].life.last >= item.life.first; });
    const auto count = std::min<size_t>(static_cast<size_t>(by_end_.end() - dead), kMostBefore);
    const std::vector<size_t> before(dead, dead + static_cast<std::ptrdiff_t>(count));
    int64_t best = item.offset;
    double least = age_at(best, item, before);
    for (size_t i = 0; i < std::min(before.size(), kMostPlaces); ++i) {
      const ArenaItem& other = items_[before[i]];
      for (const int64_t at : {other.offset, other.offset + other.bytes - item.bytes}) {
        if (at < 0 || at + item.bytes > end_ || !is_free(at, item.bytes, taken)) continue;
        if (const double age = age_at(at, item, before); age < least) least = age, best = at;
      }
    }
    item.offset = best;
  }

  static bool is_free(int64_t at, int64_t bytes, const std::vector<Range>& taken) {
    return std::none_of(taken.begin(), taken.end(),
                        [&](const Range& r) { return r.first < at + bytes && at < r.second; });
  }

  /// `before`: what ended before the item begins, the latest first: a byte is as old as the first that covers it.
  double age_at(int64_t at, const ArenaItem& item, const std::vector<size_t>& before) const {
    std::vector<Range> open{{at, at + item.bytes}};
    double sum = 0;
    for (const size_t i : before) {
      if (open.empty()) break;
      const ArenaItem& other = items_[i];
      const Range covers{other.offset, other.offset + other.bytes};
      std::vector<Range> left;
      int64_t covered = 0;
      for (const auto& [from, to] : open) {
        const int64_t low = std::max(from, covers.first), high = std::min(to, covers.second);
        if (low >= high) {
          left.emplace_back(from, to);
          continue;
        }
        covered += high - low;
        if (from < low) left.emplace_back(from, low);
        if (high < to) left.emplace_back(high, to);
      }
      open = std::move(left);
      if (covered) sum += static_cast<double>(covered) * touched_between(other.life.last, item.life.first);
    }
    for (const auto& [from, to] : open) sum += static_cast<double>(to - from) * touched_.back();
    return sum;
  }
};

}  // namespace

void move_to_hot_places(std::vector<ArenaItem>& items) { Mover(items).run(); }

}  // namespace opfuse
