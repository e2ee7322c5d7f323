// offset(row, k) of an operand that is copied is affine, so it is from[row] + along(k); of rows equally far apart one
// pointer stands for all, and what is between them is part of the copy instruction. A guard that asks about taps (a
// window at the border of an image) becomes a bit for each of them, gathered once for each row.
#include "cuda/mma_copies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/mma_operands.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kBits = 32;

/// Axes of k in coordinates that may leave the tensor.
std::vector<int> guard_axes(const Stage& stage, const Read& read, const Operand& operand) {
  const std::vector<Dim> extents = axis_extents(stage);
  std::vector<int> axes;
  for (size_t d = 0; d < read.map.dims.size(); ++d) {
    if (always_inside(read.map.dims[d], operand.shape[d], extents)) continue;
    for (const IndexTerm& t : read.map.dims[d].terms)
      if (t.axis >= static_cast<int>(stage.domain.size())) axes.push_back(t.axis);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

}  // namespace

bool MmaCopies::guards_along(const StageText& s, const Expr& operand, int axis) {
  const int index = mma_read(operand);
  if (index < 0 || !s.guarded(index)) return false;
  const Read& read = s.stage.reads[static_cast<size_t>(index)];
  const std::vector<int> axes = guard_axes(s.stage, read, s.operand_of(read));
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

MmaCopies::MmaCopies(StageText& s, const TileView&, const Expr& operand, Tile tile)
    : s_(s),
      tile_(std::move(tile)),
      read_(s.stage.reads[static_cast<size_t>(mma_read(operand))]),
      index_(mma_read(operand)),
      operand_(s.operand_of(read_)),
      guarded_(s.guarded(index_)),
      ragged_(!tile_.extent.is_constant() || tile_.extent.value() % tile_.size != 0) {
  if (!guarded_) return;
  taps_ = guard_axes(s.stage, read_, operand_);
  const auto count = s.elements(taps_).constant();
  masked_ = count && *count <= kBits;
}

Dim MmaCopies::row_at(const std::string& i) {
  return s_.k.declare_index(tile_.row, fmt::format("{}0 + row + {} * kRowStep", tile_.row, i));
}

Dim MmaCopies::tap(const Env& env) const {
  Dim flat = 0;
  for (int axis : taps_) flat = flat * s_.extent(axis) + env[static_cast<size_t>(axis)];
  return flat;
}

/// Nested axes, each as far apart as all of those inside it reach.
std::optional<int64_t> MmaCopies::rows_apart() const {
  const ParamLayout& layout = s_.k.layouts()[static_cast<size_t>(read_.index)];
  std::optional<int64_t> step, reach;
  for (size_t i = tile_.axes.size(); i-- > 0;) {
    const int axis = tile_.axes[i];
    if (s_.extent(axis) == Dim(1)) continue;
    const auto own = step_along(read_.map, layout, axis);
    if (!own || (reach && *reach != *own)) return std::nullopt;
    if (!step) step = own;
    const auto extent = s_.extent(axis).constant();
    reach = extent ? std::optional(*own * *extent) : std::nullopt;
    if (!extent && i > 0) return std::nullopt;
  }
  return step;
}

std::string MmaCopies::row_offset(const StageText::Point& row) const {
  const std::string offset = s_.k.text_of(s_.offset(operand_, read_.map, row));
  return tile_.whole_steps ? fmt::format("{} + chunk * {}", offset, chunk_of(operand_.dtype)) : offset;
}

/// taps_a[i] at the coordinates of a row.
void MmaCopies::taps_of_row(const StageText::Point& row) {
  Kernel& k = s_.k;
  StageText::Point point = row;
  size_t loops = 0;
  for (int axis : taps_) {
    if (s_.extent(axis) == Dim(1)) continue;
    const std::string name = k.fresh(fmt::format("a{}", axis));
    k.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, k.text_of(s_.extent(axis))));
    point.env[static_cast<size_t>(axis)] = Kernel::local(name);
    ++loops;
  }
  const std::string bit = k.text_of(tap(point.env));
  k.line(fmt::format("taps_{}[i] |= {} ? 1u{} : 0u;", tile_.name, s_.inside(operand_, read_.map, point),
                     bit == "0" ? "" : fmt::format(" << ({})", bit)));
  while (loops-- > 0) k.close();
}

