// Noise is that of codes times the mean squares of the channels: errors of different channels are taken for unrelated.
#include "quantize/scale_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "ir/free_names.hpp"
#include "ops/registry.hpp"
#include "quantize/fold_factors.hpp"

namespace opfuse::quantization {
namespace {

constexpr std::array kAlphas{0.2, 0.4, 0.6, 0.8, 1.0};
constexpr double kLeastGain = 0.3, kLeastOfMul = 1;  // dB: of constants that change, of a Mul that is added
constexpr double kWidest = 32;  // between a factor and the mean one: calibration may have seen little of a channel

/// Their geometric mean is 1.
std::vector<double> factors_of(const std::vector<double>& powers, double alpha) {
  std::vector<double> t(powers.size(), 1);
  double logs = 0, count = 0;
  for (double p : powers)
    if (p > 0) logs += std::log(p), ++count;
  const double mean = count > 0 ? logs / count : 0;
  for (size_t c = 0; c < t.size(); ++c)
    if (powers[c] > 0) t[c] = std::clamp(std::exp((std::log(powers[c]) - mean) * alpha / 2), 1 / kWidest, kWidest);
  return t;
}

std::vector<double> divided(const std::vector<double>& powers, const std::vector<double>& t) {
  std::vector<double> out(powers.size());
  for (size_t c = 0; c < out.size(); ++c) out[c] = powers[c] / (t[c] * t[c]);
  return out;
}

Tensor multiplied(const Tensor& weights, size_t depth_axis, const std::vector<double>& t) {
  Tensor out(DType::f32, weights.sizes());
  const int64_t columns = weights.dim(1);
  for (int64_t i = 0; i < weights.elements(); ++i)
    out.set_real(i, weights.real(i) * t[static_cast<size_t>(depth_axis == 0 ? i / columns : i % columns)]);
  return out;
}

double noise_of(const DataScaler& scaler, const std::vector<DataReader>& readers, const std::vector<double>& powers,
                const std::vector<double>& t) {
  const std::vector<double> now = divided(powers, t);
  double noise = 0;
  for (const DataReader& r : readers) {
    BlockOptions options = scaler.codes;
    options.depth_axis = r.depth_axis, options.powers = now;
    noise += block_codes(multiplied(*r.weights->constant, r.depth_axis, t), options).noise;
  }
  return noise;
}

/// Whether nothing else reads the data.
bool are_all(const Graph& graph, const Value* data, const std::vector<DataReader>& readers) {
  if (graph.is_output(data)) return false;
  return std::all_of(data->uses.begin(), data->uses.end(), [&](const Use& use) {
    return use.index == 0 &&
           std::any_of(readers.begin(), readers.end(), [&](const DataReader& r) { return r.product == use.node; });
  });
}

void divide_by_mul(Graph& graph, Value* data, const std::vector<DataReader>& readers,
                   const std::vector<double>& inverse) {
  Node* before = readers.front().product;
  for (const DataReader& r : readers)
    if (graph.position(r.product) < graph.position(before)) before = r.product;
  Tensor row(DType::f32, {static_cast<int64_t>(inverse.size())});
  for (size_t c = 0; c < inverse.size(); ++c) row.set_real(static_cast<int64_t>(c), inverse[c]);
  const std::string name = equalized_name(graph, data->name);
  Value* factors = graph.add_constant(std::move(row), FreeNames(graph).take(name + "_factors"));
  Node* mul = graph.add_node(op_named("mul"), AttrMap{}, {data, factors}, 1, {{name, "Mul", "", 13}}, before);
  mul->output()->name = name;
  for (const DataReader& r : readers) graph.set_input(r.product, 0, mul->output());
}

void multiply_weights(Graph& graph, const DataReader& reader, const std::vector<double>& t) {
  Value* scaled = graph.add_constant(multiplied(*reader.weights->constant, reader.depth_axis, t));
  scaled->name = equalized_name(graph, reader.weights->name);
  for (const Use& use : std::vector<Use>(reader.weights->uses)) graph.set_input(use.node, use.index, scaled);
}

}  // namespace

std::map<const Node*, ScaledData> scale_data(const DataScaler& scaler, const std::vector<DataReader>& readers) {
  Value* data = readers.front().product->input(0);
  const auto at = scaler.powers.find(data->name);
  std::map<const Node*, ScaledData> made;
  if (at == scaler.powers.end()) return made;
  const std::vector<double>& powers = at->second;
  std::vector<double> best(powers.size(), 1);
  const double plain = noise_of(scaler, readers, powers, best);
  ScaledData chosen{powers};
  double least = plain;
  for (double alpha : kAlphas) {
    const std::vector<double> t = factors_of(powers, alpha);
    const double noise = noise_of(scaler, readers, powers, t);
    if (noise < least) least = noise, best = t, chosen.alpha = alpha;
  }
  chosen.gain = least > 0 && least < plain ? 10 * std::log10(plain / least) : 0;
  std::vector<double> inverse;
  for (double t : best) inverse.push_back(1 / t);
  if (chosen.gain >= kLeastGain && are_all(scaler.graph, data, readers))
    chosen.folded = fold_factors(scaler.graph, data, data->type.shape.rank() - 1, inverse, {});
  if (!chosen.folded && chosen.gain < kLeastOfMul) chosen.alpha = chosen.gain = 0;
  if (chosen.alpha > 0) {
    if (!chosen.folded) divide_by_mul(scaler.graph, data, readers, inverse);
    std::set<const Value*> done;
    for (const DataReader& r : readers)
      if (done.insert(r.weights).second) multiply_weights(scaler.graph, r, best);
    chosen.powers = divided(powers, best);
  }
  for (const DataReader& r : readers) made[r.product] = chosen;
  return made;
}

}  // namespace opfuse::quantization
