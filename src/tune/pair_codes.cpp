// By the weights' values: how many octets of a layer a block of outputs multiplies twice. The sums are the same in
// every bit, so nothing but time and memory is weighed.
#include "tune/pair_codes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "cpu/activation_form.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/paired_weights.hpp"
#include "cpu/generator.hpp"
#include "kernel/collapse.hpp"
#include "tune/algorithm_wish.hpp"
#include "tune/own_weights.hpp"

namespace opfuse {
namespace {

struct Pairing {
  size_t weights = 0;  ///< operand of the launch
  Layout layout;
  Schedule schedule;
  int64_t growth = 0;  ///< bytes
  double extras = 0;   ///< of an octet
};

int64_t stored(const Layout& layout, const Shape& shape) {
  return layout.physical_elements(shape).constant().value_or(0);
}

class Pairer {
 public:
  Pairer(Program& program, const TargetInfo& target, const AlgorithmRequest& request)
      : program_(program), target_(target), only_(of_pairs(request.only)), skip_(of_pairs(request.skip)) {}

  void run(int64_t room) {
    int64_t paired = 0;
    double extras = 0;
    for (size_t l = 0; l < program_.launches.size(); ++l) {
      Launch& launch = program_.launches[l];
      if (launch.reference || !sums_codes(launch.region)) continue;
      const bool forbidden = concern(skip_, launch), forced = concern(only_, launch);
      const auto pairing = forbidden ? std::nullopt : pairing_of(launch, forced);
      if (!pairing || pairing->growth > room) {
        refuse(launch, forbidden ? "--no-algorithm" : pairing ? "the bound on memory" : "how its codes lie");
        continue;
      }
      room -= pairing->growth;
      ++paired;
      extras += pairing->extras;
      apply(launch, *pairing);
      record(l, *pairing, forced);
    }
    for (const auto* wishes : {&only_, &skip_})
      for (const AlgorithmWish& wish : *wishes)
        if (!wish.used && !wish.node.empty())
          throw fail(E::unknown_name, "no product of codes named '{}'", wish.node)
              .hint("opfuse explain MODEL lists them");
    if (paired)
      program_.notes.push_back(fmt::format("codes in pairs in {} products, exact; {:.1f} % of their octets twice",
                                           paired, 100 * extras / static_cast<double>(paired)));
  }

 private:
  Program& program_;
  const TargetInfo& target_;
  std::vector<AlgorithmWish> only_, skip_;

  static std::vector<AlgorithmWish> of_pairs(const std::vector<std::string>& texts) {
    std::vector<AlgorithmWish> wishes = parse_wishes(texts);
    std::erase_if(wishes, [](const AlgorithmWish& wish) { return !wish.of_pairs(); });
    return wishes;
  }

  static bool concern(std::vector<AlgorithmWish>& wishes, const Launch& launch) {
    return std::count_if(wishes.begin(), wishes.end(), [&](AlgorithmWish& wish) { return wish.concerns(launch); }) > 0;
  }

  /// A wish for this node against `why`.
  void refuse(const Launch& launch, const char* why) {
    for (AlgorithmWish& wish : only_)
      if (!wish.node.empty() && wish.concerns(launch))
        throw fail(E::bad_option, "--algorithm {}@{} against {}", wish.name, wish.node, why).node(launch.name);
  }

  void record(size_t launch, const Pairing& pairing, bool forced) {
    std::vector<Algorithm>& all = program_.algorithms;
    const auto behind =
        std::find_if(all.begin(), all.end(), [&](const Algorithm& a) { return a.launch >= static_cast<int>(launch); });
    const bool known = behind != all.end() && behind->launch == static_cast<int>(launch);
    Algorithm& a = known ? *behind : *all.insert(behind, Algorithm{.launch = static_cast<int>(launch)});
    a.name = kPairsAlgorithm;
    a.reason = fmt::format("{}exact, {:.1f} % of octets twice", forced ? "--algorithm, " : "", 100 * pairing.extras);
    a.weight_growth = pairing.growth;
  }

  const Buffer& buffer_of(const Launch& launch, size_t operand) const {
    return program_.buffers[static_cast<size_t>(launch.buffers[operand])];
  }

  std::vector<ParamLayout> layouts_of(const Launch& launch) const {
    std::vector<ParamLayout> layouts;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      layouts.push_back({buffer_of(launch, i).layout, buffer_of(launch, i).strides});
    return layouts;
  }

  bool may_pair(const Launch& launch, const std::vector<ParamLayout>& layouts) const {
    if (launch.reference || launch.schedule.skeleton != "contraction" || !sums_codes(launch.region)) return false;
    const Collapsed c = collapse(launch.region, layouts);
    const auto found = view_products(c.region, 0);
    const auto* view = std::get_if<ContractionView>(&found);
    return view && may_pair_codes(c.region.stages[0], *view, target_);
  }

  std::optional<Pairing> pairing_of(const Launch& launch, bool forced) const {
    std::vector<ParamLayout> layouts = layouts_of(launch);
    if (!may_pair(launch, layouts)) return std::nullopt;
    const auto found = view_products(launch.region, 0);
    const auto* view = std::get_if<ContractionView>(&found);
    if (!view) return std::nullopt;
    const Stage& stage = launch.region.stages[0];
    Pairing pairing;
    pairing.weights = static_cast<size_t>(stage.reads[static_cast<size_t>(view->weights)].index);
    const Buffer& weights = buffer_of(launch, pairing.weights);
    const auto outputs = axis_extent(stage, view->vec).constant();
    if (weights.kind != BufferKind::constant || weights.constant.dtype() != DType::i8 || !outputs) return std::nullopt;
    const auto [layout, extras] = pair_weights(*view, *outputs, channel_depth(stage, *view), weights.constant, target_);
    if (extras > target_.kernels.paired_extras && !forced) return std::nullopt;
    pairing.layout = layout;
    pairing.extras = extras;
    ParamLayout& changed = layouts[pairing.weights];
    pairing.growth = stored(pairing.layout, weights.type.shape) - stored(changed.layout, weights.type.shape);
    changed = {pairing.layout, dense_strides(pairing.layout, weights.type.shape)};
    pairing.schedule = choose_schedule(launch.region, layouts, target_);
    if (!pairing.schedule.get("paired", 0)) return std::nullopt;
    if (launch.schedule.get(kActivationTables, 0)) pairing.schedule.set(kActivationTables, 1);
    return pairing;
  }

  void apply(Launch& launch, const Pairing& pairing) {
    lay_out_weights(program_, launch, pairing.weights, pairing.layout);
    launch.schedule = pairing.schedule;
  }
};

}  // namespace

void pair_codes(Program& program, const TargetInfo& target, const AlgorithmRequest& request) {
  int64_t room = request.max_weight_growth.value_or(request.least_memory ? 0 : default_weight_growth(program));
  if (request.max_weight_growth)
    for (const Algorithm& a : program.algorithms) room -= a.weight_growth;
  Pairer(program, target, request).run(room);
}

}  // namespace opfuse
