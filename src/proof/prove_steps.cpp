// The launches of a loop (a recurrent layer), proven at every step. A step is judged on the states that the steps
// before it stored, so errors do not add up, bounds are those of one step, and the last state is that of the whole run.
//
//     real    x[t], h[t - 1] as stored  ->  what the cell, in double, makes of them     all t side by side:
//     exact   x[t], h[t - 1] drawn      ->  what the region, in double, makes of them   axis 0 of the region has T, not
//     1
#include <algorithm>

#include "base/fail.hpp"
#include "ir/value_name.hpp"
#include "ops/recurrent_steps.hpp"
#include "program/body.hpp"
#include "proof/exact_inputs.hpp"
#include "proof/prove_groups.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

using Port = RecurrentSteps::Input;

bool is_slice(const Launch& launch, size_t p) {
  return launch.region.params[p].role == ParamRole::output || launch.steps[p].moves || launch.steps[p].before;
}

/// The region of one step, for all steps: slices are read and stored at their own coordinate of axis 0.
Region side_by_side(const Launch& launch, int64_t steps) {
  Region region = launch.region;
  OPFUSE_CHECK(is_single_stage(region), "{} has {} stages in a step", launch.name, region.stages.size());
  for (size_t p = 0; p < region.params.size(); ++p)
    if (is_slice(launch, p)) region.params[p].type.shape.dims[0] = Dim(steps);
  Stage& stage = region.stages[0];
  OPFUSE_CHECK(stage.domain[0] == Dim(1), "a step of {} is not a slice", launch.name);
  stage.domain[0] = Dim(steps);
  for (StageOutput& output : stage.outputs) output.shape.dims[0] = Dim(steps);
  for (const Read& read : stage.reads)
    if (is_slice(launch, static_cast<size_t>(read.index))) {
      const IndexExpr& first = read.map.dims[0];
      OPFUSE_CHECK(first.terms.size() == 1 && first.terms[0].axis == 0, "a read of {} is not a slice", launch.name);
    }
  return region;
}

std::set<int> results_of(const LaunchRunner& runner, const Body& loop) {
  std::set<int> results;
  for (int k = 0; k < loop.launches; ++k) {
    const Launch& launch = runner.program().launches[static_cast<size_t>(loop.first + k)];
    for (size_t p = 0; p < launch.buffers.size(); ++p)
      if (launch.region.params[p].role == ParamRole::output) results.insert(runner.sliced(launch, p));
  }
  return results;
}

/// [steps * rows, hidden] where `h` was stored, the step before.
Tensor states_before(const Tensor& h, const Tensor& initial, bool backwards) {
  Tensor before(DType::f64, h.sizes());
  const int64_t slice = h.dim(1) * h.dim(2);
  for (int64_t i = 0, n = h.elements(); i < n; ++i) {
    const int64_t from = backwards ? i + slice : i - slice;
    before.set_real(i, from < 0 || from >= n ? initial.real(i % slice) : h.real(from));
  }
  return before;
}

const double* doubles(const Tensor& t) { return t.empty() ? nullptr : static_cast<const double*>(t.data()); }

}  // namespace

/// The results of the layer, h and what else it has, each step on the states that were stored before it.
std::vector<Tensor> GroupProver::step_results(const Body& loop, const LoopRun& run) {
  const Node& node = oracle_.producer_of(key(run.results.back().back().buffer, {}));
  const auto given = [&](size_t port) {
    const Value* v = node.input(port);
    return v ? oracle_.value(*v, values_) : Tensor();
  };
  const auto stored = [&](size_t result) -> const Tensor& {
    const std::string name = value_name(*node.outputs[result]);
    for (const auto& results : run.results)
      for (const StoredResult& r : results)
        if (key(r.buffer, {}) == name) return r.tensor;
    throw fail(E::internal, "'{}' was not stored", name);
  };
  const auto& attrs = node.as<RecurrentSteps>();
  const Tensor x = given(Port::kX), r = given(Port::kR), b = given(Port::kB), p = given(Port::kP);
  const Tensor h = states_before(stored(0), given(Port::kH0), loop.backwards);
  const bool lstm = attrs.cell == CellKind::lstm;
  const Tensor c = lstm ? states_before(stored(1), given(Port::kC0), loop.backwards) : Tensor();
  const std::vector<int64_t> sizes = h.sizes();
  StepsInDoubles cell{attrs.as_cell(), false, 1, sizes[0] * sizes[1], sizes[2]};  // a batch of all steps, one step
  cell.x = doubles(x), cell.r = doubles(r), cell.h0 = doubles(h), cell.c0 = doubles(c);
  cell.b = doubles(b), cell.p = doubles(p);
  if (const Value* alive = node.input(Port::kAlive)) {
    const Tensor mask = oracle_.value(*alive, values_);
    for (int64_t i = 0; i < mask.elements(); ++i) cell.alive.push_back(mask.integer(i) != 0);
  }
  const StepsInDoubles::Results made = cell.run();
  std::vector<Tensor> results;
  for (const std::vector<double>* values : {&made.h, &made.second, &made.third}) {
    if (results.size() == node.outputs.size()) break;
    results.emplace_back(DType::f64, sizes);
    std::copy(values->begin(), values->end(), static_cast<double*>(results.back().mutable_data()));
  }
  return results;
}

