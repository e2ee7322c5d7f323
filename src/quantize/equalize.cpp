//     x -- [Q DQ] -- Conv w        ->        x / t -- [Q DQ] -- Conv w t          t by channel of x
//
// t[c] = max|x[c]|^alpha / max|w[c]|^(1 - alpha). Expected noise of the products that read x, of codes in steps s:
//     s_x^2 / 12  sum (w t)^2   +   sum over outputs  s_w^2 / 12  sum E[(x / t)^2]
// Alpha is chosen by it for each tensor, from statistics of channels; a depthwise convolution's weights have a scale
// for each channel anyway, so there alpha 1 costs nothing.
#include "quantize/equalize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "ir/free_names.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/mul.hpp"
#include "ops/registry.hpp"
#include "quantize/fold_factors.hpp"
#include "quantize/linear_size.hpp"

namespace opfuse::quantization {
namespace {

constexpr std::array kAlphas{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
constexpr double kLeastGain = 0.5;  // dB, below which a tensor stays
constexpr double kWidest = 8;  // between factors of one tensor: a channel that calibration saw little of must not clip
constexpr double kCodes = 255, kWeightCodes = 127;

/// Weights of one product by channel of its data.
struct Reader {
  Node* node;
  size_t axis;  ///< of output channels
  int64_t outputs, inputs, taps, group;

  explicit Reader(Node* n) : node(n), axis(output_axis(*n)) {
    const std::vector<int64_t>& sizes = weights().sizes();
    outputs = sizes[axis], inputs = sizes[1 - axis], taps = 1;
    for (size_t d = 2; d < sizes.size(); ++d) taps *= sizes[d];
    group = is_a<Conv>(*n) ? n->as<Conv>().group : 1;
  }

  const Tensor& weights() const { return *node->input(1)->constant; }
  size_t channels() const { return static_cast<size_t>(inputs * group); }

  /// Calls take(i, output, channel) for every weight, in their order.
  template <class F>
  void each(F&& take) const {
    const int64_t of_group = outputs / group;
    const auto taps_of = [&](int64_t pair, int64_t o, int64_t c) {
      for (int64_t i = pair * taps; i < (pair + 1) * taps; ++i) take(i, static_cast<size_t>(o), static_cast<size_t>(c));
    };
    int64_t pair = 0;
    if (axis == 0)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t c = o / of_group * inputs, end = c + inputs; c < end; ++c) taps_of(pair++, o, c);
    else  // [K, N]: one group
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t o = 0; o < outputs; ++o) taps_of(pair++, o, c);
  }

  double noise(const std::vector<double>& t, double step, const std::vector<double>& squares) const {
    const std::span<const float> w = weights().view<float>();
    std::vector<double> most(static_cast<size_t>(outputs)), power(most.size());
    double energy = 0;
    each([&](int64_t i, size_t o, size_t c) {
      const double x = static_cast<double>(w[static_cast<size_t>(i)]) * t[c];
      energy += x * x;
      most[o] = std::max(most[o], std::fabs(x));
      power[o] += squares[c] / (t[c] * t[c]);
    });
    double sum = step * step / 12 * energy;
    for (size_t o = 0; o < most.size(); ++o) sum += most[o] * most[o] / (kWeightCodes * kWeightCodes * 12) * power[o];
    return sum;
  }
};

class Equalizer {
 public:
  Equalizer(Graph& graph, Placement& placement, std::vector<TensorStatistics>& ranges, const std::vector<size_t>& fixed,
            const EqualizeChoice& choice, std::optional<double> least_of_mul)
      : graph_(graph),
        placement_(placement),
        ranges_(ranges),
        choice_(choice),
        least_of_mul_(least_of_mul),
        fixed_(fixed.begin(), fixed.end()) {
    for (Node* node : graph.nodes()) nodes_[node->id] = node;
    for (const PlacedTensor& placed : placement.tensors) kept_.insert(placed.value);
    for (const PlacedProduct& product : placement.products) products_.insert(product.node);
  }

  std::vector<EqualizedTensor> run() {
    for (size_t i = 0; i < placement_.tensors.size(); ++i) try_tensor(i);
    return std::move(done_);
  }

