// Happens-before on the shared memory of one emulated block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opfuse::cuda {

/// Who read and wrote each byte, and when by that thread's clock. Told of every access and barrier; says which two
/// accesses no barrier orders, in whatever order the emulation ran them.
class SharedRaces {
 public:
  enum class Access { read, write, copy_begins, copy_ends, product_reads, fence };
  /// A block of `threads` begins; `bytes` of shared memory.
  void start(unsigned threads, size_t bytes);
  /// `thread` touches bytes [at, at + count). An asynchronous copy writes at any time from copy_begins to copy_ends,
  /// which is the end of the wait for it. Products read what its writer has fenced since; a fence touches nothing.
  void touch(unsigned thread, size_t at, size_t count, Access how);
  void block_barrier();
  void warp_barrier(unsigned warp);

  /// What each thread and agent has done as far as somebody knows, by their clocks.
  using Clocks = std::vector<uint32_t>;
  /// `thread` lets others know what it knows: at a barrier of phases, or of some of the block's threads.
  void release(unsigned thread, Clocks& into);
  void acquire(unsigned thread, const Clocks& from);
  /// Somebody who is no thread and copies: what counts on one barrier of phases, or what one thread has stored.
  unsigned add_agent();
  /// On behalf of `thread`, `agent` copies to these bytes from now on; they have landed, at its clock `at`.
  void bulk_copy_begins(unsigned thread, unsigned agent, size_t at, size_t count);
  void bulk_copy_lands(unsigned agent, uint32_t clock, size_t at, size_t count);
  /// On behalf of `thread`, `agent` reads these bytes until those who know its clock.
  void bulk_store_reads(unsigned thread, unsigned agent, uint32_t clock, size_t at, size_t count);
  /// The first race, in words; empty: none.
  const std::string& found() const { return found_; }

 private:
  static constexpr unsigned kWarp = 32, kMostAgents = 96;
  static constexpr uint32_t kUnderWay = 0xFFFFFFFF;  ///< as a clock: written by a copy that nobody has waited for
  static constexpr size_t kUnit = 16;                ///< bytes
  /// Lanes of one warp (of agents: of 32 agents) that read at the same clock.
  struct Readers {
    uint32_t at = 0, lanes = 0;  ///< no lanes: nobody
    uint32_t warp = 0;
  };
  struct Bytes {
    uint32_t written_at = 0, more = 0;  ///< more: 1 + the place in nodes_ of further readers
    Readers read;
    uint16_t writer = 0;    ///< thread + 1; 0: nobody
    bool unfenced = false;  ///< the writer has not fenced it since
  };
  struct Node {
    Readers read;
    uint32_t next = 0;
  };
  std::vector<Bytes> bytes_;          ///< that of a granule's first byte stands for all of them
  std::vector<unsigned char> split_;  ///< how often each unit was halved into granules
  std::vector<Node> nodes_;
  uint32_t free_nodes_ = 0;
  unsigned threads_ = 0, agents_ = 0;
  std::vector<uint32_t> clock_;       ///< of each thread: steps on at each barrier it passes; of agents: unused
  std::vector<uint32_t> known_;       ///< clocks that all threads know of, since the block's last barrier
  std::vector<uint32_t> joined_;      ///< [thread][thread or agent]: clocks that were acquired; empty: none ever was
  std::vector<uint32_t> known_warp_;  ///< [thread][lane]: clocks of its warp, since the warp's last barrier
  std::vector<std::vector<uint32_t>> unfenced_;  ///< bytes that each thread wrote since its last fence
  std::string found_;

  bool before(unsigned thread, unsigned other, uint32_t at) const {
    return thread == other || at <= known_[other] ||
           (other < threads_ && thread / kWarp == other / kWarp &&
            at <= known_warp_[size_t{thread} * kWarp + other % kWarp]) ||
           (!joined_.empty() && at <= joined_[size_t{thread} * clock_.size() + other]);
  }
  uint32_t knows(unsigned thread, unsigned other) const;
  bool all_before(unsigned thread, const Readers& readers) const;
  void add_reader(unsigned thread, unsigned reader, uint32_t clock, size_t at);
  uint32_t new_node(const Readers& read, uint32_t next);
  uint32_t free_node(uint32_t node);
  void forget_readers(Bytes& b);
  size_t granule(size_t at, size_t end);
  void split(size_t unit, size_t size);
  template <class Do>
  void each_granule(size_t at, size_t end, Do&& what);
  std::string name_of(unsigned who) const;
  void read(unsigned thread, size_t at);
  void write(unsigned thread, size_t at, Access how);
  void write_all(unsigned thread, size_t at, size_t end, Access how);
  void fence(unsigned thread);
  void stays_unfenced(unsigned thread, size_t at);
  void report(unsigned thread, const char* does, unsigned other, const char* did, size_t at);
};

}  // namespace opfuse::cuda
