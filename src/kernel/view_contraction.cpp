// Recognition of contractions. Terms with a divisor appear only for groups:
//   data channel = (o / (O/G)) * (C/G) + i
#include <algorithm>

#include "kernel/reads.hpp"
#include "kernel/view_parts.hpp"
#include "region/dependence.hpp"

namespace opfuse {
namespace {

constexpr int64_t kHalfOfCodes = 128;

class ContractionFinder {
 public:
  ContractionFinder(const Region& region, const Stage& stage) : region_(region), stage_(stage) {}

  std::variant<ContractionView, std::string> find() {
    if (stage_.reductions.empty() || stage_.reductions[0].kind != ReduceKind::sum) return "not one sum";
    const Expr& e = stage_.reductions[0].value;
    codes_ = e.dtype() == DType::i32;
    if (e.op() != ExprOp::mul || (e.dtype() != DType::f32 && !codes_)) return "not a sum of f32 products, nor of codes";
    if (codes_ && stage_.reductions.size() > 1) return "several sums of codes";
    if (mentions(e, ExprOp::coord)) return "the product depends on coordinates";
    std::string why = "no operand is a plain read of weights";
    for (int side : {1, 0}) {
      view_ = {};
      Expr w = code_of(e.args()[static_cast<size_t>(side)]);
      const Expr& factor = e.args()[static_cast<size_t>(1 - side)];
      shifted_ = codes_ && is_shifted(factor);
      const Expr x = code_of(shifted_ ? factor.args()[0] : factor);
      halves_ = is_half(w);
      if (halves_) w = w.args()[0];
      widened_ = halves_ && (!holds_half(x) || w.dtype() == DType::f16);
      weights_guarded_ = w.op() == ExprOp::select && w.args()[0].op() == ExprOp::in_bounds &&
                         w.args()[1].op() == ExprOp::read && w.args()[1].index() == w.args()[0].index() &&
                         w.args()[2].is_constant() && w.args()[2].value() == 0;
      if (weights_guarded_) w = w.args()[1];
      if (w.op() != ExprOp::read) continue;
      view_.weights = w.index();
      why = fill(x);
      if (why.empty()) why = find_gates(x);
      if (why.empty()) return view_;
    }
    return why;
  }

 private:
  const Region& region_;
  const Stage& stage_;
  ContractionView view_;
  bool weights_guarded_ = false;
  bool codes_ = false;  ///< i32 products of bytes

  bool shifted_ = false;  ///< the data are i8, to which 128 is added
  bool halves_ = false;   ///< weights lie in memory as f16 or bf16, the sum is one of f32
  bool widened_ = false;  ///< and become f32 for it, whatever the data are

  static bool is_half(const Expr& e) {
    return e.op() == ExprOp::cast && e.dtype() == DType::f32 && e.args()[0].op() == ExprOp::read &&
           (e.args()[0].dtype() == DType::bf16 || e.args()[0].dtype() == DType::f16);
  }
  static bool holds_half(const Expr& e) {
    bool holds = false;
    e.visit([&](const Expr& x) { holds |= is_half(x); });
    return holds;
  }

  static bool is_shifted(const Expr& e) {
    return e.op() == ExprOp::add && e.args()[1].is_constant() && e.args()[1].integer_value() == kHalfOfCodes;
  }
  /// What is widened to i32 for a product of codes.
  Expr code_of(const Expr& factor) const { return codes_ && factor.op() == ExprOp::cast ? factor.args()[0] : factor; }

  const IndexMap& map_of(int read) const { return stage_.reads[static_cast<size_t>(read)].map; }

