// Two accesses of a byte race when one writes and neither happens before the other. What orders threads of a block is
// barriers alone: the block's, and __syncwarp for a warp. (Shuffles, ldmatrix and mma synchronize no memory.) So a
// vector clock per thread is two levels: what everybody knows since the block's barrier, and what a warp's lanes know
// of each other. A byte remembers its last write, and the reads since then that no other read follows.
#include "device/shared_races.hpp"

#include <algorithm>

namespace opfuse::cuda {

void SharedRaces::start(unsigned threads, size_t bytes) {
  bytes_.assign(bytes, Byte{});
  readers_.clear();
  clock_.assign(threads, 1);
  known_.assign(threads, 0);
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
  if (b.reader == kMany) {
    std::vector<Reader>& list = readers_[b.read_at];
    std::erase_if(list, [&](const Reader& r) { return before(thread, r.thread, r.at); });
    list.push_back({static_cast<uint16_t>(thread), now});
  } else if (b.reader == 0 || before(thread, b.reader - 1u, b.read_at)) {
    b.reader = static_cast<uint16_t>(thread + 1);
    b.read_at = now;
  } else {
    readers_.push_back({{static_cast<uint16_t>(b.reader - 1), b.read_at}, {static_cast<uint16_t>(thread), now}});
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

void SharedRaces::block_barrier() {
  known_ = clock_;
  for (uint32_t& c : clock_) ++c;
}

void SharedRaces::warp_barrier(unsigned warp) {
  const size_t first = size_t{warp} * kWarp, last = std::min(first + kWarp, clock_.size());
  for (size_t t = first; t < last; ++t)
    std::copy(clock_.begin() + static_cast<std::ptrdiff_t>(first), clock_.begin() + static_cast<std::ptrdiff_t>(last),
              known_warp_.begin() + static_cast<std::ptrdiff_t>(t * kWarp));
  for (size_t t = first; t < last; ++t) ++clock_[t];
}

void SharedRaces::report(unsigned thread, const char* does, unsigned other, const char* did, size_t at) {
  found_ = "a race: thread " + std::to_string(thread) + " " + does + " byte " + std::to_string(at) +
           " of shared memory, which thread " + std::to_string(other) + " " + did + ", and no barrier orders them";
}

}  // namespace opfuse::cuda
