// The table of element types.
#include "tensor/dtype.hpp"

#include <array>

namespace opfuse {

namespace {

struct Row {
  std::string_view name;
  size_t bytes;
  bool real, integer, negative;
};

// In the order of DType.
constexpr std::array<Row, 15> kRows = {{
    {"f32", 4, true, false, true},
    {"f64", 8, true, false, true},
    {"f16", 2, true, false, true},
    {"bf16", 2, true, false, true},
    {"i8", 1, false, true, true},
    {"u8", 1, false, true, false},
    {"i16", 2, false, true, true},
    {"u16", 2, false, true, false},
    {"i32", 4, false, true, true},
    {"u32", 4, false, true, false},
    {"i64", 8, false, true, true},
    {"u64", 8, false, true, false},
    {"bool", 1, false, false, false},
    {"string", 0, false, false, false},
    {"unknown", 0, false, false, false},
}};
static_assert(kRows.size() == static_cast<size_t>(DType::unknown) + 1);

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t byte_size(DType dtype) { return row(dtype).bytes; }
std::string_view name_of(DType dtype) { return row(dtype).name; }
bool is_float(DType dtype) { return row(dtype).real; }
bool is_integer(DType dtype) { return row(dtype).integer; }
bool is_signed(DType dtype) { return row(dtype).negative; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace opfuse
