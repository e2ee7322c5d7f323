// Coordinates through the layout: outer axes in order, then blocks from the outermost, each with its stride. Rows of
// the first axis run in parallel.
#include "tensor/strided_access.hpp"

#include <atomic>
#include <cstring>

#include "base/parallel.hpp"

namespace opfuse {

int64_t StridedAccess::offset(const std::vector<int64_t>& coords) const {
  int64_t offset = 0;
  size_t at = 0;
  for (int axis : layout_.order) offset += coords[static_cast<size_t>(axis)] / layout_.block_of(axis) * strides_[at++];
  for (size_t b = 0; b < layout_.blocks.size(); ++b) {
    const Block& block = layout_.blocks[b];
    int64_t inner = 1;  // extent of the blocks of this axis further in
    for (size_t later = b + 1; later < layout_.blocks.size(); ++later)
      if (layout_.blocks[later].axis == block.axis) inner *= layout_.blocks[later].factor;
    offset += coords[static_cast<size_t>(block.axis)] / inner % block.factor * strides_[at++];
  }
  return offset;
}

template <class Visit>
void StridedAccess::each(const std::vector<int64_t>& extents, Visit visit) const {
  int64_t inner = 1;
  for (size_t i = 1; i < extents.size(); ++i) inner *= extents[i];
  parallel_for(extents.empty() ? 1 : extents[0], [&](int64_t outer) {
    std::vector<int64_t> coords(extents.size(), 0);
    if (!coords.empty()) coords[0] = outer;
    for (int64_t i = 0; i < inner; ++i) {
      visit(outer * inner + i, coords);
      for (size_t axis = coords.size(); axis-- > 1;) {
        if (++coords[axis] < extents[axis]) break;
        coords[axis] = 0;
      }
    }
  });
}

std::vector<int64_t> StridedAccess::padded() const {
  std::vector<int64_t> extents = sizes_;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t block = layout_.block_of(static_cast<int>(axis));
    extents[axis] = (extents[axis] + block - 1) / block * block;
  }
  return extents;
}

bool StridedAccess::inside(const std::vector<int64_t>& coords) const {
  for (size_t axis = 0; axis < coords.size(); ++axis)
    if (coords[axis] >= sizes_[axis]) return false;
  return true;
}

void StridedAccess::store(const Tensor& logical, void* origin) const {
  const Tensor typed = logical.dtype() == dtype_ ? logical : logical.cast(dtype_);
  const size_t bytes = byte_size(dtype_);
  const char* from = static_cast<const char*>(typed.data());
  char* to = static_cast<char*>(origin);
  if (padded() != sizes_)
    each(padded(), [&](int64_t, const std::vector<int64_t>& coords) {
      if (!inside(coords)) std::memset(to + static_cast<size_t>(offset(coords)) * bytes, 0, bytes);
    });
  each(sizes_, [&](int64_t i, const std::vector<int64_t>& coords) {
    std::memcpy(to + static_cast<size_t>(offset(coords)) * bytes, from + static_cast<size_t>(i) * bytes, bytes);
  });
}

Tensor StridedAccess::load(const void* origin) const {
  Tensor logical(dtype_, sizes_);
  const size_t bytes = byte_size(dtype_);
  char* to = static_cast<char*>(logical.mutable_data());
  const char* from = static_cast<const char*>(origin);
  each(sizes_, [&](int64_t i, const std::vector<int64_t>& coords) {
    std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(offset(coords)) * bytes, bytes);
  });
  return logical;
}

bool StridedAccess::padding_is_zero(const void* origin) const {
  if (padded() == sizes_) return true;
  const size_t bytes = byte_size(dtype_);
  std::atomic<bool> zero{true};
  each(padded(), [&](int64_t, const std::vector<int64_t>& coords) {
    const bool padding = !inside(coords);
    const char* at = static_cast<const char*>(origin) + static_cast<size_t>(offset(coords)) * bytes;
    for (size_t b = 0; padding && b < bytes; ++b)
      if (at[b] != 0) zero.store(false, std::memory_order_relaxed);
  });
  return zero.load();
}

}  // namespace opfuse
