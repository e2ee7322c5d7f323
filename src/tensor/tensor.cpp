// Dense arrays with shared, 64-byte aligned storage, and reading and storing their elements.
#include "tensor/tensor.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "tensor/number.hpp"
#include "tensor/small_float.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {

namespace {

constexpr size_t kAlignment = 64;  // a cache line and the widest vector register

int64_t checked_elements(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t size : sizes) {
    if (size < 0) throw fail(E::bad_dimension, "shape {} has a negative dimension", Shape::of(sizes).text());
    if (size == 0) zero = true;
    if (!zero && __builtin_mul_overflow(n, size, &n)) {
      throw fail(E::bad_dimension, "shape {} has more than 2^63 elements", Shape::of(sizes).text());
    }
  }
  return zero ? 0 : n;
}

size_t checked_bytes(DType dtype, const std::vector<int64_t>& sizes) {
  int64_t bytes;
  if (__builtin_mul_overflow(checked_elements(sizes), static_cast<int64_t>(byte_size(dtype)), &bytes)) {
    throw fail(E::bad_dimension, "shape {} has more than 2^63 bytes", Shape::of(sizes).text());
  }
  return static_cast<size_t>(bytes);
}

std::shared_ptr<void> allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* p = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (p == nullptr) throw fail(E::out_of_memory, "cannot allocate {} bytes for a tensor", bytes);
  return std::shared_ptr<void>(p, [](void* q) { std::free(q); });
}

/// Calls f with a null pointer of the dtype's storage type.
template <class F>
auto with_storage(DType dtype, F&& f) {
  if (dtype == kTf32) return f(static_cast<float*>(nullptr));
  switch (dtype) {
    case DType::f32:
      return f(static_cast<float*>(nullptr));
    case DType::f64:
      return f(static_cast<double*>(nullptr));
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::i8:
    case DType::i4:
    case DType::i2:
      return f(static_cast<int8_t*>(nullptr));
    case DType::boolean:
    case DType::u8:
    case DType::u4:
    case DType::u2:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::i16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::i32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::u32:
      return f(static_cast<uint32_t*>(nullptr));
    case DType::i64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::u64:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      throw fail(E::unsupported_dtype, "elements of type {} cannot be read as numbers", name_of(dtype));
  }
}

}  // namespace

std::string TensorType::text() const { return std::string(name_of(dtype)) + shape.text(); }

TensorType parse_type(std::string_view text) {
  const size_t open = text.find('[');
  const auto dtype = parse_dtype(text.substr(0, open));
  if (!dtype) throw fail(E::bad_text, "unknown element type \"{}\"", text.substr(0, open));
  if (open == std::string_view::npos || text.back() != ']') {
    throw fail(E::bad_text, "type \"{}\": expected a shape such as [1,3,h,w]", text);
  }
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  TensorType type{*dtype, {}};
  if (inside == "*") return {*dtype, Shape::unknown()};
  int depth = 0;
  bool quoted = false;
  size_t first = 0;
  for (size_t i = 0; i <= inside.size(); ++i) {
    const bool end = i == inside.size();
    if (!end && inside[i] == '\\' && quoted) {
      ++i;
      continue;
    }
    if (!end && inside[i] == '"') quoted = !quoted;
    if (!end && !quoted && inside[i] == '(') ++depth;
    if (!end && !quoted && inside[i] == ')') --depth;
    if (!end && (quoted || depth > 0 || inside[i] != ',')) continue;
    if (end && inside.find_first_not_of(" \t") == std::string_view::npos) break;
    type.shape.dims.push_back(Dim::parse(inside.substr(first, i - first)));
    first = i + 1;
  }
  return type;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> sizes) : dtype_(dtype), sizes_(std::move(sizes)) {
  const size_t bytes = checked_bytes(dtype_, sizes_);
  auto storage = allocate(bytes);
  std::memset(storage.get(), 0, bytes);
  data_ = std::move(storage);
}

Tensor Tensor::wrap(DType dtype, std::vector<int64_t> sizes, const void* data, std::shared_ptr<const void> owner) {
  checked_bytes(dtype, sizes);
  Tensor t;
  t.dtype_ = dtype;
  t.sizes_ = std::move(sizes);
  t.data_ = std::shared_ptr<const void>(std::move(owner), data);
  return t;
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor t(dtype, {});
  t.set_real(0, value);
  return t;
}

Tensor Tensor::from_i64(const std::vector<int64_t>& values) {
  Tensor t(DType::i64, {static_cast<int64_t>(values.size())});
  copy_bytes(t.mutable_data(), values.data(), t.bytes());
  return t;
}

int64_t Tensor::elements() const { return checked_elements(sizes_); }
size_t Tensor::bytes() const { return checked_bytes(dtype_, sizes_); }
TensorType Tensor::type() const { return {dtype_, Shape::of(sizes_)}; }

double Tensor::real(int64_t i) const {
  if (dtype_ == DType::f32 || dtype_ == kTf32) return static_cast<const float*>(data())[i];
  if (dtype_ == DType::f16) return from_half(static_cast<const uint16_t*>(data())[i]);
  if (dtype_ == DType::bf16) return from_bfloat16(static_cast<const uint16_t*>(data())[i]);
  if (is_small_float(dtype_)) return from_byte_float(dtype_, static_cast<const uint8_t*>(data())[i]);
  return with_storage(dtype_, [&](auto* p) {
    return static_cast<double>(static_cast<const std::remove_pointer_t<decltype(p)>*>(data())[i]);
  });
}

