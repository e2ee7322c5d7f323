// Two accesses of a byte race when one writes and neither happens before the other. What orders threads of a block is
// barriers alone: the block's, and __syncwarp for a warp. (Shuffles, ldmatrix and mma synchronize no memory.) So a
// vector clock per thread is two levels: what everybody knows since the block's barrier, and what a warp's lanes know
// of each other; a third one, whole vectors, where barriers of phases or of some threads join them in any other way.
// Bulk copies are done by agents, which have clocks too. A byte remembers its last write, and the reads since then that
// no other read follows. Bytes that were touched together are kept together: a unit of 16 is one granule, halved when a
// part of it is touched, and one again when it is written as a whole.
#include "device/shared_races.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace opfuse::cuda {

void SharedRaces::start(unsigned threads, size_t bytes) {
  bytes_.resize((bytes + kUnit - 1) / kUnit * kUnit);
  for (size_t unit = 0; unit < bytes_.size(); unit += kUnit) bytes_[unit] = {};  // other parts when it is split
  split_.assign(bytes_.size() / kUnit, 0);
  nodes_.clear();
  free_nodes_ = 0;
  threads_ = threads;
  agents_ = 0;
  clock_.assign(threads + kMostAgents, 1);
  known_.assign(threads + kMostAgents, 0);
  joined_.clear();
  known_warp_.assign(size_t{threads} * kWarp, 0);
  unfenced_.resize(threads);
  for (std::vector<uint32_t>& list : unfenced_) list.clear();
  found_.clear();
}

// ---- granules ---------------------------------------------------------------------------------------------------

/// How many bytes from `at` are one granule, which an access up to `end` touches as a whole.
size_t SharedRaces::granule(size_t at, size_t end) {
  unsigned char& halved = split_[at / kUnit];
  size_t size = kUnit >> halved;
  for (; at % size || end - at < size; size /= 2) {
    split(at / kUnit * kUnit, size);
    ++halved;
  }
  return size;
}

void SharedRaces::split(size_t unit, size_t size) {
  for (size_t from = unit; from < unit + kUnit; from += size) {
    Bytes half = bytes_[from];
    const uint32_t readers = std::exchange(half.more, 0);
    for (uint32_t n = readers; n; n = nodes_[n - 1].next) half.more = new_node(nodes_[n - 1].read, half.more);
    const size_t to = from + size / 2;
    bytes_[to] = half;
    if (half.unfenced) unfenced_[half.writer - 1u].push_back(static_cast<uint32_t>(to));
  }
}

template <class Do>
void SharedRaces::each_granule(size_t at, size_t end, Do&& what) {
  while (at < end && found_.empty()) {
    const size_t size = granule(at, end);
    what(at);
    at += size;
  }
}

void SharedRaces::touch(unsigned thread, size_t at, size_t count, Access how) {
  if (how == Access::fence) return fence(thread);
  const size_t end = std::min(at + count, bytes_.size());
  if (how != Access::read && how != Access::product_reads) return write_all(thread, at, end, how);
  each_granule(at, end, [&](size_t byte) { read(thread, byte); });
  if (how != Access::product_reads) return;
  each_granule(at, end, [&](size_t byte) {
    if (bytes_[byte].unfenced)
      found_ = "a product reads byte " + std::to_string(byte) + " of shared memory, which thread " +
               std::to_string(bytes_[byte].writer - 1) + " wrote and has not fenced";
  });
}

void SharedRaces::write_all(unsigned thread, size_t at, size_t end, Access how) {
  while (at < end && found_.empty()) {
    const bool whole = at % kUnit == 0 && end - at >= kUnit;
    const size_t next = whole ? at + kUnit : at + granule(at, end), size = kUnit >> split_[at / kUnit];
    for (size_t byte = at; byte < next && found_.empty(); byte += size) write(thread, byte, how);
    if (whole && found_.empty()) split_[at / kUnit] = 0;
    at = next;
  }
}

void SharedRaces::fence(unsigned thread) {
  for (uint32_t at : unfenced_[thread])
    if (bytes_[at].writer == thread + 1) bytes_[at].unfenced = false;
  unfenced_[thread].clear();
}

void SharedRaces::stays_unfenced(unsigned thread, size_t at) {
  bytes_[at].unfenced = true;
  unfenced_[thread].push_back(static_cast<uint32_t>(at));
}

