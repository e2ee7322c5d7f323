// as predicted ----------------------------------------------.
//   |                                                        +-- whole models in turns -> proof -> the file of times
// groups, algorithms measured -> schedules tried -> winners again
//
// Schedules of all kernels are tried at once: program r has for each kernel its r-th candidate. Four such programs and
// the one they came from run in turns, so a round costs five runs of the model, whatever the number of kernels. The
// fastest of several samples looks faster than it is: winners are measured again, by themselves, before they count.
// Until the whole model is faster all times are in a file of their own.
#include "optimize/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "base/stopwatch.hpp"
#include "base/temporary_folder.hpp"
#include "driver/measure_launches.hpp"
#include "driver/measured_schedules.hpp"
#include "link/generators.hpp"
#include "optimize/candidates.hpp"
#include "optimize/contestant.hpp"
#include "profile/turns.hpp"

namespace opfuse {
namespace {

constexpr size_t kAtOnce = 4;        ///< programs beside the one they came from
constexpr double kPromising = 0.98;  ///< of the time as it was: what is measured again

struct Kernel {
  TimingKey key;
  std::vector<size_t> launches;
  Schedule before, best;
  std::vector<Schedule> others;
  double ratio = 1;  ///< of best, in the round that measured it
};

using Samples = std::vector<std::vector<double>>;  ///< nanoseconds by launch and run

class Tuning {
 public:
  Tuning(const Graph& model, const TargetInfo& target, const CompilationOptions& options, const TuneRequest& request)
      : model_(model), target_(target), options_(options), request_(request) {
    if (!target.traits.on_host)
      throw fail(E::bad_option, "schedules are measured on this machine's processor, not on {}", target.name)
          .hint("--target host");
    options_.algorithms.measure = true;
    files_ = options_.timings.empty() ? std::vector{TimingCache::default_file()} : options_.timings;
    options_.timings.assign({folder_.path("times.json")});
    options_.timings.insert(options_.timings.end(), files_.begin(), files_.end());
  }

  Tuned run() {
    CompilationOptions plain = options_;
    plain.algorithms.measure = false;
    plain.timings.clear();
    Contestant untuned(compile_graph(model_, target_, plain), request_.inputs, options_.algorithms.threads);
    progress("groups and algorithms", 0, 0);
    Compilation start(model_, target_, options_);
    start.run_to(Milestone::lowered);
    Tuned result;
    result.file = files_.front();
    try_schedules(start.program, result);
    confirm(start.program, result);
    result.seconds = seconds();
    check(untuned, result);
    return result;
  }

 private:
  const Graph& model_;
  const TargetInfo& target_;
  CompilationOptions options_;
  const TuneRequest& request_;
  TemporaryFolder folder_;
  std::vector<std::string> files_;
  Stopwatch clock_;
  std::vector<Kernel> kernels_;

  void progress(const std::string& step, size_t done, size_t total) const {
    if (options_.artifact.progress) options_.artifact.progress(step, done, total);
  }
  int threads() const { return options_.algorithms.threads; }
  double seconds() const { return 1e-3 * clock_.milliseconds(); }

  /// Kernels whose schedules were measured before are not tried again.
  void find_kernels(const Program& program, Tuned& result) {
    const KnownTimes times = read_times(options_.timings, target_, threads());
    const Generator& generator = generator_for(target_);
    std::map<TimingKey, size_t> seen;
    for (size_t l = 0; l < program.launches.size(); ++l) {
      const Launch& launch = program.launches[l];
      if (launch.reference) continue;
      const TimingKey key = launch_key(program, launch, times.machine);
      const auto [at, fresh] = seen.emplace(key, kernels_.size());
      if (!fresh) {
        kernels_[at->second].launches.push_back(l);
        continue;
      }
      Kernel kernel{key, {l}, launch.schedule, launch.schedule, {}};
      if (times.cache.fastest(key, "schedule ", generator.fingerprint()))
        ++result.known;
      else
        kernel.others =
            generator.candidates(launch.region, kernel_spec(program, launch).layouts, target_, request_.schedules);
      std::erase(kernel.others, kernel.before);
      kernels_.push_back(std::move(kernel));
    }
    result.kernels = kernels_.size();
  }

  /// The program with what `choose` gives each kernel; null: as it was.
  template <class Choose>
  Program with_schedules(const Program& program, const Choose& choose) const {
    Program changed = program;
    for (const Kernel& kernel : kernels_)
      if (const Schedule* schedule = choose(kernel))
        for (const size_t l : kernel.launches) changed.launches[l].schedule = *schedule;
    return changed;
  }

  static std::vector<double> sums(const Samples& samples, const Kernel& kernel) {
    std::vector<double> total(samples[kernel.launches[0]].size());
    for (const size_t l : kernel.launches)
      for (size_t i = 0; i < total.size(); ++i) total[i] += samples[l][i];
    return total;
  }

