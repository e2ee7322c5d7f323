// MatMulNBits of com.microsoft: a product whose weights are codes of 2, 4 or 8 bits with a scale for each block.
//   y[.., n] = sum_k a[.., k] (code[n, k] - zero[n, k / block]) scale[n, k / block] + bias[n]
// Codes lie in bytes, the first in the lowest bits, and so do zero points, whose rows start at a byte each; without
// them the zero point is half the range. It becomes DequantizeLinear with blocks, ONNX's own spelling.
#include "base/fail.hpp"
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
  const int64_t mask = (int64_t{1} << p.bits) - 1;
  for (int64_t row = 0; row < p.columns; ++row)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bit = i * p.bits;
      codes.set_integer(row * count + i, (bytes.integer(row * row_bytes + bit / 8) >> (bit % 8)) & mask);
    }
  return codes;
}

Tensor halves(const Packing& p) {
  Tensor zero(p.dtype(), {p.columns, p.blocks()});
  for (int64_t i = 0; i < zero.elements(); ++i) zero.set_integer(i, int64_t{1} << (p.bits - 1));
  return zero;
}

/// [N, K]
Value* weights_of(NodeImport& n, Speller& s, const Packing& p) {
  const int64_t block_bytes = p.block * p.bits / 8, row_zeros = (p.blocks() * p.bits + 7) / 8;
  Tensor codes = unpacked(constant_of(n.required(1), "B"), p, p.depth, p.blocks() * block_bytes, "B");
  const Tensor& scales = constant_of(n.required(2), "scales");
  if (scales.elements() != p.columns * p.blocks())
    throw fail(E::shape_mismatch, "scales has {} values, {} blocks of {} columns need {}", scales.elements(),
               p.blocks(), p.columns, p.blocks() * p.columns);
  Value* scale = n.constant(scales.reshaped({p.columns, p.blocks()}));
  Value* zero = nullptr;
  if (!n.input(3)) {
    zero = n.constant(halves(p));
  } else {
    const Tensor& given = constant_of(n.input(3), "zero_points");
    if (is_float(given.dtype())) throw fail(E::unsupported_dtype, "zero points of {}", name_of(given.dtype()));
    zero = n.constant(unpacked(given, p, p.blocks(), row_zeros, "zero_points"));
  }
  return s.op("dequantize_linear", {n.constant(std::move(codes)), scale, zero},
              {{"axis", int64_t{1}}, {"block_size", p.block}});
}

}  // namespace

Results import_matmul_nbits(NodeImport& n) {
  n.require_inputs(3, 6);
  const Packing p = read_packing(n);
  if (n.input(4)) throw fail(E::unsupported_op, "g_idx, an order of the blocks, is not supported");
  Speller s(n);
  Value* y = s.op("matmul", {n.required(0), s.transpose(weights_of(n, s, p), {1, 0})});
  return {n.input(5) ? s.op("add", {y, n.input(5)}) : y};
}

}  // namespace opfuse::onnx
