// Two accesses of a byte race when one writes and neither happens before the other. What orders threads of a block is
// barriers alone: the block's, and __syncwarp for a warp. (Shuffles, ldmatrix and mma synchronize no memory.) So a
// vector clock per thread is two levels: what everybody knows since the block's barrier, and what a warp's lanes know
// of each other; a third one, whole vectors, where barriers of phases or of some threads join them in any other way.
// Bulk copies are done by agents, which have clocks too. A byte remembers its last write, and the reads since then that
// no other read follows.
#include "device/shared_races.hpp"

#include <algorithm>

namespace opfuse::cuda {

void SharedRaces::start(unsigned threads, size_t bytes) {
  bytes_.assign(bytes, Byte{});
  readers_.clear();
  threads_ = threads;
  agents_ = 0;
  clock_.assign(threads + kMostAgents, 1);
  known_.assign(threads + kMostAgents, 0);
  joined_.clear();
  known_warp_.assign(size_t{threads} * kWarp, 0);
  unfenced_.assign(threads, {});
  found_.clear();
}

void SharedRaces::touch(unsigned thread, size_t at, size_t count, Access how) {
  if (how == Access::fence) return fence(thread);
  const size_t end = std::min(at + count, bytes_.size());
  for (; at < end && found_.empty(); ++at)
    if (how == Access::read || how == Access::product_reads)
      read(thread, at);
    else
      write(thread, at, how);
  if (how != Access::product_reads || !found_.empty()) return;
  for (at = end - std::min(count, end); at < end; ++at)
    if (bytes_[at].unfenced) {
      found_ = "a product reads byte " + std::to_string(at) + " of shared memory, which thread " +
               std::to_string(bytes_[at].writer - 1) + " wrote and has not fenced";
      return;
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

void SharedRaces::read(unsigned thread, size_t at) {
  Byte& b = bytes_[at];
  const uint32_t now = clock_[thread];
  if (b.reader == thread + 1 && b.read_at == now) return;  // any write since then would have cleared it
  if (b.writer && b.written_at == kUnderWay) return report(thread, "reads", b.writer - 1u, "copies to", at);
  if (b.writer && !before(thread, b.writer - 1u, b.written_at))
    return report(thread, "reads", b.writer - 1u, "writes", at);
  add_reader(thread, thread, now, at);
}

/// `reader` reads, on behalf of `thread`; the reads that are before it are forgotten.
void SharedRaces::add_reader(unsigned thread, unsigned reader, uint32_t clock, size_t at) {
  Byte& b = bytes_[at];
  if (b.reader == kMany) {
    std::vector<Reader>& list = readers_[b.read_at];
    std::erase_if(list, [&](const Reader& r) { return before(thread, r.thread, r.at); });
    list.push_back({static_cast<uint16_t>(reader), clock});
  } else if (b.reader == 0 || before(thread, b.reader - 1u, b.read_at)) {
    b.reader = static_cast<uint16_t>(reader + 1);
    b.read_at = clock;
  } else {
    readers_.push_back({{static_cast<uint16_t>(b.reader - 1), b.read_at}, {static_cast<uint16_t>(reader), clock}});
    b.reader = kMany;
    b.read_at = static_cast<uint32_t>(readers_.size() - 1);
  }
}

void SharedRaces::write(unsigned thread, size_t at, Access how) {
  Byte& b = bytes_[at];
  const char* does = how == Access::write ? "writes" : "copies to";
  if (how == Access::copy_ends) {
    b.written_at = clock_[thread];
    return stays_unfenced(thread, at);
  }
  if (b.writer && b.written_at == kUnderWay) return report(thread, does, b.writer - 1u, "copies to", at);
  if (b.writer && !before(thread, b.writer - 1u, b.written_at))
    return report(thread, does, b.writer - 1u, "writes", at);
  if (b.reader == kMany) {
    for (const Reader& r : readers_[b.read_at])
      if (!before(thread, r.thread, r.at)) return report(thread, does, r.thread, "reads", at);
  } else if (b.reader && !before(thread, b.reader - 1u, b.read_at)) {
    return report(thread, does, b.reader - 1u, "reads", at);
  }
  const bool known = b.unfenced && b.writer == thread + 1;
  b = {how == Access::write ? clock_[thread] : kUnderWay, 0, static_cast<uint16_t>(thread + 1), 0, known};
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
  for (const size_t end = std::min(at + count, bytes_.size()); at < end && found_.empty(); ++at) {
    write(thread, at, Access::copy_begins);
    if (found_.empty()) bytes_[at] = {kUnderWay, 0, static_cast<uint16_t>(agent + 1), 0, false};
  }
}

void SharedRaces::bulk_copy_lands(unsigned agent, uint32_t clock, size_t at, size_t count) {
  for (const size_t end = std::min(at + count, bytes_.size()); at < end; ++at)
    if (bytes_[at].writer == agent + 1) bytes_[at].written_at = clock;
}

void SharedRaces::bulk_store_reads(unsigned thread, unsigned agent, uint32_t clock, size_t at, size_t count) {
  for (const size_t end = std::min(at + count, bytes_.size()); at < end && found_.empty(); ++at) {
    const Byte& b = bytes_[at];
    if (b.writer && (b.written_at == kUnderWay || !before(thread, b.writer - 1u, b.written_at)))
      return report(thread, "stores a box with", b.writer - 1u, b.written_at == kUnderWay ? "copies to" : "writes", at);
    if (b.unfenced) {
      found_ = "a box is stored with byte " + std::to_string(at) + " of shared memory, which " +
               name_of(b.writer - 1u) + " wrote and has not fenced";
      return;
    }
    add_reader(thread, agent, clock, at);
  }
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
