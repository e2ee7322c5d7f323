// The fastest few of many choices, by predicted time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace opfuse {

template <class T>
struct Ranked {
  double cycles = 0;  ///< predicted; comparable within one list
  T choice;
};

/// Keeps `most` of those that are offered, the fastest first; of equal ones the one that came first.
template <class T>
class Fastest {
 public:
  explicit Fastest(size_t most) : most_(most) {}

  void offer(double cycles, T choice) {
    const auto behind = std::upper_bound(all_.begin(), all_.end(), cycles,
                                         [](double c, const Ranked<T>& other) { return c < other.cycles; });
    if (static_cast<size_t>(behind - all_.begin()) >= most_) return;
    all_.insert(behind, {cycles, std::move(choice)});
    if (all_.size() > most_) all_.pop_back();
  }
  bool empty() const { return all_.empty(); }
  const T& best() const { return all_.front().choice; }
  const std::vector<Ranked<T>>& all() const { return all_; }

 private:
  size_t most_;
  std::vector<Ranked<T>> all_;
};

}  // namespace opfuse