  std::string fill(const Expr& data) {
    const DType weights = dtype_of(region_, stage_.reads[static_cast<size_t>(view_.weights)]);
    if (!halves_ && weights != (codes_ ? DType::i8 : DType::f32))
      return codes_ ? "weights are not i8" : "weights are not f32";
    if (widened_ && !is_constant(region_, stage_.reads[static_cast<size_t>(view_.weights)]))
      return "16-bit weights are not constant";
    if (std::string why = find_vec(); !why.empty()) return why;
    if (std::string why = find_data(data); !why.empty()) return why;
    if (std::string why = find_channel(); !why.empty()) return why;
    const Read& read = stage_.reads[static_cast<size_t>(view_.data)];
    auto sliding =
        sliding_dims(stage_, read.map, shape_read_by(region_, read), view_.vec, view_.channel, view_.data_channel_dim);
    if (!sliding || !each_axis_once(*sliding)) return "the data's index map is not a sliding window";
    view_.sliding = *sliding;
    assign_axes();
    view_.types = types();
    view_.factor = find_factor();
    return "";
  }

  ElementTypes types() const {
    const auto of = [&](int read) { return dtype_of(region_, stage_.reads[static_cast<size_t>(read)]); };
    const DType sum = stage_.reductions[0].value.dtype();
    return {of(view_.data), of(view_.weights), sum, stage_.outputs.empty() ? sum : stage_.outputs[0].dtype};
  }

  /// The other sums: each multiplies the same data with constants that lie as the first one's weights.
  std::string find_gates(const Expr& data) {
    const auto type_of = [&](int read) -> const Param& {
      return region_.params[static_cast<size_t>(stage_.reads[static_cast<size_t>(read)].index)];
    };
    for (size_t i = 1; i < stage_.reductions.size(); ++i) {
      const Expr& e = stage_.reductions[i].value;
      if (stage_.reductions[i].kind != ReduceKind::sum || e.op() != ExprOp::mul) return "a sum of something else";
      const bool left = e.args()[0] == data;
      Expr w = e.args()[left ? 1 : 0];
      if (widened_ && is_half(w)) w = w.args()[0];
      if (!(e.args()[left ? 0 : 1] == data) || w.op() != ExprOp::read) return "sums of different data";
      const Read& read = stage_.reads[static_cast<size_t>(w.index())];
      if (read.stage >= 0 || !(read.map == map_of(view_.weights)) || !(type_of(w.index()) == type_of(view_.weights)) ||
          type_of(w.index()).role != ParamRole::constant)
        return "sums with different weights";
      view_.gates.push_back(w.index());
    }
    return "";
  }

  /// The weights' own output axis: plain in exactly one weights dimension and absent from other roles.
  std::string find_vec() {
    const IndexMap& map = map_of(view_.weights);
    if (has_dynamic(map)) return "weights are indexed dynamically";
    const Expr& e = stage_.reductions[0].value;
    std::set<int> elsewhere;
    for (int r : reads_used(e)) {
      if (r == view_.weights) continue;
      for (const IndexExpr& d : map_of(r).dims)
        for (const IndexTerm& t : d.terms)
          if (plain(t)) elsewhere.insert(t.axis);
    }
    const auto domain = static_cast<int>(stage_.domain.size());
    struct Candidate {
      int axis;
      size_t dim;
    };
    std::vector<Candidate> candidates;
    for (size_t d = 0; d < map.dims.size(); ++d) {
      const IndexExpr& x = map.dims[d];
      if (x.terms.size() > 1 || !(x.offset == Dim(0))) {
        const auto phase = phase_dim(x, extent_of_weights(d), elsewhere);
        if (!phase) return "weights are indexed by sums";
        view_.phases.push_back(*phase);
        continue;
      }
      if (x.terms.empty()) continue;
      if (!plain(x.terms[0]) || !(x.terms[0].coef == Dim(1))) return "weights are indexed with a stride";
      const int axis = x.terms[0].axis;
      if (axis < domain && !elsewhere.count(axis)) candidates.push_back({axis, d});
    }
    for (const Candidate& c : candidates) {
      const auto phase = candidates.size() > 1 ? phase_dim(map.dims[c.dim], extent_of_weights(c.dim), elsewhere)
                                               : std::optional<PhaseDim>();
      if (phase) {
        view_.phases.push_back(*phase);
        continue;
      }
      if (view_.vec >= 0) return "weights have two output axes";
      view_.vec = c.axis;
      view_.weights_vec_dim = static_cast<int>(c.dim);
    }
    const bool missing =
        std::any_of(view_.phases.begin(), view_.phases.end(), [](const PhaseDim& p) { return p.missing > 0; });
    if (weights_guarded_ && !missing) return "weights have a guard";
    return view_.vec < 0 ? "weights have no output axis" : "";
  }

