// Transposed convolution as gathers. Output coordinate y of an axis of stride s is one of phase f and position p,
//   y = s*p + f - r,  r = pad mod s           reached by taps f + s*j, j in [0, J), from input p + pad/s - j
// so all phases see one window of J taps. Counted from the end (phase g = s-1-f, tap j' = J-1-j) it is the window of an
// ordinary convolution with padding, whose weights lie flipped: tap j' of phase g at s*j' + g - e, e = s*J - kernel
// (negative ones do not exist: phases g < e have a tap less). One stage computes all phases: each phase is an axis that
// only weights and result know. Points before the first and behind the last output (r > 0) are clipped.
//   one output channel: the phases of all axes are the output axis instead, so that lanes have work
//   depthwise: a window; missing weights are zeros
//   stride and dilation both above 1 (PhasedLowering): a stage per combination of phases that stores every s-th element
#include <numeric>

#include "base/integers.hpp"
#include "expr/domain.hpp"
#include "ops/conv_transpose.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

/// One axis in one phase.
struct Phase {
  int64_t stride = 1, first_output = 0;
  Dim outputs;  ///< of this phase
  int64_t first_tap = 0, tap_step = 1, taps = 0;
  int64_t origin = 0, move = 0;  ///< input position: p + origin - j*move
};

Phase phase_of(const WindowAxis& w, int64_t f) {
  Phase phase;
  phase.stride = w.stride;
  phase.first_output = f;
  phase.outputs = floor_div(w.out + Dim(w.stride - 1 - f), Dim(w.stride));
  const int64_t at = f + w.pad_begin.value();
  phase.tap_step = w.stride / std::gcd(w.stride, w.dilation);
  int64_t t = 0;
  while (t < w.kernel && t < phase.tap_step && (at - t * w.dilation) % w.stride != 0) ++t;
  if (t >= w.kernel || t >= phase.tap_step) return phase;  // no tap reaches this phase
  phase.first_tap = t;
  phase.taps = (w.kernel - 1 - t) / phase.tap_step + 1;
  phase.origin = (at - t * w.dilation) / w.stride;
  phase.move = phase.tap_step * w.dilation / w.stride;
  return phase;
}

/// Every combination of phases is a stage of its own, with the taps t = t0 + j*step for which (f + pad - t*dilation)
/// is divisible by s.
class PhasedLowering {
 public:
  PhasedLowering(Lowering& lowering, const Node& node)
      : lowering_(lowering),
        node_(node),
        attrs_(node.as<ConvTranspose>()),
        windows_(ConvTranspose::window(attrs_, x(), w())) {}

  void run() {
    std::vector<Phase> phases(windows_.size());
    each(0, phases);
  }

 private:
  Lowering& lowering_;
  const Node& node_;
  const ConvTranspose::Attrs& attrs_;
  std::vector<WindowAxis> windows_;

  const Shape& x() const { return node_.input(0)->type.shape; }
  const Shape& w() const { return node_.input(1)->type.shape; }

  void each(size_t axis, std::vector<Phase>& phases) {
    if (axis == windows_.size()) return stage(phases);
    for (int64_t f = 0; f < windows_[axis].stride; ++f) {
      phases[axis] = phase_of(windows_[axis], f);
      const bool first_of_none = f == 0 && windows_[axis].out == Dim(0);  // a result without elements is one stage too
      if (!(phases[axis].outputs == Dim(0)) || first_of_none) each(axis + 1, phases);
    }
  }

  bool single() const {
    for (const WindowAxis& window : windows_)
      if (window.stride != 1) return false;
    return true;
  }

  void stage(const std::vector<Phase>& phases) {
    const Shape& y = node_.output()->type.shape;
    const Dim group_in = floor_div(x()[1], Dim(attrs_.group));
    std::vector<Dim> domain = {y[0], y[1]}, reduce = {group_in};
    bool reached = true;
    for (const Phase& phase : phases) {
      domain.push_back(phase.outputs);
      reduce.emplace_back(phase.taps);
      reached &= phase.taps > 0 && !(phase.outputs == Dim(0));
    }
    lowering_.open(reached ? Anchor::contraction : Anchor::map, domain, reached ? reduce : std::vector<Dim>{});
    Expr sum = Expr::constant(node_.output()->type.dtype, 0);
    if (reached) {
      const Expr data = lowering_.pull_guarded(node_.input(0), data_map(phases), sum, node_);
      const Expr weights = lowering_.pull(node_.input(1), weight_map(phases));
      sum = lowering_.reduce(ReduceKind::sum, data * weights);
    }
    if (node_.input(2) != nullptr) sum = sum + lowering_.pull(node_.input(2), {{IndexExpr{{{1, 1}}, 0, {}}}});
    if (single()) return lowering_.define(node_.output(), sum);
    IndexMap store = IndexMap::identity(2);
    for (size_t s = 0; s < phases.size(); ++s)
      store.dims.push_back(IndexExpr{{{phases[s].stride, static_cast<int>(s) + 2}}, phases[s].first_output, {}});
    lowering_.define_part(node_.output(), sum, store);
  }

