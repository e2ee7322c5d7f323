// Tiles lie as rows of 16-byte chunks at place(row, chunk). Outside the problem they are zero.
#include "cuda/mma_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace opfuse::cuda {
namespace {

constexpr int64_t kGatheredBytes = 512;  ///< of k; more spill when all its steps are written out

}  // namespace

MmaTiles::MmaTiles(Kernel& k, const Shape& shape)
    : k_(k),
      s_(k),
      view_(mma_view(k.region, k.layouts())),
      type_(view_.a.dtype()),
      chunk_(chunk_of(type_)),
      copies_(shape.copy_a || shape.copy_b),
      fill_a_(shape.fill_a),
      fill_b_(shape.fill_b),
      fillers_(shape.fillers) {
  frame_.tile_m = shape.m;
  frame_.tile_n = shape.n;
  frame_.tile_k = shape.k;
  k_.block = static_cast<int>(shape.threads);
  step_ = known_step(shape);
  copy_ = copy_shape(shape.threads, shape.k, shape.k / chunk_, step_ ? std::max<int64_t>(1, step_.inside / chunk_) : 0,
                     shape.m, shape.n);
  const auto tile = [&](const char* name, const char* row, const std::vector<int>& axes, const Dim& extent,
                        int64_t size) { return MmaCopies::Tile{name, row, axes, extent, size, copy_, step_}; };
  if (shape.copy_a) a_.emplace(s_, view_, view_.a, tile("a", "m", view_.m, frame_.m, shape.m));
  if (shape.copy_b) b_.emplace(s_, view_, view_.b, tile("b", "n", view_.n, frame_.n, shape.n));
  if (!copies_) see_gathered(shape);
}

/// Few steps of k, such as a stem's: a thread gathers whole rows of a step. It knows their starts and taps before.
void MmaTiles::see_gathered(const Shape& shape) {
  const auto depth = frame_.k.constant();
  if (!depth || *depth * static_cast<int64_t>(byte_size(type_)) > kGatheredBytes) return;
  const CopyShape rows{shape.threads, shape.k, shape.k / chunk_, 1};
  const auto see = [&](std::optional<MmaCopies>& gathered, const Expr& operand, const MmaCopies::Tile& tile) {
    const int read = mma_read(operand);
    if (read < 0 || tile.size % shape.threads) return;
    const auto& dims = s_.stage.reads[static_cast<size_t>(read)].map.dims;
    if (std::any_of(dims.begin(), dims.end(), [](const IndexExpr& d) { return bool(d.dynamic); })) return;
    gathered.emplace(s_, view_, operand, tile);
    if (!gathered->gathers()) gathered.reset();
  };
  if (fill_a_) see(gathered_a_, view_.a, {"a", "m", view_.m, frame_.m, shape.m, rows, {}, 64});
  if (fill_b_) see(gathered_b_, view_.b, {"b", "n", view_.n, frame_.n, shape.n, rows, {}, 64});
}

/// Nobody may ask where along the axes of a step a chunk stands.
WholeStep MmaTiles::known_step(const Shape& shape) const {
  const WholeStep step = whole_step(s_.stage, view_.k, shape.k);
  const auto guarded = [&](bool copied, const Expr& operand) {
    return copied && std::any_of(step.axes.begin(), step.axes.end(),
                                 [&](int axis) { return MmaCopies::guards_along(s_, operand, axis); });
  };
  return guarded(shape.copy_a, view_.a) || guarded(shape.copy_b, view_.b) ? WholeStep{} : step;
}

/// Which chunks of which rows this thread copies, and where they lie in a tile.
void MmaTiles::declare_places() {
  k_.constant("kRowStep", copy_.rows());
  const bool several = copy_.together() > 1;
  if (several) {
    k_.constant("kColumns", copy_.columns);
    k_.constant("kTogether", copy_.together());
  }
  const char* columns = several ? "kColumns" : "kChunks";
  k_.line(fmt::format("const int chunk = (int)threadIdx.x % {};  // this thread copies {}{} k of every kRowStep-th row",
                      columns, several ? "kTogether times " : "", chunk_));
  if (several) {
    k_.line("const int order = (int)threadIdx.x / kColumns;");
    std::string row = "order / 8 * 8";
    const auto bits = row_bits(copy_);
    for (size_t b = 0; b < bits.size(); ++b) row += fmt::format(" + (order >> {} & 1) * {}", b, 1 << bits[b]);
    k_.line(fmt::format("const int row = {};  // eight threads write to all banks", row));
    k_.line("int at[kTogether];");
    k_.line("#pragma unroll");
    k_.line("for (int g = 0; g < kTogether; ++g) at[g] = place<kChunks>(row, chunk + g * kColumns);");
  } else {
    k_.line("const int row = (int)threadIdx.x / kChunks;");
    k_.line("const int at = place<kChunks>(row, chunk);");
  }
}

/// Whether a chunk's k is inside; "": all are.
std::string MmaTiles::within_depth() {
  if (frame_.k.is_constant() && frame_.k.value() % frame_.tile_k == 0) return "";
  const bool several = copy_.together() > 1;
  const std::string inside = fmt::format("step * kTileK + {} * {} < {}", several ? "(chunk + g * kColumns)" : "chunk",
                                         chunk_, k_.text_of(frame_.k));
  return several ? inside : k_.declare("bool", "within", inside);
}