  const Dim& extent_of_weights(size_t dim) const {
    return shape_read_by(region_, stage_.reads[static_cast<size_t>(view_.weights)])[dim];
  }

  /// stride * tap + phase - missing, all of a phase's weights but those that are missing. A phase shares a dimension of
  /// the result with other axes: that tells it from an output axis.
  std::optional<PhaseDim> phase_dim(const IndexExpr& x, const Dim& extent, const std::set<int>& elsewhere) const {
    const auto domain = static_cast<int>(stage_.domain.size());
    PhaseDim phase;
    int64_t stride = 0;
    for (const IndexTerm& t : x.terms) {
      const bool known = plain(t) && (t.axis >= domain || (t.coef == Dim(1) && !elsewhere.count(t.axis)));
      int& axis = t.axis < domain ? phase.axis : phase.tap;
      if (!known || axis >= 0) return std::nullopt;
      axis = t.axis;
      if (t.axis >= domain) stride = *t.coef.constant();
    }
    if (phase.axis < 0 || !x.offset.is_constant() || !shares_result(phase.axis)) return std::nullopt;
    const auto phases = axis_extent(stage_, phase.axis).constant(), all = extent.constant();
    const auto taps = phase.tap < 0 ? std::optional<int64_t>(1) : axis_extent(stage_, phase.tap).constant();
    phase.missing = -*x.offset.constant();
    if (!phases || !all || !taps || (phase.tap >= 0 && stride != *phases)) return std::nullopt;
    if (phase.missing < 0 || phase.missing >= *phases || (phase.missing > 0 && !weights_guarded_)) return std::nullopt;
    return *taps * *phases - phase.missing == *all ? std::optional(phase) : std::nullopt;
  }

  bool shares_result(int axis) const {
    for (const StageOutput& o : stage_.outputs)
      for (const IndexExpr& d : o.map.dims)
        for (const IndexTerm& t : d.terms)
          if (t.axis == axis && d.terms.size() < 2) return false;
    return true;
  }

  /// Domain axes, but the output channels', that a read is indexed by.
  std::set<int> moving_axes(int read) const {
    std::set<int> axes = axes_of(map_of(read));
    std::erase_if(axes, [&](int a) { return a == view_.vec || a >= static_cast<int>(stage_.domain.size()); });
    return axes;
  }

  static bool within(const std::set<int>& few, const std::set<int>& many) {
    return few.size() < many.size() && std::includes(many.begin(), many.end(), few.begin(), few.end());
  }