  void try_schedules(const Program& program, Tuned& result) {
    find_kernels(program, result);
    size_t most = 0;
    for (const Kernel& kernel : kernels_) most = std::max(most, kernel.others.size());
    double before = 0, after = 0;
    for (size_t from = 0; from < most; from += kAtOnce) {
      progress(step_text(from, most, before, after), from, most);
      std::vector<Program> programs{program};
      for (size_t r = from; r < std::min(from + kAtOnce, most); ++r)
        programs.push_back(
            with_schedules(program, [&](const Kernel& k) { return r < k.others.size() ? &k.others[r] : nullptr; }));
      const auto samples =
          sample_launches(programs, target_, threads(), {.most = 20, .seconds = 5, .stop = request_.stop});
      if (samples[0].empty() || samples[0][0].empty()) {
        result.stopped = true;
        break;
      }
      before = after = 0;
      for (Kernel& kernel : kernels_) {
        const double base = percentile(sums(samples[0], kernel), 50);
        for (size_t r = from; r < from + programs.size() - 1 && r < kernel.others.size(); ++r) {
          ++result.schedules;
          const double ratio = base > 0 ? percentile(sums(samples[1 + r - from], kernel), 50) / base : 1;
          if (ratio < kernel.ratio) kernel.ratio = ratio, kernel.best = kernel.others[r];
        }
        before += base, after += base * (kernel.ratio < kPromising ? kernel.ratio : 1);
      }
      result.stopped = request_.stop && request_.stop();
      result.out_of_time = seconds() > request_.limit_seconds && from + kAtOnce < most;
      if (result.stopped || result.out_of_time) break;
    }
  }

  std::string step_text(size_t from, size_t most, double before, double after) const {
    if (from == 0) return "schedules";
    const double spent = seconds();
    const double rest = spent / double(from) * double(most - from);
    return fmt::format("schedules, {:.1f} % faster so far, at most {:.0f} s left", 100 * (before / after - 1),
                       std::max(0.0, std::min(rest, request_.limit_seconds - spent)));
  }

  /// Winners once more, together; those that are faster beyond noise count, and their times are kept.
  void confirm(const Program& program, Tuned& result) {
    const auto promising = [](const Kernel& k) { return k.ratio < kPromising ? &k.best : nullptr; };
    if (std::none_of(kernels_.begin(), kernels_.end(), promising)) return;
    progress("measure what won again", 0, 0);
    const auto samples = sample_launches({program, with_schedules(program, promising)}, target_, threads(),
                                         {.fewest = 10, .most = 40, .seconds = 10});
    const std::string generator = generator_for(target_).fingerprint();
    TimingCache fresh;
    for (const Kernel& kernel : kernels_) {
      if (!promising(kernel)) continue;
      const std::vector<double> old = sums(samples[0], kernel), now = sums(samples[1], kernel);
      if (ratio_of_medians(now, old, request_.seed).high >= 1) continue;
      const Timing a = timing_of(form_of(kernel.before), old, generator),
                   b = timing_of(form_of(kernel.best), now, generator);
      fresh.add(kernel.key, a), fresh.add(kernel.key, b);
      result.changed.push_back({program.launches[kernel.launches[0]].name, kernel.launches.size(), kernel.before.text(),
                                kernel.best.text(), a.median, b.median});
    }
    std::sort(result.changed.begin(), result.changed.end(), [](const TunedKernel& a, const TunedKernel& b) {
      return a.before_us - a.after_us > b.before_us - b.after_us;
    });
    fresh.write(options_.timings.front());
  }

  void check(Contestant& untuned, Tuned& result) {
    progress("check the whole model", 0, 0);
    Contestant tuned(compile_graph(model_, target_, options_), request_.inputs, threads());
    result.threads = tuned.context.threads();
    result.same = fingerprint(tuned.executable.artifact()) == fingerprint(untuned.executable.artifact());
    if (result.same) return finish(untuned, result);
    auto samples =
        measure_in_turns({&tuned.context, &untuned.context}, {request_.warmup_seconds, request_.seconds, 10});
    result.tuned_ms = percentile(samples[0], 50), result.untuned_ms = percentile(samples[1], 50);
    result.time = ratio_of_medians(samples[0], samples[1], request_.seed);
    if (result.time.high >= 1) return finish(untuned, result);
    if (request_.prove) {
      CompareOptions with;
      with.threads = threads(), with.seed = request_.seed, with.progress = options_.artifact.progress;
      result.proof = compare_model(model_, tuned.compilation.fused, tuned.compilation.program, tuned.executable,
                                   request_.inputs, request_.other_inputs, with);
    }
    result.kept = !result.proof || result.proof->ok();
    if (result.kept) TimingCache::read(options_.timings.front()).write(files_.front());
    finish(result.kept ? tuned : untuned, result);
  }

  static void finish(Contestant& chosen, Tuned& result) {
    result.compilation = std::move(chosen.compilation);
    result.compilation->artifact = chosen.executable.artifact();
  }
};

}  // namespace

Tuned tune(const Graph& model, const TargetInfo& target, const CompilationOptions& options,
           const TuneRequest& request) {
  return Tuning(model, target, options, request).run();
}

}  // namespace opfuse
