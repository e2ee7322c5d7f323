// What the region of a launch says it must store, with how far a correct kernel may be from it; the judgement of its
// results by that.
#include "cpu/activation_form.hpp"
#include "cpu/winograd/winograd_error.hpp"
#include "proof/digit_errors.hpp"
#include "proof/prove_groups.hpp"

namespace opfuse {

std::vector<GroupProver::Transformed> GroupProver::transformed(const Launch& launch) const {
  std::vector<Transformed> found;
  for (size_t stage = 0; stage < launch.region.stages.size(); ++stage) {
    const auto view = view_winograd(launch.region, static_cast<int>(stage));
    if (!std::holds_alternative<WinogradView>(view)) continue;
    const WinogradView& w = std::get<WinogradView>(view);
    const Read& weights = launch.region.stages[stage].reads[static_cast<size_t>(w.contraction.weights)];
    if (weights.stage >= 0) continue;
    const Buffer& buffer =
        runner_.program().buffers[static_cast<size_t>(launch.buffers[static_cast<size_t>(weights.index)])];
    if (!buffer.layout.is_transformed() || w.codes()) continue;  // sums of codes are exact
    found.push_back({stage, static_cast<size_t>(weights.index), &buffer, w.row.axis, w.column.axis});
  }
  return found;
}

BoundOptions GroupProver::bounds_of(const Launch& launch, const Image& image, Numbers numbers) const {
  BoundOptions options;
  options.model.folded = numbers == Numbers::of_graph;
  options.model.typed = numbers == Numbers::of_type;
  for (size_t p = 0; p < launch.buffers.size(); ++p)
    if (launch.buffers[p] >= 0 && launch.region.params[p].role == ParamRole::constant &&
        given_.contains(runner_.program().buffers[static_cast<size_t>(launch.buffers[p])].constant.data()))
      options.as_given.insert(p);
  for (size_t p = 0; p < launch.buffers.size(); ++p) {
    if (launch.region.params[p].role != ParamRole::output) continue;
    const Buffer& result = runner_.program().buffers[static_cast<size_t>(launch.buffers[p])];
    const auto at = bias_codes_.find(image.name(result.name));
    if (at != bias_codes_.end()) options.model.bias_code = std::max(options.model.bias_code, at->second);
  }
  options.model.tables = launch.schedule.get(kActivationTables, 0) != 0;
  for (const Transformed& t : transformed(launch)) {
    if (numbers == Numbers::of_region && t.keeps_integers()) continue;
    const WinogradTile tile{t.weights->layout.tile_h, t.weights->layout.tile_w};
    const double error = probe_winograd_error(t.weights->constant, tile).of_sum;
    options.winograd.push_back({static_cast<int>(t.stage), error, t.row, t.column, tile.h, tile.w});
  }
  return options;
}

/// Real proofs carry errors through values that only the program has: the graph says what comes behind them.
std::vector<BoundedRun> GroupProver::bound_run(const Launches& together, const LaunchRun& run, const Image& image,
                                               Numbers numbers) const {
  const bool real = numbers == Numbers::of_graph;
  std::vector<BoundedRun> bounded;
  for (size_t k = 0; k < together.size(); ++k) {
    const Launch& launch = runner_.program().launches[together[k]];
    BoundOptions options = bounds_of(launch, image, numbers);
    for (size_t p = 0; real && p < launch.buffers.size(); ++p)
      if (const auto at = inner_.find(key(launch.buffers[p], image));
          at != inner_.end() && launch.region.params[p].role == ParamRole::input)
        options.bounded[p] = &at->second.numbers;
    for (size_t p = 0; p < launch.buffers.size(); ++p)  // a scatter stores into what its result holds
      if (k > 0 && launch.region.params[p].role == ParamRole::output)
        options.bounded[p] =
            parts_of({together.begin(), together.begin() + static_cast<std::ptrdiff_t>(k)}, bounded, launch.buffers[p])
                .back();
    const auto digits = real ? digit_errors(launch, run.operands[k], options) : std::nullopt;
    if (digits) options.bounded[digits->first] = &digits->second;
    bounded.push_back(bound_errors(launch.region, run.operands[k], runner_.symbols(), options));
  }
  return bounded;
}

std::vector<const BoundedTensor*> GroupProver::parts_of(const Launches& together,
                                                        const std::vector<BoundedRun>& bounded, int buffer) const {
  std::vector<const BoundedTensor*> parts;
  for (size_t k = 0; k < together.size(); ++k) {
    const Launch& launch = runner_.program().launches[together[k]];
    for (size_t p = 0; p < launch.buffers.size(); ++p)
      if (launch.region.params[p].role == ParamRole::output && launch.buffers[p] == buffer)
        parts.push_back(&bounded[k].results[p]);
  }
  return parts;
}

/// `want` empty, or an empty tensor in it: the region's own values.
Proof GroupProver::judge_run(const Launches& together, const LaunchRun& run, const Image& image,
                             const std::vector<BoundedRun>& bounded, const std::vector<Tensor>& want) const {
  Proof proof;
  std::vector<BoundedRun> typed;
  for (const BoundedRun& b : bounded) proof.worst_case = std::max(proof.worst_case, b.worst_of_bound);
  for (size_t r = 0; r < run.results.size(); ++r) {
    const std::vector<const BoundedTensor*> parts = parts_of(together, bounded, run.results[r].buffer);
    const bool given = !want.empty() && !want[r].empty();
    const auto by_type = [&, buffer = run.results[r].buffer] {
      if (typed.empty()) typed = bound_run(together, run, image, Numbers::of_type);
      return parts_of(together, typed, buffer);
    };
    proof.merge(judge(run.results[r].tensor, given ? want[r] : values_of(parts), parts, given ? kOracle : 0, by_type));
  }
  return proof;
}

}  // namespace opfuse
