// Layouts and the conversions between a dense row-major tensor and a laid-out buffer.
// Physical dimensions, outermost first: the axes of `order`, then the blocks. The logical index of an
// axis is the sum of (index * unit) over its physical dimensions; beyond the axis's size lies padding.
#include "tensor/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse {

namespace {

struct PhysicalDim {
  int64_t extent = 1;
  int64_t stride = 0;  ///< elements of the dense tensor per step
  int64_t unit = 1;    ///< logical indices of `axis` per step
  int axis = 0;
};

void check(const Layout& layout, size_t rank) {
  OPFUSE_CHECK(layout.order.size() == rank, "layout {} is used on {} dimensions", layout.text(), rank);
  for (const Block& b : layout.blocks) {
    OPFUSE_CHECK(b.axis >= 0 && b.axis < static_cast<int>(rank) && b.factor > 0, "layout {}", layout.text());
  }
}

std::vector<PhysicalDim> physical_dims(const Layout& layout, const std::vector<int64_t>& sizes) {
  check(layout, sizes.size());
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  std::vector<PhysicalDim> dims;
  for (int axis : layout.order) {
    const int64_t unit = layout.block_of(axis), size = sizes[static_cast<size_t>(axis)];
    dims.push_back({(size + unit - 1) / unit, strides[static_cast<size_t>(axis)] * unit, unit, axis});
  }
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    const Block& b = layout.blocks[i];
    int64_t unit = 1;
    for (size_t j = i + 1; j < layout.blocks.size(); ++j) {
      if (layout.blocks[j].axis == b.axis) unit *= layout.blocks[j].factor;
    }
    dims.push_back({b.factor, strides[static_cast<size_t>(b.axis)] * unit, unit, b.axis});
  }
  if (dims.empty()) dims.push_back({1, 0, 1, -1});
  return dims;
}

/// Walks the buffer in memory order and calls row(packed offset, dense offset, valid elements) for every
/// run of the innermost physical dimension that is not all padding.
template <class Row>
void for_rows(const std::vector<PhysicalDim>& dims, const std::vector<int64_t>& sizes, const Row& row) {
  const PhysicalDim inner = dims.back();
  const size_t outer = dims.size() - 1;
  int64_t rows = 1;
  for (size_t i = 0; i < outer; ++i) rows *= dims[i].extent;
  const int64_t per_chunk = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, inner.extent));
  parallel_for((rows + per_chunk - 1) / per_chunk, [&](int64_t chunk) {
    std::vector<int64_t> index(outer), logical(sizes.size(), 0);
    int64_t at = chunk * per_chunk, dense = 0, rest = at;
    for (size_t i = outer; i-- > 0;) {
      index[i] = rest % dims[i].extent;
      rest /= dims[i].extent;
      logical[static_cast<size_t>(dims[i].axis)] += index[i] * dims[i].unit;
      dense += index[i] * dims[i].stride;
    }
    for (const int64_t end = std::min(rows, at + per_chunk); at < end; ++at) {
      bool inside = true;
      for (size_t a = 0; a < sizes.size(); ++a) inside = inside && logical[a] < sizes[a];
      int64_t valid = inside ? inner.extent : 0;
      if (inside && inner.axis >= 0) {
        const size_t a = static_cast<size_t>(inner.axis);
        valid = std::min(valid, (sizes[a] - logical[a] + inner.unit - 1) / inner.unit);
      }
      if (valid > 0) row(at * inner.extent, dense, valid);
      for (size_t i = outer; i-- > 0;) {
        const PhysicalDim& d = dims[i];
        logical[static_cast<size_t>(d.axis)] += d.unit;
        dense += d.stride;
        if (++index[i] < d.extent) break;
        logical[static_cast<size_t>(d.axis)] -= d.extent * d.unit;
        dense -= d.extent * d.stride;
        index[i] = 0;
      }
    }
  });
}

template <class T>
void copy_rows(const void* dense, void* packed, const std::vector<PhysicalDim>& dims,
               const std::vector<int64_t>& sizes) {
  const T* from = static_cast<const T*>(dense);
  T* to = static_cast<T*>(packed);
  const int64_t stride = dims.back().stride;
  for_rows(dims, sizes, [=](int64_t p, int64_t d, int64_t n) {
    if (stride == 1) {
      std::memcpy(to + p, from + d, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) to[p + i] = from[d + i * stride];
    }
  });
}

template <class T>
void copy_back(const void* packed, void* dense, const std::vector<PhysicalDim>& dims,
               const std::vector<int64_t>& sizes) {
  const T* from = static_cast<const T*>(packed);
  T* to = static_cast<T*>(dense);
  const int64_t stride = dims.back().stride;
  for_rows(dims, sizes, [=](int64_t p, int64_t d, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[d + i * stride] = from[p + i];
  });
}