  IndexExpr input_channel() const {
    const int reduce = static_cast<int>(x().rank());
    IndexExpr channel;
    if (attrs_.group > 1) channel.terms.push_back({floor_div(x()[1], Dim(attrs_.group)), 1, w()[1]});
    channel.terms.push_back({1, reduce});
    return channel;
  }

  IndexMap data_map(const std::vector<Phase>& phases) const {
    IndexMap map = IndexMap::identity(1);
    map.dims.push_back(input_channel());
    const int taps = static_cast<int>(x().rank()) + 1;
    for (size_t s = 0; s < phases.size(); ++s)
      map.dims.push_back(IndexExpr{{{1, static_cast<int>(s) + 2}, {Dim(-phases[s].move), taps + static_cast<int>(s)}},
                                   Dim(phases[s].origin),
                                   {}});
    return map;
  }

  IndexMap weight_map(const std::vector<Phase>& phases) const {
    IndexMap map;
    map.dims.push_back(input_channel());
    map.dims.push_back(IndexExpr{{{1, 1, 1, attrs_.group > 1 ? w()[1] : Dim(0)}}, 0, {}});
    const int taps = static_cast<int>(x().rank()) + 1;
    for (size_t s = 0; s < phases.size(); ++s)
      map.dims.push_back(IndexExpr{{{phases[s].tap_step, taps + static_cast<int>(s)}}, Dim(phases[s].first_tap), {}});
    return map;
  }
};

/// One axis, all phases together.
struct Axis {
  int64_t stride = 1, dilation = 1, kernel = 1, taps = 1;
  int64_t missing = 0;  ///< e above
  int64_t before = 0;   ///< r above
  int64_t offset = 0;   ///< input position: p + offset + dilation * j'
  Dim in, positions, out;
  bool clipped = false;

  explicit Axis(const WindowAxis& w) : stride(w.stride), dilation(w.dilation), kernel(w.kernel), in(w.in), out(w.out) {
    const int64_t pad = w.pad_begin.value();
    taps = ceil_of(kernel, stride);
    missing = stride * taps - kernel;
    before = pad % stride;
    offset = pad / stride - (taps - 1) * dilation;
    positions = floor_div(out + Dim(before + stride - 1), Dim(stride));
    clipped = before > 0 || !(mod(out, Dim(stride)) == Dim(0));
  }

  /// No tap of any position is outside the input.
  bool stays_inside() const {
    const auto last = (positions + Dim(offset + (taps - 1) * dilation) - in).constant();
    return offset >= 0 && last && *last <= 0;
  }
};

class TransposedLowering {
 public:
  TransposedLowering(Lowering& lowering, const Node& node, const std::vector<WindowAxis>& windows)
      : lowering_(lowering), node_(node) {
    for (const WindowAxis& window : windows) axes_.emplace_back(window);
    const Tensor* weights = lowering.constant_of(node.input(1));
    depthwise_ = group_ > 1 && x_[1] == Dim(group_) && w_[1] == Dim(1) && weights != nullptr;
    for (const Axis& axis : axes_) phases_ *= axis.stride;
    together_ = weights != nullptr && group_ == 1 && y_[1] == Dim(1) && phases_ > 1;
  }

