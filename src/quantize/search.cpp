// Sensitivity: the outputs' noise with one module in codes alone. Left in float first: most noise per multiply-add,
// since multiply-adds are what codes save. The frontier leaves out 0, 1, 2, 3, 4, 6, 8, 12, 16 ... modules. Where it
// holds, those that were left get codes again one by one, most multiply-adds first, as long as it still holds: one
// module may have made all of the noise, and the steps grow.
#include "quantize/search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "quantize/agreement.hpp"
#include "quantize/multiply_adds.hpp"
#include "quantize/predicted_time.hpp"

namespace opfuse::quantization {
namespace {

constexpr double kWorthTrying = 0.01;  // share of the multiply-adds that a module needs to be tried in codes again

double sum_of(const std::vector<Sensitivity>& modules) {
  double all = 0;
  for (const Sensitivity& s : modules) all += s.multiply_adds;
  return all;
}

/// Whether these are the first ones of the order, and the frontier has a point without them.
bool measured(const Search& found, const std::vector<Sensitivity>& left) {
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i].module != found.order[i].module) return false;
  return std::any_of(found.frontier.begin(), found.frontier.end(),
                     [&](const FrontierPoint& p) { return p.left == left.size(); });
}

class Searcher {
 public:
  Searcher(const Graph& model, const Samples& samples, const QuantizeOptions& options, size_t probes,
           const QuantizedModel& whole)
      : prepared_(prepare_model(model, options)), options_(options), whole_(whole) {
    for (size_t i = 0; i < probes; ++i) {
      auto sample = samples.read(i);
      if (!sample) break;
      std::vector<Tensor>& probe = probes_.emplace_back();  // a sample's memory is its source's until the next one
      for (const Tensor& array : *sample) probe.push_back(array.clone());
    }
    for (size_t i = 0; i < whole.codes.size(); ++i) at_[whole.before.tensors[i]] = i;
  }

  /// By what each does alone.
  std::vector<Sensitivity> sensitivities() {
    const std::vector<std::vector<Tensor>> want = outputs_of(whole_.reference);
    std::map<int, const Node*> nodes;
    for (const Node* node : whole_.reference.nodes()) nodes[node->id] = node;
    std::vector<Sensitivity> list;
    std::map<std::string, size_t> index;
    for (const PlacedProduct& product : whole_.placement.products) {
      const auto [at, fresh] = index.emplace(product.module, list.size());
      if (fresh) list.push_back({product.module, 0, 0});
      list[at->second].multiply_adds += multiply_adds(*nodes.at(product.node));
    }
    for (const PlacedTensor& placed : whole_.placement.tensors)  // pools: nothing is multiplied there
      for (const std::string& module : placed.modules)
        if (index.emplace(module, list.size()).second) list.push_back({module, 0, 0});
    for (size_t i = 0; i < list.size(); ++i) {
      QuantizeOptions alone = options_;
      alone.only = {list[i].module};
      list[i].sqnr = sqnr(want, outputs_of(variant(alone).graph));
      if (options_.run.progress) options_.run.progress("sensitivity", i + 1, list.size());
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Sensitivity& a, const Sensitivity& b) { return weight(a) > weight(b); });
    return list;
  }

  QuantizedModel without(const std::vector<Sensitivity>& left) const {
    QuantizeOptions fewer = options_;
    for (const Sensitivity& s : left) fewer.skip.push_back(s.module);
    return variant(fewer);
  }

 private:
  static double weight(const Sensitivity& s) { return std::pow(10, -s.sqnr / 10) / std::max(s.multiply_adds, 1.0); }

  /// Other places with the codes that the whole model has.
  QuantizedModel variant(const QuantizeOptions& options) const {
    QuantizedModel made = place_graph(prepared_, options);
    std::erase_if(made.placement.tensors, [&](const PlacedTensor& t) { return !at_.contains(t.tensor); });
    made.shared.clear();
    for (const PlacedTensor& placed : made.placement.tensors) {
      made.codes.push_back(whole_.codes[at_.at(placed.tensor)]);
      made.calibration.tensors.push_back(whole_.calibration.tensors[at_.at(placed.tensor)]);
    }
    if (!whole_.equalized.empty()) move_to_equalized(made);
    made.calibration.samples = whole_.calibration.samples;
    made.warnings = whole_.warnings;
    write_codes(made, options);
    return made;
  }

  /// The same places in the whole model's reference, whose weights have the factors of channels. A module in float
  /// reads what is divided by them, and multiplies it.
  void move_to_equalized(QuantizedModel& made) const {
    std::set<std::string> modules;
    for (const PlacedProduct& product : made.placement.products) modules.insert(product.module);
    std::set<int> products, left;
    for (const PlacedProduct& product : whole_.placement.products)
      (modules.contains(product.module) ? products : left).insert(product.node);
    for (PlacedTensor& placed : made.placement.tensors) {
      std::set<std::string> outputs;
      for (int reader : placed.readers) outputs.insert(made.before.outputs.at(reader));
      PlacedTensor moved = whole_.placement.tensors[at_.at(placed.tensor)];
      std::erase_if(moved.readers, [&](int reader) {
        return left.contains(reader) ||
               (!products.contains(reader) && !outputs.contains(whole_.before.outputs.at(reader)));
      });
      moved.modules = std::move(placed.modules);
      placed = std::move(moved);
    }
    made.placement.products = whole_.placement.products;
    std::erase_if(made.placement.products, [&](const PlacedProduct& p) { return left.contains(p.node); });
    made.reference = whole_.reference.clone();
    made.before = whole_.before;
    made.equalized = whole_.equalized;
  }

  std::vector<std::vector<Tensor>> outputs_of(const Graph& graph) const {
    ObservedModel model(graph, {}, {.threads = options_.run.threads, .cache = options_.run.cache});
    std::vector<std::vector<Tensor>> all;
    for (const std::vector<Tensor>& sample : probes_) {
      model.run(sample);
      std::vector<Tensor>& outputs = all.emplace_back();
      for (const std::string& name : model.outputs()) {
        const ArrayView value = model.value(name);
        outputs.push_back(Tensor::wrap(value.dtype, value.shape, value.data, nullptr).cast(DType::f64));
      }
    }
    return all;
  }

  static double sqnr(const std::vector<std::vector<Tensor>>& want, const std::vector<std::vector<Tensor>>& got) {
    Noise noise;
    for (size_t s = 0; s < want.size(); ++s)
      for (size_t o = 0; o < want[s].size(); ++o)
        for (int64_t e = 0; e < want[s][o].elements(); ++e) {
          const double x = want[s][o].real(e), d = x - got[s][o].real(e);
          noise.signal += x * x, noise.noise += d * d;
        }
    return noise.sqnr();
  }

  const PreparedModel prepared_;
  const QuantizeOptions& options_;
  const QuantizedModel& whole_;
  std::vector<std::vector<Tensor>> probes_;
  std::map<std::string, size_t> at_;  ///< by tensor, as it is called before channels are equalised
};

}  // namespace

