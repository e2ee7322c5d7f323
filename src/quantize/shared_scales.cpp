//     a [Q DQ] --.                              x --- Conv -- Add -- Relu -- y [Q DQ]
//     b [Q DQ] -- Concat -- c [Q DQ]                r [Q DQ] --'
//
// moves: a, b and c are one group: the concat joins bytes. adds: r and y are one group as well: the skip operand is
// added as it is, in steps of the result. Groups of several links are united; the histogram of a group is the sum of
// its tensors', each divided by its energy, so a small tensor counts as much as a large one.
#include "quantize/shared_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/node_kind.hpp"
#include "ir/value_name.hpp"
#include "ops/add.hpp"
#include "ops/clip.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"
#include "ops/pool.hpp"
#include "ops/relu.hpp"

namespace opfuse::quantization {
namespace {

constexpr double kWeight = 1e9;   // of a tensor in a group's histogram
constexpr double kMostCost = 15;  // dB; beyond that a tensor is quantised again instead

bool moves(const Node& node) {
  if (is_a<MaxPool>(node)) return node.outputs.size() == 1;
  return kind_of(node) == OpKind::injective;
}

class Linker {
 public:
  Linker(const Graph& graph, Placement& placement, Sharing sharing)
      : graph_(graph), placement_(placement), sharing_(sharing) {}

  std::vector<SharedScale> run() {
    if (sharing_ == Sharing::off) return {};
    read_codes_at_concats();
    root_.resize(placement_.tensors.size());
    std::iota(root_.begin(), root_.end(), size_t{0});
    std::set<size_t> added;
    for (const Value* value : graph_.values()) {
      const auto at = index_of(value);
      if (!at) continue;
      for (size_t other : moved_from(value)) unite(*at, other);
      if (sharing_ != Sharing::adds) continue;
      for (size_t other : added_in(value)) unite(*at, other), added.insert(*at);
    }
    return groups(added);
  }

 private:
  std::optional<size_t> index_of(const Value* value) const {
    for (size_t i = 0; i < placement_.tensors.size(); ++i)
      if (placement_.tensors[i].value == value->id) return i;
    return std::nullopt;
  }

  bool reads(const PlacedTensor& placed, const Node* node) const {
    return std::find(placed.readers.begin(), placed.readers.end(), node->id) != placed.readers.end();
  }

  /// Concats whose result is only read behind its pair.
  void read_codes_at_concats() {
    for (const Node* node : graph_.nodes()) {
      if (!is_a<Concat>(*node) || graph_.is_output(node->output())) continue;
      const auto at = index_of(node->output());
      if (!at) continue;
      const PlacedTensor result = placement_.tensors[*at];
      const bool all = std::all_of(node->output()->uses.begin(), node->output()->uses.end(),
                                   [&](const Use& use) { return reads(result, use.node); });
      if (!all) continue;
      for (const Value* operand : node->inputs) read_codes(operand, *node, result);
    }
  }

  void read_codes(const Value* operand, const Node& concat, const PlacedTensor& result) {
    if (!operand || operand->is_constant() || operand->name.empty()) return;
    auto at = index_of(operand);
    if (!at) {
      at = placement_.tensors.size();
      placement_.tensors.push_back(
          {.tensor = operand->name, .value = operand->id, .readers = {}, .modules = result.modules, .shared = true});
    }
    PlacedTensor& placed = placement_.tensors[*at];
    if (!reads(placed, &concat)) placed.readers.push_back(concat.id);
  }

  /// Placed tensors whose elements these are, through what moves elements.
  std::vector<size_t> moved_from(const Value* value) const {
    std::vector<size_t> found;
    const std::function<void(const Value*)> climb = [&](const Value* v) {
      if (!v->producer || !moves(*v->producer)) return;
      for (const Value* input : v->producer->inputs) {
        if (!input || input->is_constant() || input->type.dtype != v->type.dtype) continue;
        if (const auto at = index_of(input))
          found.push_back(*at);
        else
          climb(input);
      }
    };
    climb(value);
    return found;
  }

  /// Skip operands of the addition behind which `value` is.
  std::vector<size_t> added_in(const Value* value) const {
    const Node* node = value->producer;
    while (node && (is_a<Relu>(*node) || is_a<Clip>(*node))) node = node->input(0)->producer;
    if (!node || !is_a<Add>(*node)) return {};
    std::vector<size_t> found;
    for (const Value* input : node->inputs)
      if (const auto at = index_of(input); at && reads(placement_.tensors[*at], node)) found.push_back(*at);
    return found;
  }

  size_t root(size_t i) const { return root_[i] == i ? i : root(root_[i]); }
  void unite(size_t a, size_t b) { root_[std::max(root(a), root(b))] = std::min(root(a), root(b)); }

  std::vector<SharedScale> groups(const std::set<size_t>& added) const {
    std::map<size_t, SharedScale> by_root;
    for (size_t i = 0; i < root_.size(); ++i) {
      SharedScale& group = by_root[root(i)];
      group.tensors.push_back(i);
      group.cost.push_back(0);
      group.adds = group.adds || added.contains(i);
    }
    std::vector<SharedScale> list;
    for (auto& [first, group] : by_root)
      if (group.tensors.size() > 1) list.push_back(std::move(group));
    return list;
  }