  void run() {
    const Dim depth = floor_div(x_[1], Dim(group_));
    std::vector<Dim> domain = {y_[0], together_ ? Dim(phases_) : y_[1]}, reduce;
    if (!depthwise_) reduce.push_back(depth);
    for (const Axis& axis : axes_) {
      phase_axis_.push_back(!together_ && axis.stride > 1 ? static_cast<int>(domain.size()) : -1);
      if (phase_axis_.back() >= 0) domain.emplace_back(axis.stride);
    }
    first_position_ = static_cast<int>(domain.size());
    for (const Axis& axis : axes_) domain.push_back(axis.positions), reduce.emplace_back(axis.taps);
    channel_ = depthwise_ ? -1 : static_cast<int>(domain.size());
    first_tap_ = static_cast<int>(domain.size()) + (depthwise_ ? 0 : 1);
    lowering_.open(depthwise_ ? Anchor::window : Anchor::contraction, domain, std::move(reduce));
    Expr sum = lowering_.reduce(ReduceKind::sum, data() * weights());
    if (node_.input(2) != nullptr)
      sum = sum + lowering_.pull(node_.input(2), {{together_ ? IndexExpr{} : IndexExpr{{{1, 1}}, 0, {}}}});
    bool clipped = false;
    for (const Axis& axis : axes_) clipped |= axis.clipped;
    lowering_.define_at(node_.output(), sum, store_map(), clipped);
  }

 private:
  Lowering& lowering_;
  const Node& node_;
  const Shape &x_ = node_.input(0)->type.shape, &w_ = node_.input(1)->type.shape, &y_ = node_.output()->type.shape;
  int64_t group_ = node_.as<ConvTranspose>().group;
  std::vector<Axis> axes_;
  int64_t phases_ = 1;  ///< of all axes together
  bool depthwise_ = false, together_ = false;
  std::vector<int> phase_axis_;  ///< of the domain, -1: none of its own
  int first_position_ = 0, channel_ = -1, first_tap_ = 0;

  int position(size_t s) const { return first_position_ + static_cast<int>(s); }
  int tap(size_t s) const { return first_tap_ + static_cast<int>(s); }

  Expr data() {
    IndexMap map = IndexMap::identity(1);
    IndexExpr channel;
    if (depthwise_) channel.terms.push_back({1, 1});
    if (!depthwise_ && group_ > 1) channel.terms.push_back({floor_div(x_[1], Dim(group_)), 1, w_[1]});
    if (!depthwise_) channel.terms.push_back({1, channel_});
    map.dims.push_back(std::move(channel));
    bool inside = true;
    for (size_t s = 0; s < axes_.size(); ++s) {
      map.dims.push_back(IndexExpr{{{1, position(s)}, {Dim(axes_[s].dilation), tap(s)}}, Dim(axes_[s].offset), {}});
      inside &= axes_[s].stays_inside();
    }
    if (inside) return lowering_.pull(node_.input(0), map);
    return lowering_.pull_guarded(node_.input(0), map, Expr::constant(node_.input(0)->type.dtype, 0), node_);
  }

  /// Constants are flipped, and lie [O, C/group, taps] as those of a convolution.
  Expr weights() {
    const Tensor* given = lowering_.constant_of(node_.input(1));
    if (given == nullptr) return weights_as_they_are();
    if (together_) return made(*given, Dim(phases_), true);
    return made(*given, y_[1], false);
  }

  Expr made(const Tensor& given, const Dim& outputs, bool by_phase) {
    const bool padded = by_phase || depthwise_;
    std::vector<int64_t> sizes = {outputs.value(), depthwise_ ? 1 : given.dim(0) / group_};
    IndexMap map{{IndexExpr{{{1, 1}}, 0, {}}, depthwise_ ? IndexExpr{} : IndexExpr{{{1, channel_}}, 0, {}}}};
    bool missing = false;
    for (size_t s = 0; s < axes_.size(); ++s) {
      const Axis& axis = axes_[s];
      const bool phased = phase_axis_[s] >= 0;
      sizes.push_back(by_phase ? axis.taps : padded ? axis.taps * axis.stride : axis.kernel);
      IndexExpr at{{{Dim(phased ? axis.stride : 1), tap(s)}}, Dim(0), {}};
      if (phased) at.terms.push_back({1, phase_axis_[s]});
      if (!padded && axis.missing > 0) at.offset = Dim(-axis.missing), missing = true;
      map.dims.push_back(std::move(at));
    }
    const TensorType type{given.dtype(), Shape(std::vector<Dim>(sizes.begin(), sizes.end()))};
    const Expr read = lowering_.pull_made(
        type,
        [given, sizes, by_phase, axes = axes_, group = group_] { return flipped(given, sizes, by_phase, axes, group); },
        map);
    return missing ? select(Expr::in_bounds(read.index()), read, Expr::constant(given.dtype(), 0)) : read;
  }

