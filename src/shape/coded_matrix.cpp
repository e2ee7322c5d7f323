// Where the scale of a code lies is asked code by code, so every spelling of blocks is seen as what it is.
#include "shape/coded_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/integers.hpp"
#include "base/parallel.hpp"
#include "match/movement.hpp"
#include "ops/axes.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/transpose.hpp"

namespace opfuse {
namespace {

/// What stands between the constant and its reader.
struct Chain {
  const Node* dequantize = nullptr;
  bool transposed = false;
  const Value* matrix = nullptr;  ///< behind the reshapes
};

std::optional<Chain> chain_of(const Value* value) {
  Chain chain;
  for (; value->producer && is_a<Transpose>(*value->producer); value = value->producer->input(0)) {
    if (value->type.shape.rank() != 2) return std::nullopt;
    const std::vector<int64_t>& perm = value->producer->as<Transpose>().perm;
    if (perm.empty() || perm[0] == 1) chain.transposed = !chain.transposed;
  }
  chain.matrix = value;
  while (value->producer && is_view(*value->producer)) value = value->producer->input(0);
  chain.dequantize = value->producer;
  if (!chain.dequantize || !is_a<DequantizeLinear>(*chain.dequantize)) return std::nullopt;
  for (const Value* v : chain.dequantize->inputs)
    if (v && !v->is_constant()) return std::nullopt;
  return chain;
}

/// The parameter of code `i`.
class Parameter {
 public:
  explicit Parameter(const Node& dequantize) {
    const auto& attrs = dequantize.as<DequantizeLinear>();
    const Tensor& codes = *dequantize.input(0)->constant;
    count_ = dequantize.input(1)->constant->elements();
    block_ = attrs.block_size;
    if (count_ == 1 && block_ == 0) return;
    const size_t axis = normalize_axis(attrs.axis, codes.rank());
    for (size_t d = axis + 1; d < codes.rank(); ++d) inner_ *= codes.dim(d);
    extent_ = codes.dim(axis);
  }
  int64_t operator()(int64_t i) const {
    if (block_ == 0) return count_ == 1 ? 0 : i / inner_ % count_;
    const int64_t row = i / inner_;
    return (row / extent_ * ceil_of(extent_, block_) + row % extent_ / block_) * inner_ + i % inner_;
  }
  /// Codes from `i` on that have the same one.
  int64_t shared(int64_t i) const {
    if (block_ == 0) return count_ == 1 ? kAll : inner_ - i % inner_;
    if (inner_ > 1) return 1;
    const int64_t row = i % extent_;
    return std::min(block_ - row % block_, extent_ - row);
  }

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  int64_t count_ = 1, block_ = 0, inner_ = 1, extent_ = 1;
};

template <class T>
std::pair<int64_t, int64_t> ends_of_bytes(const Tensor& t) {
  const std::span<const T> codes(static_cast<const T*>(t.data()), static_cast<size_t>(t.elements()));
  T low = codes[0], high = low;
  for (const T code : codes) low = std::min(low, code), high = std::max(high, code);
  return {low, high};
}

/// The least and the greatest.
std::pair<int64_t, int64_t> ends_of(const Tensor& t) {
  if (t.dtype() == DType::u8 || t.dtype() == DType::u4) return ends_of_bytes<uint8_t>(t);
  if (t.dtype() == DType::i8 || t.dtype() == DType::i4) return ends_of_bytes<int8_t>(t);
  int64_t low = t.integer(0), high = low;
  for (int64_t i = 1; i < t.elements(); ++i) low = std::min(low, t.integer(i)), high = std::max(high, t.integer(i));
  return {low, high};
}

/// Width of the codes, and which of them is 0 of the unsigned ones.
struct Width {
  int64_t bits = 8, base = 0;
};

std::optional<Width> width_of(const Tensor& codes, const Tensor* zeros) {
  const auto [low, high] = ends_of(codes);
  const auto [zero_low, zero_high] = zeros ? ends_of(*zeros) : std::pair<int64_t, int64_t>(0, 0);
  const bool is_signed = codes.dtype() == DType::i8 || codes.dtype() == DType::i4;
  for (const int64_t bits : {2, 4, 8}) {
    const int64_t base = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    if (low >= base && high < base + (int64_t{1} << bits) && zero_low >= base && zero_high < base + 256)
      return Width{bits, base};
  }
  return std::nullopt;
}

/// A matrix of codes in the order of columns: element(k, n).
struct Codes {
  const Node& dequantize;
  const Parameter parameter;
  int64_t depth, columns;
  bool columns_first;  ///< it lies [N, K]

  int64_t at(int64_t k, int64_t n) const { return columns_first ? n * depth + k : k * columns + n; }