template <class F>
void with_element(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      throw fail(E::unsupported_dtype, "elements without a size have no layout");
  }
}

}  // namespace

Layout Layout::dense(size_t rank) {
  Layout layout;
  for (size_t i = 0; i < rank; ++i) layout.order.push_back(static_cast<int>(i));
  return layout;
}

Layout Layout::channels_blocked(size_t rank, int axis, int64_t factor) {
  Layout layout = dense(rank);
  layout.blocks.push_back({axis, factor});
  return layout;
}

bool Layout::is_dense() const { return blocks.empty() && *this == dense(order.size()); }

int64_t Layout::block_of(int axis) const {
  int64_t product = 1;
  for (const Block& b : blocks) product *= b.axis == axis ? b.factor : 1;
  return product;
}

std::string Layout::text() const {
  std::string out;
  for (int axis : order) out += axis < 10 ? fmt::format("{}", axis) : fmt::format("({})", axis);
  for (size_t i = 0; i < blocks.size(); ++i) {
    out += fmt::format("{}{}:{}", i == 0 ? "/" : ",", blocks[i].axis, blocks[i].factor);
  }
  return out;
}

Layout Layout::parse(std::string_view text) {
  auto bad = [&] { return fail(E::bad_text, "layout \"{}\": expected something like 0123/1:16", text); };
  Layout layout;
  size_t at = 0;
  auto number = [&]() -> int64_t {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc() || value < 0) throw bad();
    at = static_cast<size_t>(end - text.data());
    return value;
  };
  for (; at < text.size() && text[at] != '/';) {
    if (text[at] == '(') {
      ++at;
      const int64_t axis = number();
      if (at >= text.size() || text[at] != ')' || axis > 1000) throw bad();
      layout.order.push_back(static_cast<int>(axis));
    } else if (text[at] >= '0' && text[at] <= '9') {
      layout.order.push_back(text[at] - '0');
    } else {
      throw bad();
    }
    ++at;
  }
  std::vector<int> sorted = layout.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != dense(sorted.size()).order) throw bad();
  while (at < text.size()) {
    if (text[at] != '/' && text[at] != ',') throw bad();
    ++at;
    const int64_t axis = number();
    if (at >= text.size() || text[at] != ':' || axis >= static_cast<int64_t>(layout.order.size())) throw bad();
    ++at;
    const int64_t factor = number();
    if (factor == 0) throw bad();
    layout.blocks.push_back({static_cast<int>(axis), factor});
  }
  return layout;
}

std::vector<Dim> Layout::physical_extents(const Shape& shape) const {
  check(*this, shape.rank());
  std::vector<Dim> out;
  for (int axis : order) out.push_back(ceil_div(shape[static_cast<size_t>(axis)], Dim(block_of(axis))));
  for (const Block& b : blocks) out.push_back(b.factor);
  return out;
}

Dim Layout::physical_elements(const Shape& shape) const {
  Dim product = 1;
  for (const Dim& d : physical_extents(shape)) product = product * d;
  return product;
}

std::vector<Dim> dense_strides(const Layout& layout, const Shape& shape) {
  const std::vector<Dim> extents = layout.physical_extents(shape);
  std::vector<Dim> strides(extents.size(), Dim(1));
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

Tensor pack(const Tensor& tensor, const Layout& layout) {
  check(layout, tensor.rank());
  if (layout.is_dense()) return tensor;
  Tensor out(tensor.dtype(), Shape(layout.physical_extents(tensor.type().shape)).sizes());
  if (tensor.elements() == 0) return out;
  const auto dims = physical_dims(layout, tensor.sizes());
  with_element(byte_size(tensor.dtype()),
               [&](auto e) { copy_rows<decltype(e)>(tensor.data(), out.mutable_data(), dims, tensor.sizes()); });
  return out;
}

Tensor unpack(const Tensor& packed, const Layout& layout, const std::vector<int64_t>& sizes) {
  const auto dims = physical_dims(layout, sizes);
  Tensor out(packed.dtype(), sizes);
  const Dim need = layout.physical_elements(Shape::of(sizes));
  OPFUSE_CHECK(Dim(packed.elements()) == need, "a buffer of {} elements is no {} of {}", packed.elements(),
               layout.text(), out.type().text());
  if (out.elements() == 0) return out;
  with_element(byte_size(packed.dtype()),
               [&](auto e) { copy_back<decltype(e)>(packed.data(), out.mutable_data(), dims, sizes); });
  return out;
}

}  // namespace opfuse
