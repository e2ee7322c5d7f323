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
    order_.resize(items_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::pair(items_[a].life.first, -items_[a].bytes) < std::pair(items_[b].life.first, -items_[b].bytes);
    });
    for (size_t at = 0; at < order_.size(); ++at) {
      move(at);
      alive_.push_back(order_[at]);
    }
  }

 private:
  std::vector<ArenaItem>& items_;
  std::vector<double> touched_;  ///< bytes touched before a launch
  std::vector<size_t> by_end_;   ///< the latest first
  std::vector<size_t> order_;    ///< the earliest first
  std::vector<size_t> alive_;    ///< begin before the one that is moved, and some that have ended
  int64_t end_ = 0;

  void grow(int launch) {
    const auto size = static_cast<size_t>(launch) + 2;
    if (touched_.size() < size) touched_.resize(size, 0);
  }

  double touched_between(int from, int to) const {
    return touched_[static_cast<size_t>(to)] - touched_[static_cast<size_t>(from) + 1];
  }

  /// What lies where while the item of a position lives, joined, the lowest first.
  std::vector<Range> taken_beside(size_t position) {
    const Lifetime life = items_[order_[position]].life;
    std::erase_if(alive_, [&](size_t i) { return items_[i].life.last < life.first; });
    std::vector<Range> taken;
    const auto take = [&](size_t i) { taken.emplace_back(items_[i].offset, items_[i].offset + items_[i].bytes); };
    for (const size_t i : alive_) take(i);
    for (size_t next = position + 1; next < order_.size() && items_[order_[next]].life.first <= life.last; ++next)
      take(order_[next]);
    std::sort(taken.begin(), taken.end());
    size_t joined = 0;
    for (const Range& range : taken)
      if (joined > 0 && range.first <= taken[joined - 1].second)
        taken[joined - 1].second = std::max(taken[joined - 1].second, range.second);
      else
        taken[joined++] = range;
    taken.resize(joined);
    return taken;
  }

  void move(size_t position) {
    ArenaItem& item = items_[order_[position]];
    const auto dead = std::partition_point(by_end_.begin(), by_end_.end(),
                                           [&](size_t i) { return items_[i].life.last >= item.life.first; });
    if (dead == by_end_.end()) return;
    const auto count = std::min<size_t>(static_cast<size_t>(by_end_.end() - dead), kMostBefore);
    const std::vector<size_t> before(dead, dead + static_cast<std::ptrdiff_t>(count));
    const std::vector<Range> taken = taken_beside(position);
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
    const auto next = std::partition_point(taken.begin(), taken.end(), [&](const Range& r) { return r.second <= at; });
    return next == taken.end() || next->first >= at + bytes;
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
