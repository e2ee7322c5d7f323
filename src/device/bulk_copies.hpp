// The copy engine of an emulated block (TMA), and the barriers of phases (mbarrier) that count its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/emulated_map.hpp"
#include "device/shared_races.hpp"

namespace opfuse::cuda {

class BulkCopies {
 public:
  /// A block begins. `memory`: the shared memory that its launch gives, whose first byte is number `first` of those
  /// that `races` knows. `lot` decides when copies land: all as late as can be, at once, or each at a time of its own.
  void start(SharedRaces& races, unsigned char* memory, size_t bytes, size_t first, uint64_t lot);

  void make_barrier(unsigned thread, const void* barrier, int arrivals);
  /// Barriers that `thread` has made may be given to copies from now on.
  void barriers_are_visible(unsigned thread);
  /// One arrival; `bytes` of copies more are expected in this phase.
  void arrive(unsigned thread, const void* barrier, int64_t bytes);
  /// Whether the phase of that parity is over.
  bool passed(const void* barrier, int parity);
  /// `thread` has waited for the barrier's last phase.
  void acquire(unsigned thread, const void* barrier);

  struct Place {
    int at[5];
    unsigned short window[3];  ///< of an image: which element of the window
    int rank;
  };
  void load(unsigned thread, void* to, const void* map, const Place& place, const void* barrier);
  void store(unsigned thread, const void* map, const Place& place, const void* from);
  void commit(unsigned thread);
  /// Whether at most `pending` groups of the thread's stores still read shared memory; where not, one is brought on.
  bool stored(unsigned thread, int pending);

  bool under_way() const { return !copies_.empty(); }
  /// Some copy lands; `any`: one that nobody waits for alone may wait longer.
  void land_one();
  /// By lot, now and then.
  void land_some();
  /// A phase has ended since this was last asked.
  bool take_changed();
  /// At the block's end.
  void finish();
  /// What is wrong, in words; empty: nothing.
  const std::string& found() const { return found_; }

 private:
  struct Barrier {
    int arrivals = 0, pending = 0, phase = 0;
    int64_t bytes = 0;
    unsigned agent = 0, maker = 0;
    uint32_t ended = 0;  ///< phases; the clock of its copies
    bool visible = false;
    std::set<unsigned> users;
    SharedRaces::Clocks gathered, last;  ///< of those who have arrived; of the phase that ended last
  };
  struct Copy {
    EmulatedMap map;
    Place place;
    size_t at;  ///< in shared memory
    size_t barrier = 0;
    bool store = false;
    unsigned thread = 0;
    uint32_t group = 0;
  };
  struct Stores {
    unsigned agent = 0;
    uint32_t group = 1, last = 0, waited = 0;  ///< the one that is open, the last with a box, the last waited for
  };
  SharedRaces* races_ = nullptr;
  unsigned char* memory_ = nullptr;
  size_t bytes_ = 0, first_ = 0;
  uint64_t way_ = 0, random_ = 1;
  std::map<size_t, Barrier> barriers_;
  std::vector<Copy> copies_;
  std::map<unsigned, Stores> stores_;
  bool changed_ = false;
  std::string found_;

  void wrong(const std::string& why);
  uint64_t draw();
  Barrier* barrier(const void* at);
  void use(unsigned thread, Barrier& b, const void* at);
  size_t offset_of(const void* p, size_t bytes, const char* what);
  bool read_map(const void* map, const Place& place, EmulatedMap& into);
  void settle(Barrier& b);
  void land(size_t index);
  void give(Copy copy);
  template <class F>
  void each_row(const Copy& copy, F&& row) const;
};

}  // namespace opfuse::cuda