Search search_modules(const Graph& model, const Samples& samples, const QuantizeOptions& options, double most_drop,
                      size_t probes, const MetricOf& metric, QuantizedModel& made) {
  Search found;
  const auto first = samples.read(0);
  const SymbolValues sizes = first ? bind_symbols(made.reference, *first) : SymbolValues{};
  const auto point_of = [&](QuantizedModel& candidate, size_t left) {
    const auto [of_codes, of_float] = metric(candidate);
    const double drop = of_float != 0 ? (of_float - of_codes) / std::fabs(of_float) : of_float - of_codes;
    const double share = multiply_adds_in_codes(candidate.reference, candidate.placement).share();
    return FrontierPoint{left, share, of_codes, drop, predicted_milliseconds(candidate.graph, sizes, options.run)};
  };
  found.predicted_float = predicted_milliseconds(made.reference, sizes, options.run);
  found.frontier.push_back(point_of(made, 0));
  if (found.frontier.back().drop <= most_drop) return found;
  Searcher searcher(model, samples, options, probes, made);
  found.order = searcher.sensitivities();
  const double all = sum_of(found.order);
  std::vector<Sensitivity> left;
  QuantizedModel best;
  size_t step = 1;
  while (found.frontier.back().drop > most_drop) {
    if (left.size() == found.order.size())
      throw fail(E::bad_option, "no choice of modules holds a drop of {:g} %", 100 * most_drop)
          .hint("choose another --method or --keep-float, or give more samples");
    const size_t next = std::min(found.order.size(), left.size() + step);
    left.assign(found.order.begin(), found.order.begin() + static_cast<int64_t>(next));
    if (next >= 4 && (next & (next - 1)) == 0) step = next / 2;
    best = searcher.without(left);
    found.frontier.push_back(point_of(best, next));
  }
  std::vector<Sensitivity> tried = left;
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.multiply_adds > b.multiply_adds; });
  for (const Sensitivity& s : tried) {
    if (left.size() < 2 || s.multiply_adds < kWorthTrying * all) break;
    std::vector<Sensitivity> fewer = left;
    std::erase_if(fewer, [&](const Sensitivity& other) { return other.module == s.module; });
    if (measured(found, fewer)) continue;
    QuantizedModel candidate = searcher.without(fewer);
    const FrontierPoint point = point_of(candidate, fewer.size());
    const bool held = point.drop <= most_drop;
    found.returned.push_back({s.module, point.metric, point.drop, held});
    if (!held) continue;
    found.frontier.push_back(point);
    left = std::move(fewer), best = std::move(candidate);
  }
  found.chosen = found.frontier.size() - 1;
  found.left = std::move(left);
  made = std::move(best);
  return found;
}

}  // namespace opfuse::quantization
