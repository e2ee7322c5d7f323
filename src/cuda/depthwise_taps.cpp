// For each row of taps inside the image:
//   the row's kTaps weights -> registers
//   for each of kSpan columns of the data: 16 bytes -> 8 floats, added to every result whose window they are in
// so a column of the data is loaded once for all the taps that slide over it, a weight once for all columns.
#include "cuda/depthwise_taps.hpp"

#include <fmt/format.h>

#include "cuda/vector_body.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cuda {

constexpr int64_t kVector = 8;

DepthwiseTaps::DepthwiseTaps(StageText& s, const DepthwiseView& view, int64_t columns)
    : k_(s.k), s_(s), view_(view), columns_(columns) {}

void DepthwiseTaps::sum(const StageText::Point& point) {
  k_.constant("kTaps", view_.taps);
  k_.constant("kStride", view_.stride);
  k_.constant("kDilation", view_.dilation);
  k_.constant("kSpan", view_.span(columns_));
  k_.line("float sum[kColumns][kVector] = {};");
  const std::string row = fmt::format("a{}", view_.row_tap);
  k_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", row, k_.text_of(s_.extent(view_.row_tap))));
  StageText::Point inner = point;
  inner.env[static_cast<size_t>(view_.row_tap)] = Kernel::local(row);
  if (const std::string guard = rows_inside(inner.env); !guard.empty()) k_.line("if (!(" + guard + ")) continue;");
  load_weights(inner);
  slide(inner);
  k_.close();
}

Dim DepthwiseTaps::coordinate(const IndexMap& map, size_t d, const Env& env) const {
  Dim at = map.dims[d].offset;
  for (const IndexTerm& t : map.dims[d].terms) at = at + env[static_cast<size_t>(t.axis)] * t.coef;
  return at;
}

/// What may leave the image beside the column.
std::string DepthwiseTaps::rows_inside(const Env& env) {
  std::string all;
  const Operand operand = s_.operand_of(data());
  for (size_t d = 0; d < data().map.dims.size(); ++d) {
    if (d == view_.column_dim || always_inside(data().map.dims[d], operand.shape[d], axis_extents(s_.stage))) continue;
    const std::string at = k_.text_of(coordinate(data().map, d, env));
    all += fmt::format("{}{} >= 0 && {} < {}", all.empty() ? "" : " && ", at, at, k_.text_of(operand.shape[d]));
  }
  return all;
}

/// Eight neighbouring elements of `read` as floats `to`, which is declared.
void DepthwiseTaps::load_eight(const Read& read, const IndexMap& map, const StageText::Point& point,
                               const std::string& to) {
  const Operand operand = s_.operand_of(read);
  k_.line(fmt::format("alignas(16) {} bits[kVector];", memory_type(operand.dtype)));
  k_.line(copy_text(operand.dtype, kVector, "bits",
                    fmt::format("{} + {}", operand.name, k_.text_of(s_.offset(operand, map, point)))));
  k_.line("#pragma unroll");
  k_.line(fmt::format("for (int j = 0; j < kVector; ++j) {}[j] = {};", to, from_memory(k_, operand.dtype, "bits[j]")));
}

void DepthwiseTaps::load_weights(StageText::Point point) {
  k_.line("float weight[kTaps][kVector];");
  k_.line("#pragma unroll");
  k_.open("for (int tap = 0; tap < kTaps; ++tap)");
  point.env[static_cast<size_t>(view_.column_tap)] = Kernel::local("tap");
  load_eight(weights(), weights().map, point, "weight[tap]");
  k_.close();
}

void DepthwiseTaps::slide(StageText::Point point) {
  IndexMap map = data().map;  // by columns instead of taps
  for (IndexTerm& t : map.dims[view_.column_dim].terms)
    if (t.axis == view_.column_tap) t.coef = 1;
  point.env[static_cast<size_t>(view_.column_tap)] = Kernel::local("x");
  k_.line("#pragma unroll");
  k_.open("for (int x = 0; x < kSpan; ++x)");
  k_.line("float value[kVector] = {};");
  const Dim at = k_.declare_index("at", k_.text_of(coordinate(map, view_.column_dim, point.env)));
  const std::string name = k_.text_of(at);
  k_.open(fmt::format("if ({0} >= 0 && {0} < {1})", name, k_.text_of(s_.operand_of(data()).shape[view_.column_dim])));
  load_eight(data(), map, point, "value");
  k_.close();
  k_.line("#pragma unroll");
  k_.open("for (int tap = 0; tap < kTaps; ++tap)");
  k_.line("const int behind = x - tap * kDilation;");
  k_.line("if (behind < 0 || behind % kStride != 0 || behind / kStride >= kColumns) continue;");
  k_.line("#pragma unroll");
  k_.open("for (int j = 0; j < kVector; ++j)");
  k_.line("float& s = sum[behind / kStride][j];");
  k_.line("s = fmaf(value[j], weight[tap][j], s);");
  k_.close();
  k_.close();
  k_.close();
}

}  // namespace opfuse::cuda