// ---- readers ----------------------------------------------------------------------------------------------------

uint32_t SharedRaces::new_node(const Readers& read, uint32_t next) {
  if (!free_nodes_) {
    nodes_.push_back({read, next});
    return static_cast<uint32_t>(nodes_.size());
  }
  const uint32_t node = free_nodes_;
  free_nodes_ = nodes_[node - 1].next;
  nodes_[node - 1] = {read, next};
  return node;
}

/// The one behind it.
uint32_t SharedRaces::free_node(uint32_t node) {
  return std::exchange(nodes_[node - 1].next, std::exchange(free_nodes_, node));
}

void SharedRaces::forget_readers(Bytes& b) {
  while (b.more) b.more = free_node(b.more);
  b.read = {};
}

bool SharedRaces::all_before(unsigned thread, const Readers& readers) const {
  for (uint32_t left = readers.lanes; left; left &= left - 1)
    if (!before(thread, readers.warp * kWarp + static_cast<unsigned>(std::countr_zero(left)), readers.at)) return false;
  return true;
}

void SharedRaces::read(unsigned thread, size_t at) {
  const Bytes& b = bytes_[at];
  const uint32_t now = clock_[thread];
  if (b.read.at == now && b.read.warp == thread / kWarp && b.read.lanes >> thread % kWarp & 1)
    return;  // any write since then would have cleared it
  if (b.writer && b.written_at == kUnderWay) return report(thread, "reads", b.writer - 1u, "copies to", at);
  if (b.writer && !before(thread, b.writer - 1u, b.written_at))
    return report(thread, "reads", b.writer - 1u, "writes", at);
  add_reader(thread, thread, now, at);
}

/// `reader` reads, on behalf of `thread`; the reads that are before it are forgotten.
void SharedRaces::add_reader(unsigned thread, unsigned reader, uint32_t clock, size_t at) {
  Bytes& b = bytes_[at];
  const Readers own{clock, 1u << reader % kWarp, reader / kWarp};
  const auto joins = [&](Readers& r) {
    const bool same = r.lanes && r.at == own.at && r.warp == own.warp;
    if (same) r.lanes |= own.lanes;
    return same;
  };
  if (joins(b.read)) return;
  for (uint32_t n = b.more; n; n = nodes_[n - 1].next)
    if (joins(nodes_[n - 1].read)) return;
  uint32_t kept = 0;
  for (uint32_t n = b.more; n;) {
    const uint32_t next = nodes_[n - 1].next;
    if (all_before(thread, nodes_[n - 1].read))
      free_node(n);
    else
      nodes_[n - 1].next = std::exchange(kept, n);
    n = next;
  }
  if (!all_before(thread, b.read)) kept = new_node(b.read, kept);
  b.more = kept;
  b.read = own;
}

void SharedRaces::write(unsigned thread, size_t at, Access how) {
  Bytes& b = bytes_[at];
  const char* does = how == Access::write ? "writes" : "copies to";
  if (how == Access::copy_ends) {
    b.written_at = clock_[thread];
    return stays_unfenced(thread, at);
  }
  if (b.writer && b.written_at == kUnderWay) return report(thread, does, b.writer - 1u, "copies to", at);
  if (b.writer && !before(thread, b.writer - 1u, b.written_at))
    return report(thread, does, b.writer - 1u, "writes", at);
  Readers readers = b.read;
  for (uint32_t n = b.more;; n = nodes_[n - 1].next) {
    for (uint32_t left = readers.lanes; left; left &= left - 1) {
      const unsigned other = readers.warp * kWarp + static_cast<unsigned>(std::countr_zero(left));
      if (!before(thread, other, readers.at)) return report(thread, does, other, "reads", at);
    }
    if (!n) break;
    readers = nodes_[n - 1].read;
  }
  const bool known = b.unfenced && b.writer == thread + 1;
  forget_readers(b);
  b.written_at = how == Access::write ? clock_[thread] : kUnderWay;
  b.writer = static_cast<uint16_t>(thread + 1);
  b.unfenced = known;
  if (how == Access::write && !known) stays_unfenced(thread, at);
}

uint32_t SharedRaces::knows(unsigned thread, unsigned other) const {
  if (other == thread) return clock_[thread];
  uint32_t known = known_[other];
  if (other < threads_ && thread / kWarp == other / kWarp)
    known = std::max(known, known_warp_[size_t{thread} * kWarp + other % kWarp]);
  return joined_.empty() ? known : std::max(known, joined_[size_t{thread} * clock_.size() + other]);
}