void MmaCopies::declare(const Env& outside) {
  Kernel& k = s_.k;
  const std::string rows = "kRows" + std::string(1, static_cast<char>(std::toupper(tile_.name[0])));
  k.constant(rows, tile_.size / tile_.threads);
  apart_ = rows_apart();
  if (apart_) {
    StageText::Point first{outside};
    s_.decode(k.declare_index(tile_.row, fmt::format("{}0 + row", tile_.row)), tile_.axes, first.env);
    k.line(fmt::format("const auto* start_{} = {} + ({});", tile_.name, operand_.name, row_offset(first)));
    if (!masked_ && !ragged_) return;
  } else {
    k.line(fmt::format("{} from_{}[{}];", k.index_type(), tile_.name, rows));
  }
  if (masked_)
    k.line(fmt::format("unsigned int taps_{}[{}];", tile_.name, rows));
  else if (ragged_)
    k.line(fmt::format("bool inside_{}[{}];", tile_.name, rows));
  k.line("#pragma unroll");
  k.open(fmt::format("for (int i = 0; i < {}; ++i)", rows));
  StageText::Point row{outside};
  const Dim at = row_at("i");
  if (masked_) k.line(fmt::format("taps_{}[i] = 0;", tile_.name));
  const std::string in = fmt::format("{} < {}", k.text_of(at), k.text_of(tile_.extent));
  if (ragged_ && !masked_) k.line(fmt::format("inside_{}[i] = {};", tile_.name, in));
  if (masked_ || !apart_) {
    if (ragged_ && !apart_) k.line(fmt::format("from_{}[i] = 0;", tile_.name));
    if (ragged_) k.open("if (" + in + ")");
    s_.decode(at, tile_.axes, row.env);
    if (!apart_) k.line(fmt::format("from_{}[i] = {};", tile_.name, row_offset(row)));
    if (masked_) taps_of_row(row);
    if (ragged_) k.close();
  }
  k.close();
}

/// Bytes of copy i: 16, or 0 where the guard, the rows' edge or k's says so. `outside` has the coordinates of the tile.
std::string MmaCopies::bytes(const Env& along, const std::string& within, const StageText::Point& outside) {
  if (masked_) {
    const std::string taps = fmt::format("(taps_{0}[i] & bit_{0}) != 0", tile_.name);
    return fmt::format("{} ? 16 : 0", within.empty() ? taps : within + " && " + taps);
  }
  std::string all = within;
  const auto both = [&](const std::string& condition) { all += (all.empty() ? "" : " && ") + condition; };
  if (ragged_) both(fmt::format("inside_{}[i]", tile_.name));
  if (guarded_) {
    StageText::Point point{along};
    for (int axis = 0; axis < s_.domain(); ++axis)
      point.env[static_cast<size_t>(axis)] = outside.env[static_cast<size_t>(axis)];
    s_.decode(row_at("i"), tile_.axes, point.env);
    both(s_.inside(operand_, read_.map, point));
  }
  return all.empty() ? "16" : all + " ? 16 : 0";
}

void MmaCopies::copy(const Env& along, const std::string& within, const StageText::Point& outside) {
  Kernel& k = s_.k;
  const StageText::Point zero{Env(along.size(), Dim(0))};
  const Dim step = s_.offset(operand_, read_.map, {along}) - s_.offset(operand_, read_.map, zero);
  const std::string from = k.text_of(k.declare_index("along_" + tile_.name, k.text_of(step)));
  if (masked_) {
    const std::string tap_of_step = k.text_of(k.declare_index("tap_" + tile_.name, k.text_of(tap(along))));
    k.line(fmt::format("const unsigned int bit_{} = 1u << {};", tile_.name, tap_of_step));
  }
  if (apart_) k.line(fmt::format("const auto* from_{0} = start_{0} + {1};", tile_.name, from));
  const std::string rows = fmt::format("kRows{}", static_cast<char>(std::toupper(tile_.name[0])));
  k.line("#pragma unroll");
  k.open(fmt::format("for (int i = 0; i < {}; ++i)", rows));
  const std::string count = bytes(along, within, outside);
  const std::string source = apart_ ? fmt::format("from_{} + i * kRowStep * {}", tile_.name, *apart_)
                                    : fmt::format("{} + (from_{}[i] + {})", operand_.name, tile_.name, from);
  k.line(fmt::format("copy_16(&shared.{0}[stage][at + i * kRowStep * kChunks], {1}, {2});", tile_.name, source, count));
  k.close();
}

}  // namespace opfuse::cuda
