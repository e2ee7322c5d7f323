// MatMulNBits of com.microsoft: a product whose weights are codes of 2, 4 or 8 bits with a scale for each block.
//   y[.., n] = sum_k a[.., k] (code[n, k] - zero[n, k / block]) scale[n, k / block] + bias[n]
// Codes lie in bytes, the first in the lowest bits, and so do zero points, whose rows start at a byte each; without
// them the zero point is half the range. It becomes DequantizeLinear with blocks, ONNX's own spelling. Zero points
// other than codes, and rows in an order of their own (g_idx), have none: their weights become numbers.
#include <cmath>
#include <optional>
#include <span>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

const Tensor& constant_of(const Value* v, const char* what) {
  if (!v->is_constant()) throw fail(E::unsupported_op, "{} of a product of packed weights is not constant", what);
  return *v->constant;
}

struct Packing {
  int64_t columns, depth, bits, block;
  int64_t blocks() const { return (depth + block - 1) / block; }
  DType dtype() const { return bits == 4 ? DType::u4 : DType::u8; }
};

Packing read_packing(NodeImport& n) {
  const Packing p{n.integer("N", 0), n.integer("K", 0), n.integer("bits", 4), n.integer("block_size", 0)};
  if (p.columns <= 0 || p.depth <= 0 || p.block <= 0)
    throw fail(E::bad_attribute, "N is {}, K is {}, block_size is {}", p.columns, p.depth, p.block);
  if (p.bits != 2 && p.bits != 4 && p.bits != 8) throw fail(E::unsupported_attribute, "bits is {}", p.bits);
  if (p.block * p.bits % 8 != 0)
    throw fail(E::bad_attribute, "blocks of {} codes of {} bits do not end at a byte", p.block, p.bits);
  n.ignore("accuracy_level");  // how it is computed, not what
  return p;
}

/// The first `count` codes of rows of `row_bytes` bytes.
Tensor unpacked(const Tensor& bytes, const Packing& p, int64_t count, int64_t row_bytes, const char* what) {
  if (bytes.dtype() != DType::u8 || bytes.elements() != p.columns * row_bytes)
    throw fail(E::shape_mismatch, "{} is {}[{}]; {} rows of {} bytes are expected", what, name_of(bytes.dtype()),
               bytes.elements(), p.columns, row_bytes);
  Tensor codes(p.dtype(), {p.columns, count});
  const int mask = (1 << p.bits) - 1;
  const std::span<uint8_t> to = codes.mutable_view<uint8_t>();  // codes of four bits have a byte each
  const auto* all = static_cast<const uint8_t*>(bytes.data());
  parallel_for(p.columns, [&](int64_t row) {
    const uint8_t* from = all + row * row_bytes;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bit = i * p.bits;
      to[static_cast<size_t>(row * count + i)] = static_cast<uint8_t>(from[bit / 8] >> (bit % 8) & mask);
    }
  });
  return codes;
}

Tensor halves(const Packing& p) {
  Tensor zero(p.dtype(), {p.columns, p.blocks()});
  for (int64_t i = 0; i < zero.elements(); ++i) zero.set_integer(i, int64_t{1} << (p.bits - 1));
  return zero;
}

/// Zero points given as floats, as codes where they are whole codes.
std::optional<Tensor> whole(const Tensor& zeros, const Packing& p) {
  Tensor codes(p.dtype(), {p.columns, p.blocks()});
  for (int64_t i = 0; i < zeros.elements(); ++i) {
    const double z = zeros.real(i);
    if (!(z >= 0 && z < static_cast<double>(int64_t{1} << p.bits)) || z != std::floor(z)) return std::nullopt;
    codes.set_integer(i, static_cast<int64_t>(z));
  }
  return codes;
}

/// The block of each row of the weights, where they are in an order of their own; else empty.
std::vector<int64_t> order_of(NodeImport& n, const Packing& p) {
  if (!n.input(4)) return {};
  const Tensor& order = constant_of(n.input(4), "g_idx");
  if (order.elements() < p.depth)
    throw fail(E::shape_mismatch, "g_idx has {} values, K is {}", order.elements(), p.depth);
  std::vector<int64_t> blocks(static_cast<size_t>(p.depth));
  bool usual = true;
  for (int64_t k = 0; k < p.depth; ++k) {
    const int64_t block = blocks[static_cast<size_t>(k)] = order.integer(k);
    if (block < 0 || block >= p.blocks()) throw fail(E::bad_attribute, "g_idx names block {} of {}", block, p.blocks());
    usual = usual && block == k / p.block;
  }
  return usual ? std::vector<int64_t>{} : blocks;
}

/// What DequantizeLinear has no spelling for: weights as numbers.
Tensor numbers(const Tensor& codes, const Tensor& scales, const Tensor& zeros, const Packing& p,
               const std::vector<int64_t>& order) {
  Tensor weights(scales.dtype(), {p.columns, p.depth});
  for (int64_t row = 0; row < p.columns; ++row)
    for (int64_t k = 0; k < p.depth; ++k) {
      const int64_t block = row * p.blocks() + (order.empty() ? k / p.block : order[static_cast<size_t>(k)]);
      const double code = static_cast<double>(codes.integer(row * p.depth + k));
      weights.set_real(row * p.depth + k, (code - zeros.real(block)) * scales.real(block));
    }
  return weights;
}

Tensor zeros_of(NodeImport& n, const Packing& p) {
  if (!n.input(3)) return halves(p);
  const Tensor& given = constant_of(n.input(3), "zero_points");
  if (!is_float(given.dtype())) return unpacked(given, p, p.blocks(), (p.blocks() * p.bits + 7) / 8, "zero_points");
  if (given.elements() != p.columns * p.blocks())
    throw fail(E::shape_mismatch, "zero_points has {} values, {} are expected", given.elements(),
               p.columns * p.blocks());
  return whole(given, p).value_or(given);
}

/// [N, K]
Value* weights_of(NodeImport& n, Speller& s, const Packing& p) {
  Tensor codes = unpacked(constant_of(n.required(1), "B"), p, p.depth, p.blocks() * p.block * p.bits / 8, "B");
  const Tensor& scales = constant_of(n.required(2), "scales");
  if (scales.elements() != p.columns * p.blocks())
    throw fail(E::shape_mismatch, "scales has {} values, {} blocks of {} columns need {}", scales.elements(),
               p.blocks(), p.columns, p.blocks() * p.columns);
  Tensor zeros = zeros_of(n, p);
  const std::vector<int64_t> order = order_of(n, p);
  if (is_float(zeros.dtype()) || !order.empty()) return n.constant(numbers(codes, scales, zeros, p, order));
  return s.op("dequantize_linear",
              {n.constant(std::move(codes)), n.constant(scales.reshaped({p.columns, p.blocks()})),
               n.constant(std::move(zeros))},
              {{"axis", int64_t{1}}, {"block_size", p.block}});
}

}  // namespace

Results import_matmul_nbits(NodeImport& n) {
  n.require_inputs(3, 6);
  const Packing p = read_packing(n);
  Speller s(n);
  Value* y = s.op("matmul", {n.required(0), s.transpose(weights_of(n, s, p), {1, 0})});
  return {n.input(5) ? s.op("add", {y, n.input(5)}) : y};
}

}  // namespace opfuse::onnx