  /// Rows that share a parameter in every column; 0: not the same ones.
  int64_t block() const {
    int64_t rows = 1;
    while (rows < depth && parameter(at(rows, 0)) == parameter(at(0, 0))) ++rows;
    std::vector<char> uniform(static_cast<size_t>(columns), 1);
    parallel_for(columns, [&](int64_t n) {
      for (int64_t k = 0, same = 1; k < depth; k += same) {
        const int64_t first = k / rows * rows, end = std::min(depth, first + rows);
        if (parameter(at(k, n)) != parameter(at(first, n))) uniform[static_cast<size_t>(n)] = 0;
        same = columns_first ? std::min(parameter.shared(at(k, n)), end - k) : 1;
      }
    });
    return std::find(uniform.begin(), uniform.end(), 0) == uniform.end() ? rows : 0;
  }
};

Tensor packed_words(const Codes& codes, const Tensor& values, const Width& width) {
  const int64_t unit = 32 / width.bits;
  Tensor words(DType::i32, {ceil_of(codes.depth, unit), codes.columns});
  const auto to = words.mutable_view<uint32_t>();
  const bool is_signed = width.base < 0;
  const auto* from = static_cast<const uint8_t*>(values.data());
  parallel_for(words.dim(0), [&](int64_t word) {
    for (int64_t k = word * unit; k < std::min(codes.depth, (word + 1) * unit); ++k)
      for (int64_t n = 0; n < codes.columns; ++n) {
        const uint8_t byte = from[codes.at(k, n)];
        const int64_t code = (is_signed ? int64_t{static_cast<int8_t>(byte)} : int64_t{byte}) - width.base;
        to[static_cast<size_t>(word * codes.columns + n)] |= static_cast<uint32_t>(code) << (width.bits * (k % unit));
      }
  });
  return words;
}

/// A parameter for each block of rows and column.
Tensor by_blocks(const Codes& codes, int64_t block, const Tensor& values, DType dtype,
                 const std::function<void(Tensor&, int64_t, int64_t)>& put) {
  Tensor all(dtype, {ceil_of(codes.depth, block), codes.columns});
  for (int64_t b = 0; b < all.dim(0); ++b)
    for (int64_t n = 0; n < codes.columns; ++n) {
      const int64_t from = codes.parameter(codes.at(b * block, n));
      put(all, b * codes.columns + n, values.elements() == 1 ? 0 : from);
    }
  return all;
}

void put_zeros(PackedMatrix& packed, const Codes& codes, int64_t block, const Tensor* given, const Width& width) {
  packed.zero = (given ? given->integer(0) : 0) - width.base;
  bool same = true;
  for (int64_t i = 1; given && i < given->elements(); ++i) same = same && given->integer(i) == given->integer(0);
  if (same) return;
  packed.zeros = by_blocks(codes, block, *given, DType::u8, [&](Tensor& to, int64_t i, int64_t from) {
    to.set_integer(i, given->integer(from) - width.base);
  });
}

}  // namespace

int64_t PackedMatrix::bytes() const {
  return static_cast<int64_t>(words.bytes() + scales.bytes() + (zeros ? zeros->bytes() : 0));
}

const Node* dequantizer_of(const Value* matrix) {
  const auto chain = matrix ? chain_of(matrix) : std::nullopt;
  return chain ? chain->dequantize : nullptr;
}

std::variant<PackedMatrix, Decline> pack_matrix(const Value* matrix, bool transposed) {
  const auto chain = chain_of(matrix);
  const Shape& shape = chain->matrix->type.shape;
  if (shape.rank() != 2 || !shape.is_static())
    return Decline{"rank", fmt::format("weights of shape {} are not a matrix", shape.text()), {}};
  const Node& dequantize = *chain->dequantize;
  const Tensor &values = *dequantize.input(0)->constant, &scales = *dequantize.input(1)->constant;
  const Tensor* zeros = dequantize.input(2) ? &*dequantize.input(2)->constant : nullptr;
  const DType type = values.dtype(), scale_type = scales.dtype();
  const bool bytes = type == DType::u8 || type == DType::i8 || type == DType::u4 || type == DType::i4;
  const bool real = scale_type == DType::f32 || scale_type == DType::f16 || scale_type == DType::bf16;
  if (!bytes || !real || values.elements() == 0)
    return Decline{"types", fmt::format("codes of {} with scales of {}", name_of(type), name_of(scale_type)), {}};
  // [K, N] as the product reads it, from what lies there
  const bool columns_first = transposed != chain->transposed;
  const int64_t depth = shape[columns_first ? 1 : 0].value(), columns = shape[columns_first ? 0 : 1].value();
  const Codes codes{dequantize, Parameter(dequantize), depth, columns, columns_first};
  const auto width = width_of(values, zeros);
  if (!width) return Decline{"types", "zero points lie far from the codes", {}};
  const int64_t rows = codes.block(), unit = 32 / width->bits;
  if (rows == 0) return Decline{"scales", "codes of a column do not share scales block by block", {}};
  if (rows < depth && rows % unit != 0)
    return Decline{"blocks", fmt::format("blocks of {} rows are no whole words of {} codes", rows, unit), {}};
  PackedMatrix packed;
  packed.depth = depth, packed.bits = width->bits, packed.block = ceil_of(rows, unit) * unit;
  packed.words = packed_words(codes, values, *width);
  packed.scales = by_blocks(codes, rows, scales, scale_type,
                            [&](Tensor& to, int64_t i, int64_t from) { to.set_real(i, scales.real(from)); });
  put_zeros(packed, codes, rows, zeros, *width);
  return packed;
}

}  // namespace opfuse
