// Numbers print in the shortest form that reads back to the same bits.
#include "ir/constant_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "tensor/number.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {

namespace {

std::string number_text(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DType::f64:
      return fmt::format("{}", t.real(i));
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return fmt::format("{}", static_cast<float>(t.real(i)));
    case DType::u64:
      return fmt::format("{}", t.view<uint64_t>()[static_cast<size_t>(i)]);
    default:
      if (t.dtype() == kTf32) return fmt::format("{}", static_cast<float>(t.real(i)));
      if (is_small_float(t.dtype())) return fmt::format("{}", t.real(i));
      return fmt::format("{}", t.integer(i));
  }
}

bool reads_back(const Tensor& t, int64_t i) {
  Tensor copy(t.dtype(), {1});
  const size_t size = byte_size(t.dtype());
  return store_number(copy, 0, number_text(t, i)) &&
         std::memcmp(copy.data(), static_cast<const char*>(t.data()) + static_cast<size_t>(i) * size, size) == 0;
}

bool all_equal(const Tensor& t) {
  const size_t size = byte_size(t.dtype());
  const char* bytes = static_cast<const char*>(t.data());
  return t.bytes() <= size || std::memcmp(bytes, bytes + size, t.bytes() - size) == 0;
}

template <class T>
bool read_exactly(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<std::string> constant_text(const Tensor& t, size_t max_elements) {
  const int64_t n = t.elements();
  if (n == 0 || byte_size(t.dtype()) == 0) return "dense<>";
  if (all_equal(t) && reads_back(t, 0)) return fmt::format("splat<{}>", number_text(t, 0));
  if (static_cast<size_t>(n) > max_elements) return std::nullopt;
  std::string out = "dense<";
  bool exact = true;
  for (int64_t i = 0; i < n; ++i) {
    exact = exact && reads_back(t, i);
    out += (i > 0 ? "," : "") + number_text(t, i);
  }
  if (exact) return out + ">";
  out = "hex<";
  for (size_t i = 0; i < t.bytes(); ++i) out += fmt::format("{:02x}", static_cast<const uint8_t*>(t.data())[i]);
  return out + ">";
}

bool store_number(Tensor& tensor, int64_t i, std::string_view text) {
  const DType dtype = tensor.dtype();
  if (is_float(dtype)) {
    double value = 0;
    if (text == "-nan")
      value = -std::numeric_limits<double>::quiet_NaN();
    else if (!read_exactly(text, value))
      return false;
    tensor.set_real(i, value);
    return true;
  }
  if (text == "true" || text == "false") {
    if (dtype != DType::boolean) return false;
    tensor.set_integer(i, text == "true");
    return true;
  }
  if (dtype == DType::u64) {
    uint64_t value = 0;
    if (!read_exactly(text, value)) return false;
    tensor.mutable_view<uint64_t>()[static_cast<size_t>(i)] = value;
    return true;
  }
  int64_t value = 0;
  if (!read_exactly(text, value) || wrap_to(dtype, value) != value) return false;
  tensor.set_integer(i, value);
  return true;
}

Tensor random_constant(DType dtype, std::vector<int64_t> sizes, uint64_t seed) {
  Tensor t(dtype, std::move(sizes));
  const int64_t n = t.elements();
  for (int64_t i = 0; i < n; ++i) {  // splitmix64
    uint64_t z = seed * 0x632be59bd9b4e019ull + (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    if (is_float(dtype))
      t.set_real(i, static_cast<double>(z >> 40) * 0x1p-23 - 1);
    else if (dtype == DType::boolean)
      t.set_integer(i, static_cast<int64_t>(z >> 63));
    else
      t.set_integer(i, static_cast<int64_t>(z >> 60) - (is_signed(dtype) ? 8 : 0));
  }
  return t;
}

}  // namespace opfuse