  std::string find_data(const Expr& data) {
    Expr inner = data;
    if (data.op() == ExprOp::select && data.args()[0].op() == ExprOp::in_bounds) {
      const Expr& fill = data.args()[2];
      if (!fill.is_constant()) return "the padding value is computed";
      if (codes_) view_.padding = fill.integer_value() + (shifted_ ? kHalfOfCodes : 0);
      if (!codes_ && fill.value() != 0) return "the padding value is not zero";
      view_.guarded = true;
      view_.data = data.args()[0].index();
      inner = assume_inside(data.args()[1], view_.data, true);
    }
    if (mentions(inner, ExprOp::in_bounds)) return "the data has more than one guard";
    for (int r : reads_used(inner)) {
      if (view_.guarded && r == view_.data) continue;
      const auto axes = moving_axes(r);
      if (axes.empty() && reads_used(inner).size() > 1) continue;              // a per-channel operand of the prologue
      if (view_.data >= 0 && within(axes, moving_axes(view_.data))) continue;  // a gate: of channel and image
      if (view_.data >= 0 && (view_.guarded || !within(moving_axes(view_.data), axes)))
        return "two reads of the data move with the output";
      view_.data = r;
    }
    if (view_.data < 0 || has_dynamic(map_of(view_.data))) return "no data operand";
    if (view_.data == view_.weights) return "the product is a square";  // a norm's row
    const DType data_type = dtype_of(region_, stage_.reads[static_cast<size_t>(view_.data)]);
    if (codes_ && data_type != (shifted_ ? DType::i8 : DType::u8)) return "the data are not codes";
    const bool both = halves_ && !widened_, maps = !codes_ && !both && data_type == DType::f16;
    if (!codes_ && !maps && data_type != (both ? DType::bf16 : DType::f32)) return "the data is not as the weights are";
    if (codes_ && inner.op() != ExprOp::read) return "the codes are computed";
    if ((both || maps) && !is_half(inner)) return "the 16-bit numbers are computed";
    if (both || maps) inner = inner.args()[0];
    view_.value = inner;
    return "";
  }

  /// The reduce axis that stands alone (but for a group) in a data dimension that it never leaves, and in a weights
  /// dimension. The taps of a single output stand alone too, so the first such dimension is the channel.
  std::string find_channel() {
    const IndexMap& map = map_of(view_.data);
    const auto domain = static_cast<int>(stage_.domain.size());
    for (size_t d = 0; d < map.dims.size(); ++d) {
      int reduce = -1, others = 0;
      int64_t group = 0;
      for (const IndexTerm& t : map.dims[d].terms) {
        if (t.axis >= domain && plain(t) && t.coef == Dim(1))
          reduce = t.axis;
        else if (t.axis == view_.vec && t.mod == Dim(0) && t.div.is_constant() && t.coef.is_constant())
          group = *t.div.constant();
        else
          ++others;
      }
      if (others || (reduce < 0 && !group) || !(map.dims[d].offset == Dim(0))) continue;
      if (view_.guarded && !stays_inside(region_, stage_, view_.data, d)) continue;  // taps that reach into padding
      if (reduce < 0) {  // one channel per group: there is no channel axis
        if (view_.data_channel_dim >= 0) return "two channel dimensions";
        view_.data_channel_dim = static_cast<int>(d);
        view_.group_out = group;
        continue;
      }
      const bool alone = std::none_of(map.dims.begin(), map.dims.end(), [&](const IndexExpr& e) {
        return &e != &map.dims[d] &&
               std::any_of(e.terms.begin(), e.terms.end(), [&](const IndexTerm& t) { return t.axis == reduce; });
      });
      if (!alone) return "a channel in two dimensions";
      if (group) {
        const auto extent = axis_extent(stage_, reduce).constant();
        for (const IndexTerm& t : map.dims[d].terms)
          if (t.axis == view_.vec && t.coef.constant() != extent) return "groups that overlap";
      }
      if (view_.data_channel_dim >= 0) continue;
      view_.channel = reduce;
      view_.data_channel_dim = static_cast<int>(d);
      view_.group_out = group;
    }
    for (size_t d = 1; view_.data_channel_dim < 0 && d < map.dims.size(); ++d)  // one channel: its axis is gone
      if (map.dims[d].terms.empty() && map.dims[d].offset == Dim(0)) view_.data_channel_dim = static_cast<int>(d);
    if (view_.data_channel_dim < 0) return "no channel axis";
    const bool maps = dtype_of(region_, stage_.reads[static_cast<size_t>(view_.data)]) == DType::f16;
    if (view_.channel < 0) return maps ? "one channel per group, of f16" : "";
    const IndexMap& weights = map_of(view_.weights);
    for (size_t d = 0; d < weights.dims.size(); ++d)
      if (weights.dims[d].terms.size() == 1 && weights.dims[d].terms[0].axis == view_.channel)
        view_.weights_channel_dim = static_cast<int>(d);
    return view_.weights_channel_dim < 0 ? "the weights lack the channel axis" : "";
  }

