// Without byte products, even and odd channels of a word are widened to i16 and multiplied in pairs: exact too, since
// 2 * 255 * 128 is far from the end of i32.
#include "cpu/contraction/codes.hpp"

#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/attention/attention_codes.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/generator.hpp"
#include "region/single_stage.hpp"
#include "tensor/paired_codes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kPairedVector = 32;  ///< bytes: the one that AVX2 has
constexpr int64_t kManyVectors = 8;    ///< of which one more that is multiplied in vain is little

/// The operand's channels of a step are contiguous: in one block, or dense and last.
bool channels_contiguous(const ParamLayout& l, int dim, int64_t step) {
  if (l.layout.blocks.empty()) return l.layout.order.back() == dim && l.strides.back() == Dim(1);
  const std::vector<Block>& blocks = l.layout.blocks;
  return blocks.size() == 1 && blocks[0].axis == dim && blocks[0].factor % step == 0 && l.strides.back() == Dim(1);
}

/// An image whose rows are dense.
bool planes_apart(const ParamLayout& l) {
  return l.layout == Layout::dense(l.layout.order.size()) && l.strides.back() == Dim(1);
}

/// Padding of another code than 0 takes part in the sums: by taps, so what may leave the image must have some.
bool fillable(const Stage& stage, const ContractionView& view) {
  const auto stays = [&](const SlidingDim& d) {
    return d.stride == 1 && d.offset == 0 && (d.axis < 0 || axis_extent(stage, d.axis) == d.extent);
  };
  return !view.guarded || view.padding == 0 ||
         std::all_of(view.sliding.begin(), view.sliding.end(),
                     [&](const SlidingDim& d) { return d.tap >= 0 || stays(d); });
}

bool plain(const Stage& stage, const ContractionView& view) {
  return view.phases.empty() && view.gates.empty() && view.factor < 0 && view.channel >= 0 &&
         view.value.op() == ExprOp::read && fillable(stage, view);
}

}  // namespace

bool has_byte_products(const TargetInfo& target) {
  if (target.has("avxvnni") && target.vector_bytes <= 32) return true;
  return target.has("avx512vnni") && (target.vector_bytes == 64 || target.has("avx512vl"));
}

int64_t registers_of_products(const ElementTypes& types, int64_t vectors, const TargetInfo& target) {
  if (types.unit() == 1 || has_byte_products(target)) return 0;
  // the odd channels' weights and data, a product that waits for its sum; of many, what rounds sums stays in some
  const bool many = target.vector_registers > 16;
  return vectors + (many ? 7 : 2);
}

double word_operations(const RegisterTile& tile) {
  const auto vectors = static_cast<double>(tile.vectors), pixels = static_cast<double>(tile.width);
  return (4 * vectors * pixels + 2.75 * pixels + 3 * vectors) / (vectors * pixels);
}

RegisterTile tile_of_words(const TileProblem& problem, const TargetInfo& target) {
  const int64_t count = ceil_of(problem.channels, problem.types.lanes(target));
  RegisterTile best;
  double least = INFINITY;
  for (int64_t v = 1; v <= std::min<int64_t>(4, count); ++v)
    for (int64_t w = 1; w <= problem.pixels * problem.rows; ++w) {
      if (!fits({v, w}, target, registers_of_products(problem.types, v, target))) break;
      const double blocks = static_cast<double>(ceil_of(count, v) * v) / static_cast<double>(count);
      if (const double each = blocks * word_operations({v, w}); each < 0.999 * least) least = each, best = {v, w};
    }
  return best;
}

bool may_pair_codes(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  const int64_t depth = view.channel < 0 ? 0 : channel_depth(stage, view);
  return view.types.sum == DType::i32 && view.types.unit() > 1 && !has_byte_products(target) &&
         target.vector_bytes == kPairedVector && plain(stage, view) && view.taps.empty() && !view.guarded &&
         !view.group_out && depth > 0 && depth % paired::kOctet == 0;
}

RegisterTile tile_of_pairs(int64_t channels, const TargetInfo& target) {
  const int64_t count = ceil_of(channels, target.lanes_f32());
  return count % 2 == 0 || count >= kManyVectors ? RegisterTile{2, 4} : RegisterTile{1, 8};
}

Layout code_weights(const ContractionView& view, size_t rank, int64_t block, int64_t step) {
  const int64_t unit = view.types.unit(), units = step / unit;
  Layout layout = Layout::dense(rank);
  std::erase(layout.order, view.weights_vec_dim);
  std::erase(layout.order, view.weights_channel_dim);
  layout.order.insert(layout.order.begin(), {view.weights_vec_dim, view.weights_channel_dim});
  if (units > 1) layout.blocks.push_back({view.weights_channel_dim, units});
  layout.blocks.push_back({view.weights_vec_dim, block});
  layout.blocks.push_back({view.weights_channel_dim, unit});
  return layout;
}

