#include "program/image_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "program/body.hpp"
#include "program/lifetimes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kUsualBatch = 8;  ///< decides how many launches loop; whether they do, the batch of the run

class Images {
 public:
  explicit Images(const Program& program, std::string symbol)
      : program_(program), symbol_(std::move(symbol)), batch_(Dim::symbol(symbol_)) {}

  /// Nothing but the image itself decides what the launch computes for it.
  bool separate(const Launch& launch) const {
    if (launch.reference) return false;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      if (!(launch.region.params[i].role == ParamRole::constant ? shared(launch.buffers[i]) : map(launch.buffers[i])))
        return false;
    const std::vector<Stage>& stages = launch.region.stages;
    return std::all_of(stages.begin(), stages.end(), [&](const Stage& s) { return separate(launch.region, s); });
  }

  /// A constant.
  bool shared(int buffer) const {
    return program_.buffers[static_cast<size_t>(root_of(program_, buffer))].kind == BufferKind::constant;
  }

  /// Bytes of an image in the root of a map.
  int64_t bytes(int buffer) const {
    const Buffer& root = program_.buffers[static_cast<size_t>(root_of(program_, buffer))];
    return bytes_of(root).evaluate({{symbol_, 1}});
  }

 private:
  const Program& program_;
  std::string symbol_;
  Dim batch_;

  bool open(const Dim& dim) const {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return symbols.contains(symbol_);
  }
  bool constant(const std::vector<Dim>& dims, size_t from) const {
    return std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(from), dims.end(),
                       [](const Dim& d) { return d.is_constant(); });
  }
  bool of_images(const std::vector<Dim>& dims) const { return !dims.empty() && dims[0] == batch_ && constant(dims, 1); }

  /// Images lie one after the other, in the buffer and in what it is a part of.
  bool map(int buffer) const {
    const Buffer& b = program_.buffers[static_cast<size_t>(buffer)];
    if (shared(buffer) || !of_images(b.type.shape.dims)) return false;
    if (b.layout.order.empty() || b.layout.order[0] != 0 || b.layout.block_of(0) != 1) return false;
    if (b.view_of < 0) return true;
    if (!b.view_offset.empty() && !(constant(b.view_offset, 0) && b.view_offset[0] == Dim(0))) return false;
    return map(b.view_of);
  }

  bool is_image(const IndexExpr& e) const {
    return !e.dynamic && e.offset == Dim(0) && e.terms.size() == 1 && e.terms[0] == IndexTerm{1, 0, 1, 0};
  }
  bool is_free(const IndexExpr& e) const {
    const auto free = [&](const IndexTerm& t) { return t.axis != 0 && !open(t.coef) && !open(t.div) && !open(t.mod); };
    return !e.dynamic && !open(e.offset) && std::all_of(e.terms.begin(), e.terms.end(), free);
  }
  /// Coordinates of a tensor: of an image by the first axis, of anything else without it.
  bool keeps_images(const IndexMap& map, bool images) const {
    for (size_t d = 0; d < map.dims.size(); ++d)
      if (!(images && d == 0 ? is_image(map.dims[d]) : is_free(map.dims[d]))) return false;
    return !images || !map.dims.empty();
  }
  /// Which image it is, or how many there are.
  bool names_image(const Expr& value) const {
    bool found = false;
    value.visit([&](const Expr& e) {
      found |= (e.op() == ExprOp::coord && e.index() == 0) || (e.op() == ExprOp::extent && open(e.dim()));
    });
    return found;
  }

  bool separate(const Region& region, const Stage& stage) const {
    if (!of_images(stage.domain) || !constant(stage.reduce, 0)) return false;
    const auto is_map = [&](int param) { return of_images(region.params[static_cast<size_t>(param)].type.shape.dims); };
    for (const Read& r : stage.reads)
      if (!keeps_images(r.map, r.stage >= 0 || is_map(r.index))) return false;
    for (const Reduction& r : stage.reductions)
      if (names_image(r.value)) return false;
    return std::all_of(stage.outputs.begin(), stage.outputs.end(), [&](const StageOutput& o) {
      return !names_image(o.value) && (o.param < 0 || (is_map(o.param) && keeps_images(o.map, true)));
    });
  }
};

/// Of leading launches of separate images.
std::vector<ImageTraffic> leading(const Program& program, const Images& images) {
  std::vector<ImageTraffic> all;
  std::set<int> weights;
  for (const Launch& launch : program.launches) {
    if (body_of(program, all.size()) || !images.separate(launch)) break;
    ImageTraffic& traffic = all.emplace_back();
    for (int b : launch.buffers) {
      if (!images.shared(b))
        traffic.maps.push_back(images.bytes(b));
      else if (const int root = root_of(program, b); weights.insert(root).second)
        traffic.weights += bytes_of(program.buffers[static_cast<size_t>(root)]).value();
    }
  }
  return all;
}

/// All but constants and maps that only these launches touch follow.
void follow_images(Program& program, size_t launches) {
  const std::vector<Lifetime> lives = lifetimes(program);
  for (size_t l = 0; l < launches; ++l)
    for (int b : program.launches[l].buffers) {
      const auto root = static_cast<size_t>(root_of(program, b));
      const BufferKind kind = program.buffers[root].kind;
      const bool inside = kind == BufferKind::intermediate && lives[root].last < static_cast<int>(launches);
      program.launches[l].steps.push_back({.moves = kind != BufferKind::constant && !inside});
    }
}

}  // namespace

void loop_over_images(Program& program, const ImageCaches& caches, int64_t arena_comparisons) {
  if (program.launches.empty() || program.launches[0].reference) return;
  const Region& first = program.launches[0].region;
  if (first.stages.empty() || first.stages[0].domain.empty() || first.stages[0].domain[0].op() != DimOp::symbol) return;
  const std::string symbol = first.stages[0].domain[0].symbol_name();
  const std::vector<ImageTraffic> launches = leading(program, Images(program, symbol));
  const size_t count = groups_by_image(launches, kUsualBatch, caches);
  if (count < 2) return;
  int64_t from = 2, largest = 0;
  while (from < kUsualBatch && saved_by_image(launches, count, from, caches) <= 0) ++from;
  for (size_t l = 0; l < count; ++l)
    for (int64_t map : launches[l].maps) largest = std::max(largest, map);
  program.bodies.insert(program.bodies.begin(), {.launches = static_cast<int>(count),
                                                 .times = Dim::symbol(symbol),
                                                 .of = "image",
                                                 .symbol = symbol,
                                                 .from = from});
  follow_images(program, count);
  program.notes.push_back(
      fmt::format("{} launches run image by image from {} = {} on: maps of at most {:.2f} MB between them", count,
                  symbol, from, 1e-6 * static_cast<double>(largest)));
  plan_memory(program, arena_comparisons);
  verify(program);
}

}  // namespace opfuse
