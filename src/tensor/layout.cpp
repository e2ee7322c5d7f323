// Layouts and the conversions between a dense row-major tensor and a laid-out buffer.
// Physical dimensions, outermost first: the axes of `order`, then the blocks. The logical index of an
// axis is the sum of (index * unit) over its physical dimensions; beyond the axis's size lies padding.
#include "tensor/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "tensor/paired_codes.hpp"
#include "tensor/winograd.hpp"
#include "tensor/winograd_codes.hpp"

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

/// The copy as planes: the innermost physical dimension (contiguous in the packed buffer) times the one
/// that is contiguous, or nearly so, in the dense tensor. Tiles of a plane stay in the first-level cache
/// whichever side is walked with a stride.
struct Plan {
  std::vector<PhysicalDim> outer;
  std::vector<int64_t> outer_packed;  ///< elements of the packed buffer per step
  PhysicalDim across{1, 0, 1, -1};    ///< the plane's other dimension; extent 1 when there is none
  int64_t across_packed = 0;
  PhysicalDim inner;
};

Plan make_plan(const std::vector<PhysicalDim>& dims) {
  Plan plan;
  plan.inner = dims.back();
  std::vector<int64_t> packed(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) packed[i - 1] = packed[i] * dims[i].extent;
  size_t across = dims.size();
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    if (dims[i].extent == 1 || dims[i].axis == plan.inner.axis) continue;
    if (across == dims.size() || dims[i].stride <= dims[across].stride) across = i;
  }
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    if (i == across) {
      plan.across = dims[i];
      plan.across_packed = packed[i];
    } else {
      plan.outer.push_back(dims[i]);
      plan.outer_packed.push_back(packed[i]);
    }
  }
  return plan;
}

/// Indices of a physical dimension, starting at logical index `at`, that lie inside an axis of `size`.
int64_t valid(const PhysicalDim& d, int64_t count, int64_t at, const std::vector<int64_t>& sizes) {
  if (d.axis < 0) return count;
  return std::min(count, (sizes[static_cast<size_t>(d.axis)] - at + d.unit - 1) / d.unit);
}

constexpr int64_t kTile = 64;  // indices of `across` per tile: 64 cache lines of the dense side

/// Calls tile(packed offset, dense offset, across count, inner count) for all parts that are not padding.
template <class Tile>
void for_tiles(const Plan& plan, const std::vector<int64_t>& sizes, const Tile& tile) {
  const int64_t tiles = (plan.across.extent + kTile - 1) / kTile;
  int64_t units = tiles;
  for (const PhysicalDim& d : plan.outer) units *= d.extent;
  const int64_t unit_elements = std::max<int64_t>(1, std::min(kTile, plan.across.extent) * plan.inner.extent);
  const int64_t per_chunk = std::max<int64_t>(1, (1 << 17) / unit_elements);
  parallel_for((units + per_chunk - 1) / per_chunk, [&](int64_t chunk) {
    std::vector<int64_t> logical(sizes.size());
    for (int64_t unit = chunk * per_chunk; unit < std::min(units, (chunk + 1) * per_chunk); ++unit) {
      std::fill(logical.begin(), logical.end(), 0);
      const int64_t first = unit % tiles * kTile;
      int64_t rest = unit / tiles, packed = first * plan.across_packed, dense = first * plan.across.stride;
      for (size_t i = plan.outer.size(); i-- > 0;) {
        const PhysicalDim& d = plan.outer[i];
        const int64_t index = rest % d.extent;
        rest /= d.extent;
        packed += index * plan.outer_packed[i];
        dense += index * d.stride;
        logical[static_cast<size_t>(d.axis)] += index * d.unit;
      }
      if (plan.across.axis >= 0) logical[static_cast<size_t>(plan.across.axis)] += first * plan.across.unit;
      bool inside = true;
      for (size_t a = 0; a < sizes.size(); ++a) inside = inside && logical[a] < sizes[a];
      if (!inside) continue;
      auto start = [&](const PhysicalDim& d) { return d.axis < 0 ? 0 : logical[static_cast<size_t>(d.axis)]; };
      const int64_t across = valid(plan.across, std::min(kTile, plan.across.extent - first), start(plan.across), sizes);
      const int64_t inner = valid(plan.inner, plan.inner.extent, start(plan.inner), sizes);
      tile(packed, dense, across, inner);
    }
  });
}

template <class T>
void copy_in(const void* dense, void* packed, const Plan& plan, const std::vector<int64_t>& sizes) {
  const T* from = static_cast<const T*>(dense);
  T* to = static_cast<T*>(packed);
  const int64_t step = plan.inner.stride, across_from = plan.across.stride, across_to = plan.across_packed;
  for_tiles(plan, sizes, [=](int64_t p, int64_t d, int64_t across, int64_t inner) {
    for (int64_t j = 0; j < inner; j += kTile) {
      const int64_t end = std::min(inner, j + kTile);
      for (int64_t i = 0; i < across; ++i) {
        T* row = to + p + i * across_to;
        const T* source = from + d + i * across_from;
        if (step == 1)
          std::memcpy(row + j, source + j, static_cast<size_t>(end - j) * sizeof(T));
        else
          for (int64_t k = j; k < end; ++k) row[k] = source[k * step];
      }
    }
  });
}

template <class T>
void copy_out(const void* packed, void* dense, const Plan& plan, const std::vector<int64_t>& sizes) {
  const T* from = static_cast<const T*>(packed);
  T* to = static_cast<T*>(dense);
  const int64_t step = plan.inner.stride, across_to = plan.across.stride, across_from = plan.across_packed;
  for_tiles(plan, sizes, [=](int64_t p, int64_t d, int64_t across, int64_t inner) {
    for (int64_t j = 0; j < inner; j += kTile) {
      const int64_t end = std::min(inner, j + kTile);
      for (int64_t k = j; k < end; ++k) {
        T* row = to + d + k * step;
        const T* source = from + p + k;
        for (int64_t i = 0; i < across; ++i) row[i * across_to] = source[i * across_from];
      }
    }
  });
}