std::optional<CodesFit> fit_codes(const Region& region, const ContractionView& view,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (!plain(stage, view)) return std::nullopt;
  const int64_t lanes = view.types.lanes(target), depth = channel_depth(stage, view);
  const auto at = [&](int read) { return static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index); };
  const ParamLayout &data = layouts[at(view.data)], &weights = layouts[at(view.weights)];
  const int64_t block = weights.layout.block_of(view.weights_vec_dim);
  if (region.params[at(view.weights)].role != ParamRole::constant || block % lanes != 0) return std::nullopt;
  if (weights.layout.pairs > 0) {
    Layout order = weights.layout;
    order.pairs = 0;
    const bool fits = may_pair_codes(stage, view, target) &&
                      channels_contiguous(data, view.data_channel_dim, paired::kOctet) &&
                      order == code_weights(view, order.order.size(), block, paired::kOctet);
    return fits ? std::optional(CodesFit{block / lanes, paired::kOctet, false, true}) : std::nullopt;
  }
  if (joins_taps(region, view, target) &&
      weights.layout == code_weights(view, weights.layout.order.size(), block, kJoinedChannels))
    return planes_apart(data) ? std::optional(CodesFit{block / lanes, kJoinedChannels, true}) : std::nullopt;
  for (const int64_t step : {lanes, matrix_channels(view.types), kFewChannels}) {
    const bool few = step == kFewChannels && depth <= step && !may_multiply_matrices(stage, view, target);
    if (step < lanes && !few) continue;
    if (!(weights.layout == code_weights(view, weights.layout.order.size(), block, step))) continue;
    if (!channels_contiguous(data, view.data_channel_dim, step)) return std::nullopt;
    if (view.group_out && (view.group_out % block != 0 || depth % step != 0)) return std::nullopt;
    return CodesFit{block / lanes, step};
  }
  return std::nullopt;
}

namespace {

/// The types of the product that is the region's first stage; depthwise ones are windows.
std::optional<ElementTypes> product_types(const Region& region) {
  if (region.stages.empty() || region.stages[0].reductions.size() != 1) return std::nullopt;
  const auto found = view_products(region, 0);
  if (const auto* view = std::get_if<ContractionView>(&found)) return view->types;
  const auto taps = view_window(region, 0);
  const auto* window = std::get_if<WindowView>(&taps);
  if (!window || window->value.op() != ExprOp::mul || window->value.dtype() != DType::i32) return std::nullopt;
  return ElementTypes{.data = DType::u8, .weights = DType::i8, .sum = DType::i32};
}

}  // namespace

bool sums_codes(const Region& region) {
  const auto types = product_types(region);
  return types && types->sum == DType::i32;
}

bool rounds_sums_to_halves(const Region& region) {
  const auto types = product_types(region);
  if (types && types->data == DType::bf16) return true;
  const Anchor anchor = region.stages.empty() ? Anchor::map : region.stages.back().anchor;
  return (anchor == Anchor::contraction || anchor == Anchor::window) &&
         std::any_of(region.params.begin(), region.params.end(), [](const Param& param) {
           return param.role == ParamRole::output && param.type.dtype == DType::bf16;
         });
}

namespace {

/// Features that only products of these kinds use.
struct ProductFeature {
  const char* name;
  bool codes, halves;
  enum In { all, matrices, windows } in = all;  ///< which kernels of these: of matrix registers, of depthwise sums
};
constexpr ProductFeature kProductFeatures[] = {{"avx512vnni", true, false},
                                               {"avxvnni", true, false},
                                               {"avx512vbmi", true, false, ProductFeature::windows},
                                               {"avx512bf16", false, true},
                                               {"amx-tile", true, true, ProductFeature::matrices},
                                               {"amx-int8", true, false, ProductFeature::matrices},
                                               {"amx-bf16", false, true, ProductFeature::matrices}};

}  // namespace

std::vector<std::string> needed_features(const Region& region, const Schedule& schedule, const TargetInfo& target) {
  std::vector<std::string> needed = target.features;
  if (target.beside.empty()) return needed;
  const auto types = product_types(region);
  const bool codes =
      (types && types->sum == DType::i32) || multiplies_codes(region, target) || schedule.get("digits", 0) != 0;
  const bool halves = rounds_sums_to_halves(region);
  std::erase_if(needed, [&](const std::string& feature) {
    if (std::find(target.beside.begin(), target.beside.end(), feature) == target.beside.end()) return false;
    for (const ProductFeature& f : kProductFeatures)
      if (feature == f.name)
        return !((codes && f.codes) || (halves && f.halves)) ||
               (f.in == ProductFeature::matrices && schedule.get("matrix", 0) == 0) ||
               (f.in == ProductFeature::windows && schedule.skeleton != "window");
    return !codes && !halves;
  });
  return needed;
}

std::string skeleton_as_wished(const Region& region, const TargetInfo& target) {
  return schedule_as_wished(region, target).skeleton;
}

Schedule schedule_as_wished(const Region& region, const TargetInfo& target) {
  std::vector<ParamLayout> layouts;
  const LayoutWish wish = wish_layouts(region, target);
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Shape& shape = region.params[p].type.shape;
    const Layout layout = wish.params[p].value_or(Layout::dense(shape.rank()));
    layouts.push_back({layout, dense_strides(layout, shape)});
  }
  return choose_schedule(region, layouts, target);
}

std::optional<std::string> no_codes_kernel(const Region& region, const TargetInfo& target) {
  if (resembles_attention(region))
    return "an attention multiplies bytes where queries, keys, weights and values are codes, with AVX-512 VNNI";
  if (!is_single_stage(region)) return "more than one stage";
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view && !std::holds_alternative<WindowView>(view_window(region, 0))) return std::get<std::string>(found);
  if (view && view->types.sum != DType::i32) return "no sum of codes";
  const std::string skeleton = skeleton_as_wished(region, target);
  const bool tiled = skeleton == "contraction" || skeleton == "window";
  return tiled ? std::nullopt : std::optional<std::string>("its operands cannot lie as it needs them");
}

}  // namespace opfuse
