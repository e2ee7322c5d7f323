// compile every candidate -> time them in turns -> choose -> prove -> time the choice against no fusion
//
// The first candidate stays unless another is faster beyond noise. What needs more memory than the unfused model is
// chosen only where all candidates do. The last measurement is a new one: the fastest of several samples looks faster
// than it is.
#include "optimize/search.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "optimize/candidates.hpp"
#include "optimize/contestant.hpp"
#include "profile/statistics.hpp"
#include "profile/turns.hpp"

namespace opfuse {
namespace {

struct Search {
  const Graph& model;
  const TargetInfo& target;
  const CompilationOptions& options;
  const SearchRequest& request;
  std::vector<OptimizeCandidate> rows;
  std::vector<std::unique_ptr<Contestant>> contestants;  ///< by row; null: not measured
  std::unique_ptr<Contestant> unfused;

  bool stopped() const { return request.stop && request.stop(); }
  void progress(const std::string& step, size_t done, size_t total) const {
    if (options.artifact.progress) options.artifact.progress(step, done, total);
  }

  std::unique_ptr<Contestant> compiled(const CompilationOptions& with) const {
    return std::make_unique<Contestant>(compile_graph(model, target, with), request.inputs, options.algorithms.threads);
  }

  /// Errors of the first candidate are the caller's; the others may not apply to this model.
  void compile_candidates() {
    std::map<std::string, std::string> known;  // fingerprint -> candidate
    for (const CandidateRow& row : candidate_rows()) {
      if (!rows.empty() && stopped()) break;
      progress(std::string("candidate: ") + row.name, rows.size(), candidate_rows().size());
      OptimizeCandidate& candidate = rows.emplace_back();
      candidate.name = row.name, candidate.flags = row.flags;
      contestants.emplace_back();
      CompilationOptions with = options;
      row.set(with);
      try {
        auto contestant = compiled(with);
        const auto [same, fresh] = known.try_emplace(fingerprint(contestant->executable.artifact()), row.name);
        if (fresh)
          contestants.back() = std::move(contestant);
        else
          candidate.skipped = "the same program as '" + same->second + "'";
      } catch (const Error& error) {
        if (rows.size() == 1 || error.diagnostic().name == "internal") throw;
        candidate.skipped = error.diagnostic().message;
      }
    }
    CompilationOptions with = options;
    with.fused = false;
    with.given_plan = nullptr;
    with.specialize.clear();
    unfused = compiled(with);
  }

  void measure(std::vector<Contestant*> together, double seconds) const {
    std::vector<Context*> contexts;
    for (Contestant* c : together) contexts.push_back(&c->context);
    auto samples = measure_in_turns(contexts, {request.warmup_seconds, seconds, 10}, request.stop);
    for (size_t i = 0; i < together.size(); ++i) together[i]->sample = std::move(samples[i]);
  }

  size_t choose() {
    std::vector<Contestant*> together;
    for (const auto& c : contestants)
      if (c) together.push_back(c.get());
    together.push_back(unfused.get());
    progress("measure candidates", 0, 0);
    if (together.size() > 2) measure(together, request.seconds / 2);
    const int64_t most = unfused->side().memory();
    size_t best = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!contestants[i]) continue;
      const OptimizeSide side = contestants[i]->side();
      rows[i].launches = side.launches, rows[i].ms = side.ms, rows[i].arena = side.arena,
      rows[i].constants = side.constants;
      if (i == 0 || contestants[i]->sample.empty()) continue;
      const bool fits = side.memory() <= most, best_fits = contestants[best]->side().memory() <= most;
      const bool faster = ratio_of_medians(contestants[i]->sample, contestants[best]->sample, request.seed).high < 1;
      if (fits != best_fits ? fits : faster) best = i;
    }
    return best;
  }

  Comparison prove(const Contestant& c) const {
    CompareOptions with;
    with.threads = options.algorithms.threads;
    with.seed = request.seed;
    with.progress = options.artifact.progress;
    return compare_model(model, c.compilation.fused, c.compilation.program, c.executable, request.inputs,
                         request.other_inputs, with);
  }
};

void take_proof(const Comparison& proof, Optimized& result) {
  result.groups = proof.groups.size();
  if (const GroupComparison* worst = proof.worst())
    result.worst_of_bound = std::max(worst->real.of_bound, worst->exact.of_bound);
  for (const GroupComparison& g : proof.groups)
    if (!g.ok) result.failures.push_back("group " + g.name + (g.problem.empty() ? "" : ": " + g.problem));
  for (const OutputComparison& o : proof.outputs) {
    result.output_error = std::max(result.output_error, o.difference.relative());
    if (!o.ok) result.failures.push_back("output " + o.name);
  }
}

}  // namespace

SearchOutcome search(const Graph& model, const TargetInfo& target, const CompilationOptions& options,
                     const SearchRequest& request) {
  Search s{model, target, options, request, {}, {}, nullptr};
  s.compile_candidates();
  const size_t best = s.choose();
  Contestant& chosen = *s.contestants[best];
  Optimized result{.executable = chosen.executable, .candidates = s.rows, .chosen = best};
  result.dims = options.dims;
  result.target = target.name;
  result.threads = chosen.context.threads();
  std::optional<Comparison> proof;
  if (request.prove && !s.stopped()) {
    proof = s.prove(chosen);
    take_proof(*proof, result);
  }
  s.progress("measure against unfused", 0, 0);
  s.measure({&chosen, s.unfused.get()}, request.seconds);
  result.fused = chosen.side(), result.unfused = s.unfused->side();
  if (!chosen.sample.empty() && !s.unfused->sample.empty()) {
    const Interval ratio = ratio_of_medians(chosen.sample, s.unfused->sample, request.seed);
    result.time = {ratio.low, ratio.estimate, ratio.high};
  }
  result.interrupted = s.stopped();
  return {std::move(result), std::move(chosen.compilation), std::move(proof)};
}

}  // namespace opfuse