 private:
  std::vector<Reader> readers_of(const PlacedTensor& placed, const Value* value) const {
    std::vector<Reader> readers;
    for (int id : placed.readers) {
      Node* node = nodes_.at(id);
      const Value* w = node->input(1);
      const bool product = products_.contains(id) && node->input(0) == value && w && w->is_constant() &&
                           w->constant->dtype() == DType::f32 && w != value;
      if (!product || (!is_a<Conv>(*node) && w->constant->rank() != 2)) return {};
      readers.emplace_back(node);
    }
    return readers;
  }

  void try_tensor(size_t index) {
    const PlacedTensor& placed = placement_.tensors[index];
    TensorStatistics& s = ranges_[index];
    Value* value = value_of(placed.value);
    if (fixed_.contains(index) || !value || !value->producer || s.channel_low.empty() || s.low == s.high) return;
    const std::vector<Reader> readers = readers_of(placed, value);
    const size_t axis = static_cast<size_t>(s.axis);
    const auto fits = [&](const Reader& r) {
      return r.channels() == s.channel_low.size() && axis == (is_a<Conv>(*r.node) ? 1 : value->type.shape.rank() - 1);
    };
    if (readers.empty() || !std::all_of(readers.begin(), readers.end(), fits)) return;
    const auto [alpha, gain, factors] = choose(s, readers);
    if (factors.empty() || (gain < kLeastGain && !choice_.alpha)) return;
    std::vector<double> inverse;
    for (double t : factors) inverse.push_back(1 / t);
    const bool alone = graph_.read_count(value) == readers.size() && !graph_.is_output(value);
    const bool folded = alone && fold_factors(graph_, value, axis, inverse, kept_);
    if (!folded && (!least_of_mul_ || gain < *least_of_mul_)) return;
    for (const Reader& r : readers) scale_weights(r, factors);
    if (!folded) multiply(index, value, axis, inverse);
    placement_.tensors[index].tensor = value_of(placement_.tensors[index].value)->name;
    rescale(s, factors, placement_.tensors[index].tensor);
    done_.push_back({s.tensor, alpha, folded, gain, index, std::move(inverse)});
  }

  Value* value_of(int id) const {
    for (Value* value : graph_.values())
      if (value->id == id) return value;
    return nullptr;
  }

  struct Chosen {
    double alpha = 0, gain = 0;
    std::vector<double> factors;
  };

  Chosen choose(const TensorStatistics& s, const std::vector<Reader>& readers) const {
    const size_t channels = s.channel_low.size();
    std::vector<double> x(channels), w(channels), squares(channels);
    for (size_t c = 0; c < channels; ++c) {
      x[c] = std::max(std::fabs(s.channel_low[c]), std::fabs(s.channel_high[c]));
      squares[c] = s.per_channel > 0 ? s.channel_squares[c] / static_cast<double>(s.per_channel) : 0;
    }
    for (const Reader& r : readers)
      r.each([&](int64_t i, size_t, size_t c) { w[c] = std::max(w[c], std::fabs(r.weights().real(i))); });
    const auto noise = [&](const std::vector<double>& t) {
      double low = 0, high = 0, sum = 0;
      for (size_t c = 0; c < channels; ++c)
        low = std::min(low, s.channel_low[c] / t[c]), high = std::max(high, s.channel_high[c] / t[c]);
      for (const Reader& r : readers) sum += r.noise(t, (high - low) / kCodes, squares);
      return sum;
    };
    const double before = noise(std::vector<double>(channels, 1));
    Chosen best;
    double least = HUGE_VAL;
    for (double alpha : kAlphas) {
      if (choice_.alpha && alpha != kAlphas.front()) break;
      const double a = choice_.alpha.value_or(alpha);
      std::vector<double> t = factors_for(x, w, a);
      const double after = noise(t);
      if (after >= least) continue;
      least = after;
      best = {a, before > 0 && after > 0 ? 10 * std::log10(before / after) : 0, std::move(t)};
    }
    return best;
  }