/// What is known before the loop, and `fill`: step t into a stage.
void MmaTiles::declare_fill(const StageText::Point& point) {
  if (copies_) declare_places();
  if (gathers()) {
    k_.constant("kRowStep", copy_.threads);
    k_.line("const int row = (int)threadIdx.x;  // this thread gathers every kRowStep-th row");
    k_.use("place");
  }
  for (auto* operand : {&a_, &b_, &gathered_a_, &gathered_b_})
    if (*operand) (*operand)->declare(point.env);
  k_.line(fmt::format("const {} steps = {};", k_.index_type(), k_.text_of(ceil_div(frame_.k, Dim(frame_.tile_k)))));
  k_.open(fmt::format("const auto fill = [&]({} step, int stage)", k_.index_type()));
  if (copies_) {
    Env along(point.env.size(), Dim(0));
    const std::string first = step_ ? "step * kTileK" : fmt::format("step * kTileK + chunk * {}", chunk_);
    if ((a_ && !a_->counts_steps()) || (b_ && !b_->counts_steps()))
      s_.decode(k_.declare_index("k", first), view_.k, along);
    const std::string within = within_depth();
    if (a_) a_->copy(along, within, point);
    if (b_) b_->copy(along, within, point);
  }
  const auto gather = [&](std::optional<MmaCopies>& operand) { operand->gather(view_.k, frame_.k.value()); };
  if (gathered_a_) gather(gathered_a_);
  if (gathered_b_) gather(gathered_b_);
  if (!a_ && !gathered_a_ && fill_a_)
    fill_elements("a", view_.a, view_.m, "m", "kTileM", frame_.m, frame_.tile_m, point);
  if (!b_ && !gathered_b_ && fill_b_)
    fill_elements("b", view_.b, view_.n, "n", "kTileN", frame_.n, frame_.tile_n, point);
  k_.close(";");
}

/// An operand that needs more than a copy: one element after the other.
void MmaTiles::fill_elements(const std::string& tile, const Expr& value, const std::vector<int>& axes,
                             const std::string& name, const std::string& size_name, const Dim& extent, int64_t size,
                             const StageText::Point& outside) {
  k_.open(fmt::format("for (int e = (int)threadIdx.x; e < {} * kTileK; e += {})", size_name, fillers_));
  k_.line(fmt::format("const int tile_{} = e / kTileK;", name));
  k_.line("const int tile_k = e % kTileK;");
  StageText::Point point = outside;
  const Dim at = k_.declare_index(name, fmt::format("{}0 + tile_{}", name, name));
  const Dim at_k = k_.declare_index("k", "step * kTileK + tile_k");
  const std::string edge = frame_.inside(at, extent, size, at_k);
  const std::string type = memory_type(type_);
  k_.line(fmt::format("{} value = 0;", type));
  k_.open("if (" + (edge.empty() ? "true" : edge) + ")");
  s_.decode(at, axes, point.env);
  s_.decode(at_k, view_.k, point.env);
  k_.line(fmt::format("value = {};", bits_of(value, point)));
  k_.close();
  k_.line(
      fmt::format("reinterpret_cast<{0}*>(shared.{1}[stage])[place<kChunks>(tile_{2}, tile_k / {3}) * {3} + "
                  "tile_k % {3}] = value;",
                  type, tile, name, chunk_));
  k_.close();
}

/// The operand as memory holds it; of a plain read what is there.
std::string MmaTiles::bits_of(const Expr& value, const StageText::Point& point) {
  const int read = mma_read(value);
  if (read < 0) {
    ExprText text = s_.at(point);
    return to_memory(k_, value.dtype(), text.emit(value, value.dtype()));
  }
  const Read& r = s_.stage.reads[static_cast<size_t>(read)];
  const Operand operand = s_.operand_of(r);
  const std::string guard = s_.guarded(read) ? s_.inside(operand, r.map, point) : "true";
  std::string element = fmt::format("{}[{}]", operand.name, k_.text_of(s_.offset(operand, r.map, point)));
  if (guard == "true") return element;
  return fmt::format("{} ? {} : 0", k_.declare("bool", "inside", guard), element);
}

void MmaTiles::store(const StageText::Point& outside, const std::string& row, const std::string& column, int64_t vector,
                     const StoreVector& store) {
  StageText::Point point = outside;
  const Dim m = k_.declare_index("m", row);
  const Dim n = k_.declare_index("n", column);
  k_.open(
      fmt::format("if ({} < {} && {} < {})", k_.text_of(m), k_.text_of(frame_.m), k_.text_of(n), k_.text_of(frame_.n)));
  s_.decode(m, view_.m, point.env);
  s_.decode(n, view_.n, point.env);
  if (vector > 1) {
    const auto complete = [](StageText::Point& element, const std::string& j) {
      element.results = {"staging[row][column + " + j + "]"};
    };
    emit_vector(s_, point, view_.n.back(), vector, {}, complete, "kVector", store);
  } else {
    point.results = {"staging[row][column]"};
    s_.store_outputs(point);
  }
  k_.close();
}

}  // namespace opfuse::cuda