  /// Element [o, i, taps] of `sizes`: the weights of tap kernel - 1 - t, or with `by_phase` (o counts phases) those of
  /// tap f + stride * (taps - 1 - j); zero where there is none.
  static Tensor flipped(const Tensor& given, const std::vector<int64_t>& sizes, bool by_phase,
                        const std::vector<Axis>& axes, int64_t group) {
    Tensor made(given.dtype(), sizes);
    const int64_t depth = sizes[1], outputs = by_phase ? 1 : sizes[0] / group;
    for (int64_t i = 0; i < made.elements(); ++i) {
      int64_t rest = i, at = 0, pitch = 1, phase = 0;
      std::vector<int64_t> taps(axes.size());
      for (size_t s = axes.size(); s-- > 0; rest /= sizes[s + 2]) taps[s] = rest % sizes[s + 2];
      const int64_t channel = rest % depth, o = rest / depth;
      phase = by_phase ? o : 0;
      bool exists = true;
      for (size_t s = axes.size(); s-- > 0; phase /= axes[s].stride) {
        const Axis& axis = axes[s];
        const int64_t t = by_phase ? phase % axis.stride + axis.stride * (axis.taps - 1 - taps[s])
                                   : axis.kernel - 1 - (taps[s] - (sizes[s + 2] - axis.kernel));
        exists &= t >= 0 && t < axis.kernel;
        at += t * pitch;
        pitch *= axis.kernel;
      }
      if (!exists) continue;
      const int64_t from = by_phase ? channel : (o / outputs * depth + channel) * outputs + o % outputs;
      if (is_float(given.dtype()))
        made.set_real(i, given.real(from * pitch + at));
      else
        made.set_integer(i, given.integer(from * pitch + at));
    }
    return made;
  }

  /// Computed weights [C, O/group, kernel]: tap kernel - 1 + e - s*j' - g.
  Expr weights_as_they_are() {
    IndexMap map;
    IndexExpr channel{{{1, channel_}}, 0, {}};
    if (group_ > 1) channel.terms.insert(channel.terms.begin(), {floor_div(x_[1], Dim(group_)), 1, w_[1]});
    map.dims.push_back(std::move(channel));
    map.dims.push_back(IndexExpr{{{1, 1, 1, group_ > 1 ? w_[1] : Dim(0)}}, 0, {}});
    bool missing = false;
    for (size_t s = 0; s < axes_.size(); ++s) {
      const Axis& axis = axes_[s];
      IndexExpr at{{{Dim(-axis.stride), tap(s)}}, Dim(axis.kernel - 1 + axis.missing), {}};
      if (phase_axis_[s] >= 0) at.terms.push_back({-1, phase_axis_[s]});
      missing |= axis.missing > 0;
      map.dims.push_back(std::move(at));
    }
    if (!missing) return lowering_.pull(node_.input(1), map);
    return lowering_.pull_guarded(node_.input(1), map, Expr::constant(node_.input(1)->type.dtype, 0), node_);
  }

  IndexMap store_map() const {
    IndexMap map = IndexMap::identity(1);
    map.dims.push_back(together_ ? IndexExpr{} : IndexExpr{{{1, 1}}, 0, {}});
    int64_t later = phases_;  // phases of the axes behind
    for (size_t s = 0; s < axes_.size(); ++s) {
      const Axis& axis = axes_[s];
      IndexExpr at{{{Dim(axis.stride), position(s)}}, Dim(-axis.before), {}};
      later /= axis.stride;
      if (together_ && axis.stride > 1)
        at.terms.push_back({1, 1, Dim(later), later * axis.stride == phases_ ? Dim(0) : Dim(axis.stride)});
      if (phase_axis_[s] >= 0) {
        at.terms.push_back({-1, phase_axis_[s]});
        at.offset = Dim(axis.stride - 1 - axis.before);
      }
      map.dims.push_back(std::move(at));
    }
    return map;
  }
};

void lower_conv_transpose(Lowering& lowering, const Node& node) {
  const std::vector<WindowAxis> windows =
      ConvTranspose::window(node.as<ConvTranspose>(), node.input(0)->type.shape, node.input(1)->type.shape);
  bool phased = false;
  for (const WindowAxis& window : windows) {
    if (!window.pad_begin.is_constant())
      decline("symbolic_padding", "the phases of a transposed convolution need constant padding", node);
    phased |= window.stride > 1 && window.dilation > 1;
  }
  if (phased) return PhasedLowering(lowering, node).run();
  TransposedLowering(lowering, node, windows).run();
}

constexpr LowerRule kRules[] = {{.op = "conv_transpose", .anchor = lower_conv_transpose}};

}  // namespace

std::span<const LowerRule> conv_transpose_rules() { return kRules; }

}  // namespace opfuse
