#include "cuda/tile_frame.hpp"

#include <fmt/format.h>

namespace opfuse::cuda {

void TileFrame::place(First first, StageText::Point& point) const {
  place(first, s.k.declare_index("tile", fmt::format("({})blockIdx.x", s.k.index_type())), point);
}

void TileFrame::place(First first, const Dim& tile, StageText::Point& point) const {
  Kernel& text = s.k;
  const std::string type = text.index_type();
  Dim rest = tile;
  const auto cut = [&](const char* name, const Dim& count, const char* size) {
    if (count == Dim(1)) return text.line(fmt::format("const {} {} = 0;", type, name));
    const std::string wrapped = count.is_constant() ? text.text_of(count) : "(" + text.text_of(count) + ")";
    text.line(fmt::format("const {} {} = {} % {} * {};", type, name, text.text_of(rest), wrapped, size));
    rest = text.declare_index("rest", fmt::format("{} / {}", text.text_of(rest), wrapped));
  };
  const Dim rows = ceil_div(m, Dim(tile_m)), columns = ceil_div(n, Dim(tile_n));
  if (first == First::rows) cut("m0", rows, "kTileM");
  cut("n0", columns, "kTileN");
  if (first == First::columns) cut("m0", rows, "kTileM");
  if (!view.batch.empty()) s.decode(rest, view.batch, point.env);
}

std::string TileFrame::inside(const Dim& at, const Dim& extent, int64_t size, const Dim& at_k) const {
  std::string condition;
  if (!extent.is_constant() || extent.value() % size)
    condition = fmt::format("{} < {}", s.k.text_of(at), s.k.text_of(extent));
  if (!k.is_constant() || k.value() % tile_k)
    condition += fmt::format("{}{} < {}", condition.empty() ? "" : " && ", s.k.text_of(at_k), s.k.text_of(k));
  return condition;
}

}  // namespace opfuse::cuda