bool has_padding(const Layout& layout, const std::vector<int64_t>& sizes) {
  for (size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] % layout.block_of(static_cast<int>(a)) != 0) return true;
  }
  return false;
}

/// A tensor whose bytes are all going to be written.
Tensor uninitialised(DType dtype, std::vector<int64_t> sizes) {
  const size_t bytes = Tensor::wrap(dtype, sizes, nullptr, nullptr).bytes();
  std::shared_ptr<void> storage(std::aligned_alloc(64, (bytes + 63) / 64 * 64), [](void* p) { std::free(p); });
  if (storage == nullptr) throw fail(E::out_of_memory, "cannot allocate {} bytes for a tensor", bytes);
  return Tensor::wrap(dtype, std::move(sizes), storage.get(), storage);
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
  if (axis > 1) {  // channels that come last lie as those that come second: outside the rows, [N][C/L][H][W][L]
    layout.order.erase(layout.order.begin() + axis);
    layout.order.insert(layout.order.begin() + 1, axis);
  }
  layout.blocks.push_back({axis, factor});
  return layout;
}

bool Layout::is_dense() const { return blocks.empty() && !is_transformed() && *this == dense(order.size()); }

int64_t Layout::block_of(int axis) const {
  int64_t product = 1;
  for (const Block& b : blocks) product *= b.axis == axis ? b.factor : 1;
  return product;
}

std::string Layout::text() const {
  std::string out = tile_h > 0 ? fmt::format("f{}x{}:", tile_h, tile_w) : "";
  if (pairs > 0) out = fmt::format("p{}:", pairs);
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
  if (text.starts_with('f')) {
    at = 1;
    layout.tile_h = number();
    if (at >= text.size() || text[at++] != 'x') throw bad();
    layout.tile_w = number();
    const bool known = (layout.tile_h == 2 || layout.tile_h == 4) && (layout.tile_w == 2 || layout.tile_w == 4);
    if (!known || at >= text.size() || text[at++] != ':') throw bad();
  }
  if (text.starts_with('p')) {
    at = 1;
    layout.pairs = number();
    if (layout.pairs == 0 || at >= text.size() || text[at++] != ':') throw bad();
  }
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
  std::vector<Dim> extents = shape.dims;
  if (pairs > 0) {
    const auto channels = static_cast<size_t>(order.at(1));
    extents[channels] = paired::stored_channels(*this, shape[channels].value());
  }
  if (tile_h > 0) {
    OPFUSE_CHECK(shape.rank() == 4, "layout {} of {} dimensions", text(), shape.rank());
    extents[2] = winograd::points(tile_h);
    extents[3] = winograd::points(tile_w);
  }
  std::vector<Dim> out;
  for (int axis : order) out.push_back(ceil_div(extents[static_cast<size_t>(axis)], Dim(block_of(axis))));
  for (const Block& b : blocks) out.push_back(b.factor);
  if (winograd::holds_codes(*this)) out.push_back(static_cast<int64_t>(sizeof(int16_t)));
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

/// Each i16 as two elements.
static Tensor as_bytes(Tensor numbers, std::vector<int64_t> sizes) {
  const auto held = std::make_shared<Tensor>(std::move(numbers));
  return Tensor::wrap(DType::i8, std::move(sizes), held->mutable_data(), held);
}

Tensor pack(const Tensor& tensor, const Layout& layout) {
  check(layout, tensor.rank());
  if (layout.is_dense()) return tensor;
  if (layout.pairs > 0) return paired::pair_codes(tensor, layout);
  if (layout.is_transformed()) {
    Layout order = layout;
    order.tile_h = order.tile_w = 0;
    if (winograd::holds_codes(layout))
      return as_bytes(pack(winograd::transform_codes(tensor, layout.tile_h, layout.tile_w), order),
                      Shape(layout.physical_extents(tensor.type().shape)).sizes());
    return pack(winograd::transform_filters(tensor, layout.tile_h, layout.tile_w), order);
  }
  const std::vector<int64_t> extents = Shape(layout.physical_extents(tensor.type().shape)).sizes();
  if (tensor.elements() == 0) return Tensor(tensor.dtype(), extents);
  Tensor out =
      has_padding(layout, tensor.sizes()) ? Tensor(tensor.dtype(), extents) : uninitialised(tensor.dtype(), extents);
  const Plan plan = make_plan(physical_dims(layout, tensor.sizes()));
  with_element(byte_size(tensor.dtype()),
               [&](auto e) { copy_in<decltype(e)>(tensor.data(), out.mutable_data(), plan, tensor.sizes()); });
  return out;
}

Tensor unpack(const Tensor& packed, const Layout& layout, const std::vector<int64_t>& sizes) {
  OPFUSE_CHECK(!layout.is_transformed(), "transformed weights cannot be unpacked");
  const Plan plan = make_plan(physical_dims(layout, sizes));
  Tensor out(packed.dtype(), sizes);
  const Dim need = layout.physical_elements(Shape::of(sizes));
  OPFUSE_CHECK(Dim(packed.elements()) == need, "a buffer of {} elements does not hold a {} of {}", packed.elements(),
               layout.text(), out.type().text());
  if (out.elements() == 0) return out;
  with_element(byte_size(packed.dtype()),
               [&](auto e) { copy_out<decltype(e)>(packed.data(), out.mutable_data(), plan, sizes); });
  return out;
}

}  // namespace opfuse