/// `real`: what a launch of the same step stored is off by its own errors. Expected is what the cell makes of exact
/// numbers there.
std::vector<BoundedRun> GroupProver::bound_steps(const Body& loop, const LoopRun& run, bool real) const {
  std::vector<BoundedRun> bounded;
  bounded.reserve(run.operands.size());  // `inner` points into them
  std::map<int, const BoundedTensor*> inner;
  for (size_t k = 0; k < run.operands.size(); ++k) {
    const Launch& launch = runner_.program().launches[static_cast<size_t>(loop.first) + k];
    BoundOptions options = bounds_of(launch, {}, real ? Numbers::of_graph : Numbers::of_region);
    for (size_t p = 0; real && p < launch.buffers.size(); ++p)
      if (const auto at = inner.find(runner_.sliced(launch, p)); at != inner.end() && launch.steps[p].moves)
        options.bounded[p] = at->second;
    const int64_t steps = loop.times.evaluate(runner_.symbols());
    bounded.push_back(bound_errors(side_by_side(launch, steps), run.operands[k], runner_.symbols(), options));
    for (size_t p = 0; p < launch.buffers.size(); ++p)
      if (launch.region.params[p].role == ParamRole::output)
        inner[runner_.sliced(launch, p)] = &bounded.back().results[p];
  }
  return bounded;
}

LoopRun GroupProver::run_drawn_steps(const Body& loop) {
  std::map<int, Tensor> drawn;  // by buffer
  for (int k = 0; k < loop.launches; ++k) {
    const size_t index = static_cast<size_t>(loop.first + k);
    const Launch& launch = runner_.program().launches[index];
    const ExactInputs exact(launch.region, options_.seed + index);
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      if (launch.region.params[p].role == ParamRole::output) continue;
      const int whole = runner_.sliced(launch, p);
      const Buffer& buffer = runner_.program().buffers[static_cast<size_t>(whole)];
      const bool constant = buffer.kind == BufferKind::constant;
      if (!drawn.contains(whole)) drawn[whole] = exact.draw(p, constant ? buffer.constant : operand(whole, {}));
    }
  }
  return runner_.run_steps(loop, [&](const Launch& launch, size_t p) { return &drawn.at(runner_.sliced(launch, p)); });
}

void GroupProver::prove_steps(const Body& loop) {
  const std::set<int> own = results_of(runner_, loop);
  const LoopRun run = runner_.run_steps(loop, [&](const Launch& launch, size_t param) -> const Tensor* {
    const int whole = runner_.sliced(launch, param);
    const bool constant = runner_.program().buffers[static_cast<size_t>(whole)].kind == BufferKind::constant;
    return constant || own.contains(whole) ? nullptr : &operand(whole, {});
  });
  const bool any = loop.times.evaluate(runner_.symbols()) > 0;
  const std::vector<Tensor> want = any ? step_results(loop, run) : std::vector<Tensor>();
  for (const auto& results : run.results)
    for (const StoredResult& r : results) values_[key(r.buffer, {})] = r.tensor;
  const std::vector<BoundedRun> real = any ? bound_steps(loop, run, true) : std::vector<BoundedRun>();
  LoopRun drawn;
  std::vector<BoundedRun> exact;
  if (any && options_.exact_proof) drawn = run_drawn_steps(loop), exact = bound_steps(loop, drawn, false);
  for (size_t k = 0; k < run.results.size(); ++k) {
    const auto index = static_cast<size_t>(loop.first) + k;
    const Launch& launch = runner_.program().launches[index];
    GroupComparison& result = loops_[index];
    result.name = launch.name, result.pattern = launch.pattern, result.sources = launch.sources;
    size_t next = 0;
    for (size_t p = 0; any && p < launch.buffers.size(); ++p) {
      if (launch.region.params[p].role != ParamRole::output) continue;
      const StoredResult& stored = run.results[k][next];
      judge_steps(stored, want[result_number(key(stored.buffer, {}))], real[k], p, result);
      if (!exact.empty()) {
        const BoundedTensor& expected = exact[k].results[p];
        result.exact.merge(judge(drawn.results[k][next].tensor, values_of({&expected}), {&expected}, 0));
      }
      ++next;
    }
    conclude(result);
  }
}

/// Which result of the layer's cell a value is.
size_t GroupProver::result_number(const std::string& name) const {
  const std::vector<Value*>& outputs = oracle_.producer_of(name).outputs;
  const auto at = std::find_if(outputs.begin(), outputs.end(), [&](const Value* v) { return value_name(*v) == name; });
  return static_cast<size_t>(at - outputs.begin());
}

void GroupProver::judge_steps(const StoredResult& stored, const Tensor& want, const BoundedRun& bounds, size_t param,
                              GroupComparison& result) {
  const Difference d = difference(stored.tensor, want);
  if (result.output.empty() || d.relative() > result.difference.relative())
    result.difference = d, result.output = stored.name;
  noise_[key(stored.buffer, {})] = distance_of(stored.tensor, want);
  result.real.worst_case = std::max(result.real.worst_case, bounds.worst_of_bound);
  result.real.merge(judge(stored.tensor, want, {&bounds.results[param]}, kOracle));
}

}  // namespace opfuse