  /// -1: the prologue is not a product of the data and a factor of its channel and image.
  int find_factor() const {
    if (view_.guarded || view_.group_out || view_.channel < 0 || view_.value.op() != ExprOp::mul) return -1;
    // Factors go into the weights when those are packed, as f32.
    if (dtype_of(region_, stage_.reads[static_cast<size_t>(view_.weights)]) != DType::f32) return -1;
    for (size_t side : {0u, 1u}) {
      const Expr &x = view_.value.args()[side], &factor = view_.value.args()[1 - side];
      if (x.op() != ExprOp::read || x.index() != view_.data || factor.op() != ExprOp::read) continue;
      if (factor.index() == view_.data || factor.index() == view_.weights || factor.dtype() != DType::f32) continue;
      const std::set<int> axes = axes_of(map_of(factor.index()));
      const bool images = std::all_of(axes.begin(), axes.end(), [&](int axis) {
        const bool outer = std::find(view_.outer.begin(), view_.outer.end(), axis) != view_.outer.end();
        return axis == view_.channel || (outer && axis != row_axis_of(view_));
      });
      if (images && axes.count(view_.channel) && !has_dynamic(map_of(factor.index()))) return factor.index();
    }
    return -1;
  }

  void assign_axes() {
    const auto data_axes = axes_of(map_of(view_.data));
    const auto weight_axes = axes_of(map_of(view_.weights));
    const auto domain = static_cast<int>(stage_.domain.size());
    for (int a = 0; a < domain; ++a)
      if (a != view_.vec) view_.outer.push_back(a);
    for (int a = domain; a < domain + static_cast<int>(stage_.reduce.size()); ++a)
      if (a != view_.channel) view_.taps.push_back(a);
    for (auto it = view_.outer.rbegin(); it != view_.outer.rend(); ++it)
      if (data_axes.count(*it) && !weight_axes.count(*it)) {
        view_.pixel = *it;
        view_.outer.erase(std::next(it).base());
        break;
      }
  }
};

/// Seen as weights of f32, which they stand for.
std::variant<ContractionView, std::string> view_coded(const Region& region, int stage, const CodedWeights& coded) {
  const Region plain = with_plain_weights(region, stage, coded);
  auto found = ContractionFinder(plain, plain.stages[static_cast<size_t>(stage)]).find();
  auto* view = std::get_if<ContractionView>(&found);
  if (!view) return found;
  if (view->weights != coded.words || view->channel < 0) return "codes of another operand than the weights";
  if (view->types.widens_data()) return "codes beside data of 16 bits";
  if (view->guarded || view->group_out || !view->taps.empty() || !view->phases.empty()) return "codes of a window";
  view->coded = coded;
  view->factor = -1;
  return found;
}

}  // namespace

std::variant<ContractionView, std::string> view_contraction(const Region& region, int stage) {
  if (region.stages[static_cast<size_t>(stage)].reductions.size() != 1) return "not one sum";
  auto found = view_products(region, stage);
  const auto* view = std::get_if<ContractionView>(&found);
  if (view && view->types.sum != DType::f32) return "a sum of codes";
  if (view && view->types.data != DType::f32) return "data of 16 bits";
  if (view && view->types.widens_weights()) return "weights of 16 bits";
  if (view && view->coded) return "weights are codes";
  return found;
}

std::variant<ContractionView, std::string> view_products(const Region& region, int stage) {
  const Stage& seen = region.stages[static_cast<size_t>(stage)];
  if (const auto coded = coded_weights(region, seen)) return view_coded(region, stage, *coded);
  return ContractionFinder(region, seen).find();
}

}  // namespace opfuse
