// Both models run sample after sample. Of the quantised one the codes are read, which its kernels store anyway, and
// dequantised here; reading the tensors in front would make other kernels.
#include "quantize/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "base/product_of.hpp"
#include "ir/value_name.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "quantize/ranges.hpp"

namespace opfuse::quantization {
namespace {

/// A pair of the quantised model on a tensor that the float model has too.
struct Observed {
  std::string tensor, codes;
  Codes scale;
};

std::vector<Observed> observed_in(const Graph& reference, const Graph& quantised) {
  std::vector<Observed> list;
  std::set<std::string> seen;
  for (const Node* node : quantised.nodes()) {
    if (!is_a<QuantizeLinear>(*node) || !node->input(1)->is_constant() || node->input(1)->constant->elements() != 1)
      continue;
    const DType dtype = node->output()->type.dtype;
    const Value* tensor = node->input(0);
    const Value* same = tensor->name.empty() ? nullptr : reference.find_value(tensor->name);
    if (!same || same->is_constant() || same->type.dtype != DType::f32 || node->output()->name.empty()) continue;
    if ((dtype != DType::u8 && dtype != DType::i8) || !seen.insert(tensor->name).second) continue;
    const Value* zero = node->input(2);
    list.push_back({tensor->name,
                    node->output()->name,
                    {dtype, static_cast<float>(node->input(1)->constant->real(0)),
                     zero && zero->is_constant() ? static_cast<int32_t>(zero->constant->integer(0)) : 0}});
  }
  return list;
}

template <class Code>
Noise noise_of(const float* x, const Code* codes, int64_t count, const Codes& scale) {
  Noise n;
  for (int64_t i = 0; i < count; ++i) {
    const float y = static_cast<float>(static_cast<int32_t>(codes[i]) - scale.zero) * scale.scale;
    const double d = static_cast<double>(x[i] - y);
    n.signal += static_cast<double>(x[i]) * static_cast<double>(x[i]), n.noise += d * d;
  }
  return n;
}

double sqnr_db(double signal, double noise) {
  if (noise <= 0) return kMostSqnr;
  return signal <= 0 ? -kMostSqnr : std::clamp(10 * std::log10(signal / noise), -kMostSqnr, kMostSqnr);
}

/// For each observed tensor the observed ones it is made from.
std::vector<std::vector<size_t>> sources_of(const Graph& reference, const std::vector<Observed>& observed) {
  std::map<const Value*, size_t> at;
  for (size_t i = 0; i < observed.size(); ++i) at[reference.find_value(observed[i].tensor)] = i;
  std::vector<std::vector<size_t>> sources(observed.size());
  for (const auto& [value, index] : at) {
    std::set<const Value*> seen;
    const std::function<void(const Value*)> walk = [&](const Value* v) {
      if (!v || !v->producer) return;
      for (const Value* input : v->producer->inputs) {
        if (!input || !seen.insert(input).second) continue;
        if (const auto found = at.find(input); found != at.end())
          sources[index].push_back(found->second);
        else
          walk(input);
      }
    };
    walk(value);
  }
  return sources;
}

std::vector<std::string> names_of(const std::vector<Observed>& observed, std::string Observed::*field) {
  std::vector<std::string> names;
  for (const Observed& o : observed) names.push_back(o.*field);
  return names;
}

class Measure {
 public:
  /// `reference` has the observed tensors.
  Measure(ObservedModel& reference, const Graph& quantised, std::vector<Observed> observed, const RunOptions& options)
      : observed_(std::move(observed)),
        options_(options),
        inputs_of_(quantised),
        reference_(reference),
        quantised_(quantised, names_of(observed_, &Observed::codes), options) {
    for (const Observed& o : observed_) result_.layers.push_back({.tensor = o.tensor});
    for (const std::string& name : reference_.outputs()) result_.outputs.push_back({.output = name});
  }

  /// By observed tensor those it is made from; empty: that is not asked for.
  Agreement run(const Samples& samples, const std::vector<std::vector<size_t>>& sources) {
    for (size_t index = 0; const auto sample = samples.read(index); ++index) {
      require_finite(inputs_of_, samples, index, *sample);
      reference_.run(*sample);
      quantised_.run(*sample);
      parallel_for(
          static_cast<int64_t>(observed_.size()), [&](int64_t i) { take_layer(static_cast<size_t>(i), index); },
          options_.threads);
      for (size_t i = 0; i < result_.outputs.size(); ++i) take_output(i, index);
      result_.names.push_back(samples.name_of(index));
      result_.samples = index + 1;
      if (options_.progress) options_.progress("compare with the float model", index + 1, samples.count);
    }
    if (result_.samples == 0) throw fail(E::bad_binding, "there is no sample to compare with");
    for (size_t i = 0; i < sources.size(); ++i)
      for (size_t source : sources[i])
        result_.layers[i].before = std::min(result_.layers[i].before, result_.layers[source].noise.sqnr());
    return std::move(result_);
  }