  /// At most kWidest below the largest; the largest range stays.
  static std::vector<double> factors_for(const std::vector<double>& x, const std::vector<double>& w, double alpha) {
    std::vector<double> t(x.size(), 0);
    double most = 0;
    for (size_t c = 0; c < x.size(); ++c) {
      if (x[c] > 0 && w[c] > 0) t[c] = std::pow(x[c], alpha) / std::pow(w[c], 1 - alpha);
      most = std::max(most, t[c]);
    }
    double range = 0, now = 0;
    for (double& f : t) f = most > 0 ? std::max(f, most / kWidest) : 1;
    for (size_t c = 0; c < x.size(); ++c) range = std::max(range, x[c]), now = std::max(now, x[c] / t[c]);
    if (range > 0)
      for (double& f : t) f *= now / range;
    return t;
  }

  void scale_weights(const Reader& r, const std::vector<double>& t) {
    Tensor scaled(DType::f32, r.weights().sizes());
    r.each([&](int64_t i, size_t, size_t c) { scaled.set_real(i, r.weights().real(i) * t[c]); });
    graph_.set_input(r.node, 1, graph_.add_constant(std::move(scaled)));
  }

  void multiply(size_t index, Value* value, size_t axis, const std::vector<double>& factors) {
    std::vector<int64_t> sizes(value->type.shape.rank() - axis, 1);
    sizes[0] = static_cast<int64_t>(factors.size());
    Tensor row(DType::f32, sizes);
    for (size_t c = 0; c < factors.size(); ++c) row.set_real(static_cast<int64_t>(c), factors[c]);
    PlacedTensor& placed = placement_.tensors[index];
    FreeNames names(graph_);
    const std::string name = names.take(placed.tensor + "_equalized");
    const size_t next = graph_.position(value->producer) + 1;
    Node* before = next < graph_.nodes().size() ? graph_.nodes()[next] : nullptr;
    Node* mul = graph_.add_node(op_named("mul"), AttrMap{},
                                {value, graph_.add_constant(std::move(row), names.take(name + "_factors"))}, 1,
                                {{name, "Mul", "", 13}}, before);
    mul->output()->name = name;
    for (int id : placed.readers) {
      Node* reader = nodes_.at(id);
      for (size_t i = 0; i < reader->inputs.size(); ++i)
        if (reader->inputs[i] == value) graph_.set_input(reader, i, mul->output());
    }
    placed.value = mul->output()->id;
    kept_.insert(placed.value);
  }

  static void rescale(TensorStatistics& s, const std::vector<double>& t, const std::string& tensor) {
    s.tensor = tensor;
    s.low = HUGE_VAL, s.high = -HUGE_VAL;
    const double most = std::max(std::fabs(s.mean_low), std::fabs(s.mean_high));
    for (size_t c = 0; c < t.size(); ++c) {
      s.channel_low[c] /= t[c], s.channel_high[c] /= t[c];
      s.channel_sums[c] /= t[c], s.channel_squares[c] /= t[c] * t[c];
      s.low = std::min(s.low, s.channel_low[c]), s.high = std::max(s.high, s.channel_high[c]);
    }
    if (most == 0) return;
    s.mean_low = std::max(s.mean_low, s.low), s.mean_high = std::min(s.mean_high, s.high);
  }

  Graph& graph_;
  Placement& placement_;
  std::vector<TensorStatistics>& ranges_;
  const EqualizeChoice& choice_;
  const std::optional<double> least_of_mul_;
  const std::set<size_t> fixed_;
  std::map<int, Node*> nodes_;
  std::set<int> kept_, products_;
  std::vector<EqualizedTensor> done_;
};

}  // namespace

std::string EqualizeChoice::text() const { return !on ? "off" : alpha ? fmt::format("{:g}", *alpha) : "auto"; }

EqualizeChoice parse_equalize(std::string_view text) {
  if (text == "off") return {};
  if (text == "auto") return {.on = true, .alpha = {}};
  double alpha = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), alpha);
  if (error != std::errc{} || end != text.data() + text.size() || !(alpha >= 0 && alpha <= 1))
    throw fail(E::bad_option, "equalisation is auto, off or an alpha from 0 to 1, not '{}'", text);
  return {.on = true, .alpha = alpha};
}

std::vector<EqualizedTensor> equalize(Graph& graph, Placement& placement, std::vector<TensorStatistics>& ranges,
                                      const std::vector<size_t>& fixed, const EqualizeChoice& choice,
                                      std::optional<double> least_of_mul) {
  return Equalizer(graph, placement, ranges, fixed, choice, least_of_mul).run();
}

}  // namespace opfuse::quantization
