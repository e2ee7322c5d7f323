// Transposed convolution as gathers. Output coordinate q = s*p + f of phase f in [0, stride) is reached by
// the taps t = t0 + j*step with (f + pad - t*dilation) divisible by s, from input position
//   p + (f + pad - t0*dilation)/s - j*step*dilation/s
// so that every combination of phases is a contraction with plain index maps that stores every s-th
// element. Stride 1 is one phase, an ordinary result that epilogues may extend.
#include <numeric>

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

class TransposedLowering {
 public:
  TransposedLowering(Lowering& lowering, const Node& node)
      : lowering_(lowering),
        node_(node),
        attrs_(node.as<ConvTranspose>()),
        windows_(ConvTranspose::window(attrs_, x(), w())) {
    for (const WindowAxis& window : windows_)
      if (!window.pad_begin.is_constant())
        decline("symbolic_padding", "the phases of a transposed convolution need constant padding", node);
  }

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
      if (!(phases[axis].outputs == Dim(0))) each(axis + 1, phases);
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
      reached &= phase.taps > 0;
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

void lower_conv_transpose(Lowering& lowering, const Node& node) { TransposedLowering(lowering, node).run(); }

constexpr LowerRule kRules[] = {{.op = "conv_transpose", .anchor = lower_conv_transpose}};

}  // namespace

std::span<const LowerRule> conv_transpose_rules() { return kRules; }

}  // namespace opfuse