 private:
  void take_layer(size_t i, size_t sample) {
    const Observed& o = observed_[i];
    LayerAgreement& layer = result_.layers[i];
    const ArrayView x = reference_.value(o.tensor), codes = quantised_.value(o.codes);
    const int64_t count = product_of(x.shape);
    if (x.shape != codes.shape) throw fail(E::bad_binding, "'{}' has other sizes in the two models", o.tensor);
    const auto* real = static_cast<const float*>(x.data);
    const Noise noise = o.scale.dtype == DType::u8
                            ? noise_of(real, static_cast<const uint8_t*>(codes.data), count, o.scale)
                            : noise_of(real, static_cast<const int8_t*>(codes.data), count, o.scale);
    const double half = static_cast<double>(o.scale.scale) / 2;
    const auto low = static_cast<float>(o.scale.low() - half), high = static_cast<float>(o.scale.high() + half);
    int64_t saturated = 0;
    for (int64_t e = 0; e < count; ++e) saturated += real[e] < low || real[e] > high ? 1 : 0;
    layer.elements += count, layer.saturated += saturated;
    layer.noise.add(noise);
    if (noise.sqnr() >= layer.worst_sqnr && sample > 0) return;
    layer.worst_sqnr = noise.sqnr(), layer.worst_sample = sample;
  }

  void take_output(size_t i, size_t sample) {
    OutputAgreement& output = result_.outputs[i];
    const ArrayView a = reference_.value(output.output), b = quantised_.value(quantised_.outputs()[i]);
    if (a.shape != b.shape || a.dtype != b.dtype)
      throw fail(E::bad_binding, "output '{}' is of another type or size in the two models", output.output);
    const Tensor x = Tensor::wrap(a.dtype, a.shape, a.data, nullptr),
                 y = Tensor::wrap(b.dtype, b.shape, b.data, nullptr);
    Noise noise;
    double dot = 0, other = 0;
    for (int64_t e = 0; e < x.elements(); ++e) {
      const double want = x.real(e), got = y.real(e);
      noise.signal += want * want, noise.noise += (want - got) * (want - got);
      dot += want * got, other += got * got;
    }
    output.noise.add(noise);
    const double cosine = noise.signal > 0 && other > 0 ? dot / std::sqrt(noise.signal * other) : noise.noise == 0;
    output.cosine += (cosine - output.cosine) / static_cast<double>(sample + 1);
    take_rows(output, x, y);
    output.worst.emplace_back(noise.sqnr(), sample);
    std::stable_sort(output.worst.begin(), output.worst.end());
    if (output.worst.size() > kWorstSamples) output.worst.pop_back();
  }

  static void take_rows(OutputAgreement& output, const Tensor& x, const Tensor& y) {
    const int64_t width = x.rank() > 0 ? x.sizes().back() : 1;
    const auto top = [&](const Tensor& t, int64_t row) {
      int64_t best = 0;
      for (int64_t c = 1; c < width; ++c)
        if (t.real(row * width + c) > t.real(row * width + best)) best = c;
      return best;
    };
    for (int64_t row = 0; width > 1 && row < x.elements() / width; ++row) {
      ++output.rows;
      output.same_top += top(x, row) == top(y, row) ? 1 : 0;
    }
  }

  const std::vector<Observed> observed_;
  const RunOptions options_;
  const Graph& inputs_of_;
  ObservedModel& reference_;
  ObservedModel quantised_;
  Agreement result_;
};

}  // namespace

double Noise::sqnr() const { return sqnr_db(signal, noise); }

void Noise::add(const Noise& other) { signal += other.signal, noise += other.noise; }

const LayerAgreement* Agreement::first_below(double sqnr) const {
  const auto at =
      std::find_if(layers.begin(), layers.end(), [&](const LayerAgreement& l) { return l.noise.sqnr() < sqnr; });
  return at == layers.end() ? nullptr : &*at;
}

const LayerAgreement* Agreement::largest_drop() const {
  const LayerAgreement* worst = nullptr;
  for (const LayerAgreement& layer : layers)
    if (layer.before < kMostSqnr && (!worst || layer.drop() > worst->drop())) worst = &layer;
  return worst;
}

Agreement measure_agreement(const Graph& reference, const Graph& quantised, const Samples& samples,
                            const RunOptions& options) {
  if (reference.inputs().size() != quantised.inputs().size() ||
      reference.outputs().size() != quantised.outputs().size())
    throw fail(E::bad_binding, "the models have {} inputs and {} outputs against {} and {}", quantised.inputs().size(),
               quantised.outputs().size(), reference.inputs().size(), reference.outputs().size());
  const std::vector<Observed> observed = observed_in(reference, quantised);
  ObservedModel model(reference, names_of(observed, &Observed::tensor), options);
  return Measure(model, quantised, observed, options).run(samples, sources_of(reference, observed));
}

Agreement measure_outputs(ObservedModel& reference, const Graph& quantised, const Samples& samples,
                          const RunOptions& options) {
  return Measure(reference, quantised, {}, options).run(samples, {});
}

}  // namespace opfuse::quantization
