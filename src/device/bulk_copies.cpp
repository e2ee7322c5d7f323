// A box lands as rows of 128 bytes, whose 16-byte places the swizzle XORs with the row's number (bits 4 to 6 of an
// address with bits 7 to 9). An image's pixels are those that a window's corner visits, row by row, image by image; the
// window's element is added to each. What lies outside of the tensor is zero, and is counted as if it had been copied.
#include "device/bulk_copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace opfuse::cuda {
namespace {

constexpr size_t kRow = 128, kSwizzled = 1024;
constexpr int kMostArrivals = (1 << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;

size_t swizzled(size_t at) { return at ^ ((at >> 7 & 7) << 4); }

}  // namespace

void BulkCopies::start(SharedRaces& races, unsigned char* memory, size_t bytes, size_t first, uint64_t lot) {
  races_ = &races;
  memory_ = memory;
  bytes_ = bytes;
  first_ = first;
  way_ = lot % 3;
  random_ = lot * 0x9E3779B97F4A7C15u + 7;
  barriers_.clear();
  copies_.clear();
  stores_.clear();
  changed_ = false;
  found_.clear();
}

void BulkCopies::wrong(const std::string& why) {
  if (found_.empty()) found_ = why;
}

uint64_t BulkCopies::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

bool BulkCopies::take_changed() { return std::exchange(changed_, false); }

size_t BulkCopies::offset_of(const void* p, size_t bytes, const char* what) {
  const auto* at = static_cast<const unsigned char*>(p);
  if (at >= memory_ && at + bytes <= memory_ + bytes_) return static_cast<size_t>(at - memory_);
  wrong(std::string(what) + " outside of the shared memory of the launch");
  return 0;
}

// ---- barriers of phases -------------------------------------------------------------------------------------------

BulkCopies::Barrier* BulkCopies::barrier(const void* at) {
  const auto found = barriers_.find(offset_of(at, 8, "a barrier"));
  if (found != barriers_.end()) return &found->second;
  wrong("a barrier that nobody has made");
  return nullptr;
}

void BulkCopies::make_barrier(unsigned thread, const void* at, int arrivals) {
  const size_t offset = offset_of(at, 8, "a barrier");
  if (offset % 8 || arrivals <= 0 || arrivals > kMostArrivals) return wrong("a barrier of no phase that there is");
  races_->touch(thread, first_ + offset, 8, SharedRaces::Access::write);
  Barrier b;
  b.arrivals = b.pending = arrivals;
  b.agent = races_->add_agent();
  b.maker = thread;
  races_->release(thread, b.gathered);
  if (!barriers_.emplace(offset, b).second) wrong("a barrier is made twice");
}

void BulkCopies::barriers_are_visible(unsigned thread) {
  for (auto& [offset, b] : barriers_) b.visible |= b.maker == thread;
}

void BulkCopies::settle(Barrier& b) {
  if (b.pending > 0 || b.bytes != 0) return;
  b.phase ^= 1;
  ++b.ended;
  b.gathered.resize(std::max<size_t>(b.gathered.size(), b.agent + 1), 0);
  b.gathered[b.agent] = b.ended;
  b.last = b.gathered;
  b.pending = b.arrivals;
  changed_ = true;
}

/// Who makes a barrier is before whoever uses it, and some barrier of the block says so.
void BulkCopies::use(unsigned thread, Barrier& b, const void* at) {
  if (b.users.insert(thread).second)
    races_->touch(thread, first_ + offset_of(at, 8, "a barrier"), 8, SharedRaces::Access::read);
}

void BulkCopies::arrive(unsigned thread, const void* at, int64_t bytes) {
  Barrier* b = barrier(at);
  if (!b) return;
  use(thread, *b, at);
  if (b->pending == 0) return wrong("more arrivals at a barrier than its phase has");
  b->bytes += bytes;
  if (b->bytes > kMostBytes) return wrong("more bytes expected than a barrier counts");
  --b->pending;
  races_->release(thread, b->gathered);
  settle(*b);
}

bool BulkCopies::passed(const void* at, int parity) {
  const Barrier* b = barrier(at);
  return !b || b->phase != parity;
}

void BulkCopies::acquire(unsigned thread, const void* at) {
  Barrier* b = barrier(at);
  if (!b) return;
  use(thread, *b, at);
  if (!b->last.empty()) races_->acquire(thread, b->last);
}

// ---- copies -------------------------------------------------------------------------------------------------------

bool BulkCopies::read_map(const void* map, const Place& place, EmulatedMap& into) {
  std::memcpy(&into, map, sizeof into);
  if (into.magic != EmulatedMap::kMagic)
    wrong("a tensor map that no driver has encoded");
  else if (place.rank != into.rank)
    wrong("a box of " + std::to_string(place.rank) + " coordinates of a tensor map of " + std::to_string(into.rank));
  else if (into.box[0] * into.strides[0] != kRow)
    wrong("a box whose rows are not 128 bytes");
  return found_.empty();
}

/// Calls row(number, address of its first element or 0 where it lies outside, elements of it inside, first of them).
template <class F>
void BulkCopies::each_row(const Copy& c, F&& row) const {
  const EmulatedMap& m = c.map;
  size_t rows = m.image ? m.box[1] : 1;
  for (int d = 1; !m.image && d < m.rank; ++d) rows *= m.box[d];
  int64_t at[5] = {};
  std::copy(c.place.at, c.place.at + m.rank, at);
  for (size_t r = 0; r < rows; ++r) {
    uint64_t address = m.address;
    bool inside = true;
    for (int d = 1; d < m.rank; ++d) {
      const int64_t window = m.image && d + 1 < m.rank ? c.place.window[d - 1] : 0, i = at[d] + window;
      inside = inside && i >= 0 && i < m.sizes[d];
      address += static_cast<uint64_t>(i) * m.strides[d];
    }
    row(r, inside ? address : 0);
    for (int d = 1; d < m.rank; ++d) {
      const bool moving = m.image && d + 1 < m.rank;
      at[d] += m.image && moving ? m.steps[d] : 1;
      const int64_t end = moving    ? int64_t{m.sizes[d]} - 1 + m.high[d - 1]
                          : m.image ? INT64_MAX
                                    : int64_t{c.place.at[d]} + m.box[d] - 1;
      if (at[d] <= end) break;
      at[d] = moving ? m.low[d - 1] : c.place.at[d];
    }
  }
}

void BulkCopies::load(unsigned thread, void* to, const void* map, const Place& place, const void* at) {
  Copy c;
  c.place = place;
  c.thread = thread;
  Barrier* b = barrier(at);
  if (!b || !read_map(map, place, c.map)) return;
  if (!b->visible) return wrong("a copy counts on a barrier that is not visible to the copy engine");
  const size_t rows = c.map.image ? c.map.box[1] : [&] {
    size_t count = 1;
    for (int d = 1; d < c.map.rank; ++d) count *= c.map.box[d];
    return count;
  }();
  c.at = offset_of(to, rows * kRow, "a box");
  if (c.at % kSwizzled) return wrong("a swizzled box that does not start at a multiple of 1024 bytes");
  c.barrier = offset_of(at, 8, "a barrier");
  races_->bulk_copy_begins(thread, b->agent, first_ + c.at, rows * kRow);
  give(c);
}

void BulkCopies::store(unsigned thread, const void* map, const Place& place, const void* from) {
  Copy c;
  c.place = place;
  c.thread = thread;
  c.store = true;
  if (!read_map(map, place, c.map)) return;
  if (c.map.image) return wrong("a box stored to an image");
  size_t rows = 1;
  for (int d = 1; d < c.map.rank; ++d) rows *= c.map.box[d];
  c.at = offset_of(from, rows * kRow, "a box");
  if (c.at % kSwizzled) return wrong("a swizzled box that does not start at a multiple of 1024 bytes");
  Stores& own = stores_[thread];
  if (own.agent == 0) own.agent = races_->add_agent();
  c.group = own.group;
  own.last = own.group;
  races_->bulk_store_reads(thread, own.agent, own.group, first_ + c.at, rows * kRow);
  give(c);
}

void BulkCopies::give(Copy copy) {
  copies_.push_back(std::move(copy));
  if (way_ == 1) land(copies_.size() - 1);
}

void BulkCopies::commit(unsigned thread) {
  if (auto own = stores_.find(thread); own != stores_.end()) ++own->second.group;
}

bool BulkCopies::stored(unsigned thread, int pending) {
  const auto own = stores_.find(thread);
  if (own == stores_.end()) return true;
  const int64_t last = int64_t{own->second.group} - 1 - pending;  // groups up to this one must have been read
  for (size_t i = 0; i < copies_.size(); ++i)
    if (copies_[i].store && copies_[i].thread == thread && copies_[i].group <= last) {
      land(i);
      return false;
    }
  if (last > 0) {
    own->second.waited = static_cast<uint32_t>(last);
    SharedRaces::Clocks known(own->second.agent + 1, 0);
    known[own->second.agent] = static_cast<uint32_t>(last);
    races_->acquire(thread, known);
  }
  return true;
}

void BulkCopies::land_one() {
  std::vector<size_t> loads;
  for (size_t i = 0; i < copies_.size(); ++i)
    if (!copies_[i].store) loads.push_back(i);
  land(loads.empty() ? draw() % copies_.size() : loads[draw() % loads.size()]);
}

void BulkCopies::land_some() {
  if (way_ == 2 && !copies_.empty() && draw() % 64 == 0) land(draw() % copies_.size());
}

void BulkCopies::land(size_t index) {
  const Copy c = copies_[index];
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(index));
  const size_t element = c.map.strides[0];
  size_t rows = 0;
  each_row(c, [&](size_t r, uint64_t address) {
    ++rows;
    for (size_t e = 0; e < kRow / element; ++e) {
      const int64_t column = c.place.at[0] + static_cast<int64_t>(e);
      const bool inside = address != 0 && column >= 0 && column < c.map.sizes[0];
      unsigned char* shared = memory_ + swizzled(c.at + r * kRow + e * element);
      auto* global = reinterpret_cast<unsigned char*>(
          static_cast<uintptr_t>(inside ? address + static_cast<uint64_t>(column) * element : 0));
      if (c.store && inside) std::memcpy(global, shared, element);
      if (!c.store && inside) std::memcpy(shared, global, element);
      if (!c.store && !inside) std::memset(shared, 0, element);
    }
  });
  if (c.store) return;
  Barrier& b = barriers_.at(c.barrier);
  races_->bulk_copy_lands(b.agent, b.ended + 1, first_ + c.at, rows * kRow);
  b.bytes -= static_cast<int64_t>(rows * kRow);
  if (b.bytes < -kMostBytes) wrong("more bytes copied than a barrier counts");
  settle(b);
}

void BulkCopies::finish() {
  for (const auto& [thread, own] : stores_)
    if (own.waited < own.last) wrong("the block ends while a box is stored from its shared memory");
  if (!copies_.empty()) wrong("the block ends while a copy to its shared memory is under way");
}

}  // namespace opfuse::cuda
