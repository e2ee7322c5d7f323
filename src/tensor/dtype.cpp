// The table of element types.
#include "tensor/dtype.hpp"

#include <array>

#include "tensor/tf32.hpp"

namespace opfuse {

namespace {

struct Row {
  std::string_view name;
  size_t bytes;
  int bits;
  bool real, integer, negative;
};

// In the order of DType, then tf32.
constexpr std::array<Row, 26> kRows = {{
    {"f32", 4, 32, true, false, true},      {"f64", 8, 64, true, false, true},
    {"f16", 2, 16, true, false, true},      {"bf16", 2, 16, true, false, true},
    {"i8", 1, 8, false, true, true},        {"u8", 1, 8, false, true, false},
    {"i16", 2, 16, false, true, true},      {"u16", 2, 16, false, true, false},
    {"i32", 4, 32, false, true, true},      {"u32", 4, 32, false, true, false},
    {"i64", 8, 64, false, true, true},      {"u64", 8, 64, false, true, false},
    {"bool", 1, 1, false, false, false},    {"string", 0, 0, false, false, false},
    {"f8e4m3fn", 1, 8, true, false, true},  {"f8e4m3fnuz", 1, 8, true, false, true},
    {"f8e5m2", 1, 8, true, false, true},    {"f8e5m2fnuz", 1, 8, true, false, true},
    {"f8e8m0", 1, 8, true, false, false},   {"f4e2m1", 1, 4, true, false, true},
    {"i4", 1, 4, false, true, true},        {"u4", 1, 4, false, true, false},
    {"i2", 1, 2, false, true, true},        {"u2", 1, 2, false, true, false},
    {"unknown", 0, 0, false, false, false}, {"tf32", 4, 19, true, false, true},
}};
static_assert(kRows.size() == static_cast<size_t>(kTf32) + 1);

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t byte_size(DType dtype) { return row(dtype).bytes; }
std::string_view name_of(DType dtype) { return row(dtype).name; }
bool is_float(DType dtype) { return row(dtype).real; }
bool is_integer(DType dtype) { return row(dtype).integer; }
bool is_signed(DType dtype) { return row(dtype).negative; }
int bit_size(DType dtype) { return row(dtype).bits; }
bool is_small_float(DType dtype) { return row(dtype).real && row(dtype).bits < 32; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace opfuse