  const Graph& graph_;
  Placement& placement_;
  const Sharing sharing_;
  std::vector<size_t> root_;
};

/// Of all, over the united range.
TensorStatistics united(const std::vector<const TensorStatistics*>& parts) {
  TensorStatistics all = *parts.front();
  for (const TensorStatistics* s : parts) {
    all.low = std::min(all.low, s->low), all.high = std::max(all.high, s->high);
    all.mean_low = std::min(all.mean_low, s->mean_low), all.mean_high = std::max(all.mean_high, s->mean_high);
  }
  if (all.histogram.empty()) return all;
  all.histogram = {};
  all.histogram.cover(all.low, all.high);
  all.zeros = all.elements = 0;
  for (const TensorStatistics* s : parts) {
    if (s->histogram.empty()) continue;
    Histogram own = s->histogram;
    own.cover(all.low, all.high);
    const double range = std::max(all.high, -all.low);
    double energy = 0;
    for (size_t b = 0; b < kBins; ++b) {
      const double x = (own.edge(b) + own.width() / 2) / range;
      energy += static_cast<double>(own.counts[b]) * x * x;
    }
    const double weight = energy > 0 ? kWeight / energy : 0;
    for (size_t b = 0; b < kBins; ++b) {
      const auto count = static_cast<int64_t>(std::nearbyint(static_cast<double>(own.counts[b]) * weight));
      all.histogram.counts[b] += count, all.elements += count;
    }
    all.zeros += static_cast<int64_t>(static_cast<double>(s->zeros) * weight);
  }
  return all;
}

/// dB of its own rounding that a tensor loses by other codes; by its steps alone where there is no histogram.
double cost_of(const TensorStatistics& s, const Codes& own, const Codes& shared) {
  if (s.histogram.empty()) return 20 * std::log10(static_cast<double>(shared.scale) / static_cast<double>(own.scale));
  return loss_of(s, own).sqnr - loss_of(s, shared).sqnr;
}

/// One group while its codes are chosen.
class Chooser {
 public:
  Chooser(const Placement& placement, const std::vector<TensorStatistics>& statistics, const MethodChoice& method,
          const std::vector<Codes>& own, SharedScale& group)
      : placement_(placement), statistics_(statistics), method_(method), own_(own), group_(group) {}

  /// Tensors that would lose too much leave.
  Codes run() {
    Codes shared = choose();
    while (const auto worst = finest_ruined()) {
      if (placement_.tensors[group_.tensors[*worst]].shared)
        ignored_.insert(group_.tensors[*worst]);  // read by the concat alone, whose result has the shared steps anyway
      else
        group_.tensors.erase(group_.tensors.begin() + *worst), group_.cost.erase(group_.cost.begin() + *worst);
      shared = choose();
    }
    return shared;
  }

 private:
  Codes choose() {
    std::vector<const TensorStatistics*> parts;
    DType dtype = DType::u8;  // of types by sign, i8 where one member has negative numbers
    for (size_t i : group_.tensors) {
      if (!ignored_.contains(i)) parts.push_back(&statistics_[i]);
      if (own_[i].dtype == DType::i8) dtype = DType::i8;
    }
    const Codes shared = codes_of(united(parts), method_, dtype);
    for (size_t k = 0; k < group_.tensors.size(); ++k) {
      const size_t i = group_.tensors[k];
      group_.cost[k] = cost_of(statistics_[i], own_[i], shared);
    }
    return shared;
  }

  /// Among those that lose too much the one of the smallest steps: steps of others ruin it.
  std::optional<std::ptrdiff_t> finest_ruined() const {
    std::optional<std::ptrdiff_t> found;
    if (group_.tensors.size() - ignored_.size() < 2) return found;
    for (size_t k = 0; k < group_.tensors.size(); ++k) {
      const size_t i = group_.tensors[k];
      if (group_.cost[k] <= kMostCost || ignored_.contains(i)) continue;
      if (!found || own_[i].scale < own_[group_.tensors[static_cast<size_t>(*found)]].scale)
        found = static_cast<std::ptrdiff_t>(k);
    }
    return found;
  }

  const Placement& placement_;
  const std::vector<TensorStatistics>& statistics_;
  const MethodChoice& method_;
  const std::vector<Codes>& own_;
  SharedScale& group_;
  std::set<size_t> ignored_;
};

}  // namespace

double SharedScale::most() const { return cost.empty() ? 0 : *std::max_element(cost.begin(), cost.end()); }

Sharing parse_sharing(std::string_view text) {
  static const std::vector<std::string> kNames{"off", "moves", "adds"};
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end())
    throw fail(E::bad_option, "scales are shared by moves, adds, or off, not '{}'", text)
        .hint(did_you_mean(std::string(text), kNames));
  return static_cast<Sharing>(at - kNames.begin());
}

std::vector<SharedScale> link_scales(const Graph& graph, Placement& placement, Sharing sharing) {
  return Linker(graph, placement, sharing).run();
}

void share_codes(const Placement& placement, const std::vector<TensorStatistics>& statistics,
                 const MethodChoice& method, std::vector<SharedScale>& groups, std::vector<Codes>& codes) {
  for (SharedScale& group : groups) {
    const Codes shared = Chooser(placement, statistics, method, codes, group).run();
    if (group.tensors.size() > 1)
      for (size_t i : group.tensors) codes[i] = shared;
  }
  std::erase_if(groups, [](const SharedScale& group) { return group.tensors.size() < 2; });
}

}  // namespace opfuse::quantization