void SharedRaces::release(unsigned thread, Clocks& into) {
  into.resize(clock_.size(), 0);
  for (unsigned other = 0; other < threads_ + agents_; ++other)
    into[other] = std::max(into[other], knows(thread, other));
  ++clock_[thread];
}

void SharedRaces::acquire(unsigned thread, const Clocks& from) {
  if (joined_.empty()) joined_.assign(size_t{threads_} * clock_.size(), 0);
  uint32_t* own = joined_.data() + size_t{thread} * clock_.size();
  for (size_t other = 0; other < from.size(); ++other) own[other] = std::max(own[other], from[other]);
}

void SharedRaces::block_barrier() {
  for (unsigned agent = threads_; !joined_.empty() && agent < threads_ + agents_; ++agent)
    for (unsigned t = 0; t < threads_; ++t) known_[agent] = std::max(known_[agent], knows(t, agent));
  for (unsigned t = 0; t < threads_; ++t) known_[t] = clock_[t]++;
}

void SharedRaces::warp_barrier(unsigned warp) {
  const size_t first = size_t{warp} * kWarp, last = std::min(first + kWarp, clock_.size());
  for (size_t t = first; t < last; ++t)
    std::copy(clock_.begin() + static_cast<std::ptrdiff_t>(first), clock_.begin() + static_cast<std::ptrdiff_t>(last),
              known_warp_.begin() + static_cast<std::ptrdiff_t>(t * kWarp));
  for (size_t t = first; t < last; ++t) ++clock_[t];
  if (joined_.empty()) return;
  Clocks all(clock_.size(), 0);
  for (size_t t = first; t < last; ++t)
    for (size_t other = 0; other < all.size(); ++other)
      all[other] = std::max(all[other], joined_[t * all.size() + other]);
  for (size_t t = first; t < last; ++t) acquire(static_cast<unsigned>(t), all);
}

// ---- bulk copies ------------------------------------------------------------------------------------------------

unsigned SharedRaces::add_agent() {
  if (agents_ == kMostAgents) found_ = "more barriers of phases, and threads that store boxes, than are emulated";
  return threads_ + std::min(agents_++, kMostAgents - 1);
}

void SharedRaces::bulk_copy_begins(unsigned thread, unsigned agent, size_t at, size_t count) {
  const size_t end = std::min(at + count, bytes_.size());
  write_all(thread, at, end, Access::copy_begins);
  each_granule(at, end, [&](size_t byte) {
    bytes_[byte].writer = static_cast<uint16_t>(agent + 1);
    bytes_[byte].unfenced = false;
  });
}

void SharedRaces::bulk_copy_lands(unsigned agent, uint32_t clock, size_t at, size_t count) {
  each_granule(at, std::min(at + count, bytes_.size()), [&](size_t byte) {
    if (bytes_[byte].writer == agent + 1) bytes_[byte].written_at = clock;
  });
}

void SharedRaces::bulk_store_reads(unsigned thread, unsigned agent, uint32_t clock, size_t at, size_t count) {
  each_granule(at, std::min(at + count, bytes_.size()), [&](size_t byte) {
    const Bytes& b = bytes_[byte];
    if (b.writer && (b.written_at == kUnderWay || !before(thread, b.writer - 1u, b.written_at)))
      return report(thread, "stores a box with", b.writer - 1u, b.written_at == kUnderWay ? "copies to" : "writes",
                    byte);
    if (b.unfenced)
      found_ = "a box is stored with byte " + std::to_string(byte) + " of shared memory, which " +
               name_of(b.writer - 1u) + " wrote and has not fenced";
    else
      add_reader(thread, agent, clock, byte);
  });
}

std::string SharedRaces::name_of(unsigned who) const {
  return (who < threads_ ? "thread " : "the copy engine, agent ") +
         std::to_string(who < threads_ ? who : who - threads_);
}

void SharedRaces::report(unsigned thread, const char* does, unsigned other, const char* did, size_t at) {
  found_ = "a race: thread " + std::to_string(thread) + " " + does + " byte " + std::to_string(at) +
           " of shared memory, which " + name_of(other) + " " + did + ", and no barrier orders them";
}

}  // namespace opfuse::cuda
