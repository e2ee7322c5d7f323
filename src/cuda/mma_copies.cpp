// offset(row, k) of an operand that is copied is affine, so it is from[row] + along(k); of rows equally far apart one
// pointer stands for all, and what is between them is part of the copy instruction. along(k) counts steps where k's
// axes nest: step * depth, and at every so manieth step the jump by which an outer axis is more than what it holds. A
// guard that asks about taps (a window at the border of an image) becomes a bit for each of them, gathered once for
// each row.
#include "cuda/mma_copies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/mma_operands.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/views.hpp"

namespace opfuse::cuda {
namespace {

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

CopyShape copy_shape(int64_t threads, int64_t depth, int64_t chunks, int64_t apart, int64_t m, int64_t n) {
  CopyShape shape{threads, depth, chunks, chunks};
  for (int64_t columns = chunks / 2; apart && columns >= std::max<int64_t>(2, apart); columns /= 2) {
    const int64_t rows = threads / columns;
    if (columns % apart == 0 && threads % columns == 0 && rows % 8 == 0 && m % rows == 0 && n % rows == 0)
      shape.columns = columns;
  }
  return shape;
}

WholeStep whole_step(const Stage& stage, const std::vector<int>& k, int64_t depth) {
  std::vector<int> longer;
  std::copy_if(k.begin(), k.end(), std::back_inserter(longer),
               [&](int axis) { return axis_extent(stage, axis) != Dim(1); });
  if (longer.empty() && !k.empty()) longer = {k.back()};
  WholeStep step;
  for (size_t i = longer.size(); i-- > 0;) {
    step.axes.insert(step.axes.begin(), longer[i]);
    const auto extent = axis_extent(stage, longer[i]).constant();
    if (longer.size() == 1 || (extent && step.inside * *extent % depth == 0)) return step;
    if (!extent || *extent == 0 || depth % (step.inside * *extent)) return {};
    step.inside *= *extent;
  }
  return {};
}

/// Eight threads have 8 / columns rows. place XORs a chunk with bits of its row, so these rows differ in the bits that
/// the columns leave: of rows of 64 bytes, two of which share the banks, in bits 0 and 2.
std::array<int, 3> row_bits(const CopyShape& shape) {
  if (shape.chunks == 4 && shape.columns == 2) return {0, 2, 1};
  if (shape.columns == 2) return {1, 2, 0};
  if (shape.chunks > 4 && shape.columns == 4) return {2, 0, 1};
  return {0, 1, 2};
}

bool MmaCopies::guards_along(const StageText& s, const Expr& operand, int axis) {
  const int index = mma_read(operand);
  if (index < 0 || !s.guarded(index)) return false;
  const Read& read = s.stage.reads[static_cast<size_t>(index)];
  const std::vector<int> axes = guard_axes(s.stage, read, s.operand_of(read));
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

MmaCopies::MmaCopies(StageText& s, const TileView& view, const Expr& operand, Tile tile)
    : s_(s),
      tile_(std::move(tile)),
      read_(s.stage.reads[static_cast<size_t>(mma_read(operand))]),
      index_(mma_read(operand)),
      operand_(s.operand_of(read_)),
      guarded_(s.guarded(index_)),
      ragged_(!tile_.extent.is_constant() || tile_.extent.value() % tile_.size != 0) {
  if (guarded_) {
    taps_ = guard_axes(s.stage, read_, operand_);
    const auto count = s.elements(taps_).constant();
    masked_ = count && *count <= tile_.bits;
    wide_ = masked_ && *count > 32;
  }
  if (tile_.step && guarded_ == masked_) see_steps(view);
}

/// moves_, and steps_of_tap_: k = step * depth counts through the axes of k, the last one fastest. With the extents e
/// and distances d of axes from the last one on, a coordinate's quotient q[i + 1] = q[i] / e[i] moves it by d[i + 1] -
/// e[i] d[i]. Of the axes of a step the first one moves alone.
void MmaCopies::see_steps(const TileView& view) {
  const ParamLayout& layout = s_.k.layouts()[static_cast<size_t>(read_.index)];
  const int64_t depth = tile_.shape.depth, inside = tile_.step.inside;
  const auto whole = tile_.step.axes.begin() + 1;
  std::vector<Move> moves;
  std::vector<int> outer;
  std::optional<int64_t> inner = inside, reach = 0, innermost;
  for (size_t i = view.k.size(); i-- > 0;) {
    const int axis = view.k[i];
    if (s_.extent(axis) == Dim(1) || std::find(whole, tile_.step.axes.end(), axis) != tile_.step.axes.end()) continue;
    const auto step = step_along(read_.map, layout, axis);
    if (!step || !inner || (!moves.empty() && *inner % depth)) return;
    if (moves.empty())
      moves.push_back({1, *step * (depth / inside)});
    else if (*step != *reach)
      moves.push_back({*inner / depth, *step - *reach});
    if (innermost) outer.insert(outer.begin(), axis);
    const auto extent = s_.extent(axis).constant();
    reach = extent ? std::optional(*step * *extent) : std::nullopt;
    inner = extent && inner ? std::optional(*inner * *extent) : std::nullopt;
    if (!innermost) innermost = inner;
  }
  if (moves.empty()) return;
  std::vector<int> taps;
  std::copy_if(taps_.begin(), taps_.end(), std::back_inserter(taps),
               [&](int axis) { return s_.extent(axis) != Dim(1); });
  if (masked_ && (!innermost || taps != outer || *innermost % depth)) return;
  if (masked_) steps_of_tap_ = *innermost / depth;
  moves_ = moves;
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
  return chunk_.empty() ? offset : fmt::format("{} + {}", offset, chunk_);
}

/// chunk_, of a chunk that may lie in any of the axes of a step.
void MmaCopies::declare_chunk(size_t axes) {
  if (!tile_.step) return;
  const std::string first = fmt::format("chunk * {}", chunk_of(operand_.dtype));
  chunk_ = first;
  if (tile_.step.inside == 1) return;
  StageText::Point point{Env(axes, Dim(0))};
  const StageText::Point zero = point;
  s_.decode(s_.k.declare_index("k", first), tile_.step.axes, point.env);
  const Dim offset = s_.offset(operand_, read_.map, point) - s_.offset(operand_, read_.map, zero);
  chunk_ = s_.k.declare(s_.k.index_type(), "chunk_" + tile_.name, s_.k.text_of(offset));
}

/// What kColumns chunks are apart.
std::string MmaCopies::between_columns() const {
  const int64_t chunk = chunk_of(operand_.dtype), inside = tile_.step.inside;
  if (inside == 1) return fmt::format("kColumns * {}", chunk);
  const ParamLayout& layout = s_.k.layouts()[static_cast<size_t>(read_.index)];
  return fmt::format(
      "{}", tile_.shape.columns * chunk / inside * step_along(read_.map, layout, tile_.step.axes.front()).value());
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
  const char* one = wide_ ? "1ull" : "1u";
  k.line(fmt::format("taps_{}[i] |= {} ? {}{} : 0u;", tile_.name, s_.inside(operand_, read_.map, point), one,
                     bit == "0" ? "" : fmt::format(" << ({})", bit)));
  while (loops-- > 0) k.close();
}

void MmaCopies::declare(const Env& outside) {
  Kernel& k = s_.k;
  const std::string rows = "kRows" + std::string(1, static_cast<char>(std::toupper(tile_.name[0])));
  k.constant(rows, tile_.size / tile_.shape.rows());
  apart_ = rows_apart();
  declare_chunk(outside.size());
  if (apart_) {
    StageText::Point first{outside};
    s_.decode(k.declare_index(tile_.row, fmt::format("{}0 + row", tile_.row)), tile_.axes, first.env);
    k.line(fmt::format("const auto* start_{} = {} + ({});", tile_.name, operand_.name, row_offset(first)));
    if (!masked_ && !ragged_) return;
  } else {
    k.line(fmt::format("{} from_{}[{}];", k.index_type(), tile_.name, rows));
  }
  if (masked_)
    k.line(fmt::format("unsigned {} taps_{}[{}];", wide_ ? "long long" : "int", tile_.name, rows));
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

/// along_a and bit_a of a step, from its number.
void MmaCopies::count_steps() {
  Kernel& k = s_.k;
  const auto quotient = [](int64_t every) { return every == 1 ? "step" : fmt::format("step / {}", every); };
  std::string along;
  for (const Move& move : moves_)
    along += fmt::format("{}{} * {}", along.empty() ? "" : " + ", quotient(move.every), move.by);
  k.line(fmt::format("const {} along_{} = {};", k.index_type(), tile_.name, along));
  if (masked_)
    k.line(fmt::format("const unsigned int bit_{} = 1u << {};", tile_.name,
                       steps_of_tap_ == 1 ? "step" : "(" + quotient(steps_of_tap_) + ")"));
}

/// The same from the axes of k.
void MmaCopies::decode_step(const Env& along) {
  Kernel& k = s_.k;
  const StageText::Point zero{Env(along.size(), Dim(0))};
  const Dim step = s_.offset(operand_, read_.map, {along}) - s_.offset(operand_, read_.map, zero);
  k.line(fmt::format("const {} along_{} = {};", k.index_type(), tile_.name, k.text_of(step)));
  if (!masked_) return;
  k.line(fmt::format("const unsigned int bit_{} = 1u << ({});", tile_.name, k.text_of(tap(along))));
}

void MmaCopies::copy(const Env& along, const std::string& within, const StageText::Point& outside) {
  Kernel& k = s_.k;
  counts_steps() ? count_steps() : decode_step(along);
  const std::string from = "along_" + tile_.name;
  if (apart_) k.line(fmt::format("const auto* from_{0} = start_{0} + {1};", tile_.name, from));
  const std::string rows = fmt::format("kRows{}", static_cast<char>(std::toupper(tile_.name[0])));
  k.line("#pragma unroll");
  k.open(fmt::format("for (int i = 0; i < {}; ++i)", rows));
  const std::string count = bytes(along, within, outside);
  const std::string source = apart_ ? fmt::format("from_{} + i * kRowStep * {}", tile_.name, *apart_)
                                    : fmt::format("{} + (from_{}[i] + {})", operand_.name, tile_.name, from);
  const bool several = tile_.shape.together() > 1;
  if (several) {
    k.line("#pragma unroll");
    k.open("for (int g = 0; g < kTogether; ++g)");
  }
  k.line(fmt::format("copy_16(&shared.{0}[stage][at{1} + i * kRowStep * kChunks], {2}{3}, {4});", tile_.name,
                     several ? "[g]" : "", source, several ? " + g * " + between_columns() : "", count));
  if (several) k.close();
  k.close();
}

void MmaCopies::gather(const std::vector<int>& axes, int64_t depth) {
  Kernel& k = s_.k;
  const int64_t chunk = chunk_of(operand_.dtype);
  const std::string type = memory_type(operand_.dtype);
  const std::string rows = fmt::format("kRows{}", static_cast<char>(std::toupper(tile_.name[0])));
  for (const auto& [variable, count] : {std::pair("i", rows), std::pair("c", std::string("kChunks"))}) {
    k.line("#pragma unroll");
    k.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
  }
  k.line(fmt::format("alignas(16) {} part[{}];", type, chunk));
  k.line("#pragma unroll");
  k.open(fmt::format("for (int j = 0; j < {}; ++j)", chunk));
  Env along(static_cast<size_t>(s_.axis_count()), Dim(0));
  const StageText::Point zero{along};
  const Dim at = k.declare_index("k", fmt::format("step * kTileK + c * {} + j", chunk));
  s_.decode(at, axes, along);
  const Dim step = s_.offset(operand_, read_.map, {along}) - s_.offset(operand_, read_.map, zero);
  std::string when;
  const auto both = [&](const std::string& condition) { when += (when.empty() ? "" : " && ") + condition; };
  if (depth % tile_.shape.depth) both(fmt::format("{} < {}", k.text_of(at), depth));
  if (masked_) both(fmt::format("(taps_{}[i] >> ({}) & 1) != 0", tile_.name, k.text_of(tap(along))));
  if (ragged_ && !masked_) both(fmt::format("inside_{}[i]", tile_.name));
  const std::string from = apart_
                               ? fmt::format("start_{}[i * kRowStep * {} + {}]", tile_.name, *apart_, k.text_of(step))
                               : fmt::format("{}[from_{}[i] + {}]", operand_.name, tile_.name, k.text_of(step));
  k.line(fmt::format("part[j] = {};", when.empty() ? from : fmt::format("{} ? {} : ({})0", when, from, type)));
  k.close();
  k.line(
      fmt::format("*reinterpret_cast<uint4*>(&shared.{}[stage][place<kChunks>(row + i * kRowStep, c)]) = "
                  "*reinterpret_cast<const uint4*>(part);",
                  tile_.name));
  k.close();
  k.use("keep_order");
  k.line("keep_order();");
  k.close();
}

}  // namespace opfuse::cuda