int64_t Tensor::integer(int64_t i) const {
  if (is_float(dtype_)) return truncate_to(DType::i64, real(i));
  return with_storage(dtype_, [&](auto* p) {
    return static_cast<int64_t>(static_cast<const std::remove_pointer_t<decltype(p)>*>(data())[i]);
  });
}

void Tensor::set_real(int64_t i, double value) {
  if (dtype_ == kTf32) {
    static_cast<float*>(mutable_data())[i] = to_tf32(to_float_odd(value));
    return;
  }
  switch (dtype_) {
    case DType::f32:
      static_cast<float*>(mutable_data())[i] = static_cast<float>(value);
      return;
    case DType::f64:
      static_cast<double*>(mutable_data())[i] = value;
      return;
    case DType::f16:
      static_cast<uint16_t*>(mutable_data())[i] = to_half(to_float_odd(value));
      return;
    case DType::bf16:
      static_cast<uint16_t*>(mutable_data())[i] = to_bfloat16(to_float_odd(value));
      return;
    case DType::boolean:
      static_cast<uint8_t*>(mutable_data())[i] = value != 0;
      return;
    default:
      break;
  }
  if (is_small_float(dtype_)) {
    static_cast<uint8_t*>(mutable_data())[i] = to_byte_float(dtype_, value);
    return;
  }
  const int64_t rounded = truncate_to(dtype_, std::nearbyint(value));
  with_storage(dtype_, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    static_cast<T*>(mutable_data())[i] = static_cast<T>(rounded);
  });
}

void Tensor::set_integer(int64_t i, int64_t value) {
  if (is_float(dtype_)) return set_real(i, static_cast<double>(value));
  if (dtype_ == DType::boolean) value = value != 0;
  if (dtype_ != DType::u64) value = std::clamp(value, integer_min(dtype_), integer_max(dtype_));  // u64: bits
  with_storage(dtype_, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    static_cast<T*>(mutable_data())[i] = static_cast<T>(value);
  });
}

Tensor Tensor::clone() const {
  Tensor t = *this;
  if (data_ == nullptr) return t;
  auto storage = allocate(bytes());
  copy_bytes(storage.get(), data(), bytes());
  t.data_ = std::move(storage);
  return t;
}

Tensor Tensor::reshaped(std::vector<int64_t> sizes) const {
  if (checked_elements(sizes) != elements()) {
    throw fail(E::shape_mismatch, "cannot view {} as {}", Shape::of(sizes_).text(), Shape::of(sizes).text());
  }
  Tensor t = *this;
  t.sizes_ = std::move(sizes);
  return t;
}

Tensor Tensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor out(dtype, sizes_);
  const int64_t n = elements();
  constexpr int64_t kChunk = 1 << 16;
  parallel_for((n + kChunk - 1) / kChunk, [&](int64_t chunk) {
    const int64_t end = std::min(n, (chunk + 1) * kChunk);
    if (dtype_ == DType::f32 && dtype == DType::f64) {
      const float* from = static_cast<const float*>(data());
      for (int64_t i = chunk * kChunk; i < end; ++i) static_cast<double*>(out.mutable_data())[i] = from[i];
    } else if (dtype_ == DType::f64 && dtype == DType::f32) {
      const double* from = static_cast<const double*>(data());
      for (int64_t i = chunk * kChunk; i < end; ++i)
        static_cast<float*>(out.mutable_data())[i] = static_cast<float>(from[i]);
    } else if (is_float(dtype)) {
      for (int64_t i = chunk * kChunk; i < end; ++i) out.set_real(i, real(i));
    } else {
      with_storage(dtype, [&](auto* p) {
        using T = std::remove_pointer_t<decltype(p)>;
        for (int64_t i = chunk * kChunk; i < end; ++i) {
          const int64_t v = is_float(dtype_) ? truncate_to(dtype, real(i)) : wrap_to(dtype, integer(i));
          static_cast<T*>(out.mutable_data())[i] = static_cast<T>(v);
        }
      });
    }
  });
  return out;
}

std::vector<int64_t> Tensor::to_i64() const {
  if (!is_integer(dtype_) && dtype_ != DType::boolean) {
    throw fail(E::dtype_mismatch, "expected an integer tensor, got {}", name_of(dtype_));
  }
  std::vector<int64_t> out(static_cast<size_t>(elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = integer(static_cast<int64_t>(i));
  return out;
}

bool Tensor::same_bits(const Tensor& other) const {
  if (dtype_ != other.dtype_ || sizes_ != other.sizes_) return false;
  return data_ == other.data_ || bytes() == 0 || std::memcmp(data(), other.data(), bytes()) == 0;
}

double Difference::relative() const {
  if (max_abs == 0) return 0;
  return max_reference == 0 ? std::numeric_limits<double>::infinity() : max_abs / max_reference;
}

Difference difference(const Tensor& got, const Tensor& want) {
  if (got.sizes() != want.sizes()) {
    throw fail(E::shape_mismatch, "cannot compare {} with {}", got.type().text(), want.type().text());
  }
  Difference d;
  const int64_t n = want.elements();
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double a = got.real(i), b = want.real(i);
    if (std::isfinite(b)) d.max_reference = std::max(d.max_reference, std::fabs(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double gap = std::fabs(a - b);
    if (!std::isfinite(a) || !std::isfinite(b)) gap = std::numeric_limits<double>::infinity();
    sum += gap;
    if (gap > d.max_abs) d.max_abs = gap, d.at = i;
  }
  d.mean_abs = n == 0 ? 0 : sum / static_cast<double>(n);
  return d;
}

}  // namespace opfuse
