// Machine limits are measured on both sides of the runs; the better one counts.
#include "measure_profile.hpp"

#include <algorithm>
#include <set>

#include "console.hpp"
#include "interrupt.hpp"
#include "profile/device_limits.hpp"
#include "profile/statistics.hpp"
#include "run_sizes.hpp"
#include "runtime/artifact.hpp"
#include "target/target.hpp"
#include "variant_flags.hpp"

namespace opfuse::cli {
namespace {

/// Mean milliseconds per launch and of the whole run, over `duration`.
void record(Context& context, const MeasureSettings& settings, LaunchProfile& profile) {
  const int64_t warm_until = now_ns() + static_cast<int64_t>(settings.warmup_seconds * 1e9);
  do context.run();
  while (now_ns() < warm_until && !interrupted());
  const int64_t until = now_ns() + static_cast<int64_t>(settings.duration_seconds * 1e9);
  for (const LaunchInfo& launch : context.launches()) profile.rows.push_back({launch, 0, {}});
  double total = 0;
  const int64_t start = now_ns();
  do {
    show_progress("recording", static_cast<size_t>(now_ns() - start), static_cast<size_t>(until - start));
    context.run();
    ++profile.runs;
    const std::vector<int64_t>& times = context.launch_nanoseconds();
    for (size_t i = 0; i < times.size(); ++i) profile.rows[i].ms += static_cast<double>(times[i]) * 1e-6;
    total += static_cast<double>(context.total_nanoseconds()) * 1e-6;
  } while (!interrupted() && (now_ns() < until || profile.runs < static_cast<size_t>(settings.iterations)));
  finish_progress();
  profile.recorded_ms = total / static_cast<double>(profile.runs);
  for (ProfiledLaunch& row : profile.rows) {
    row.ms /= static_cast<double>(profile.runs);
    profile.sum_ms += row.ms;
  }
}

/// Rates of products of other types than f32 that some launch has.
void measure_products(const std::vector<std::string>& features, LaunchProfile& profile) {
  std::set<std::string> types;
  for (const ProfiledLaunch& row : profile.rows) types.insert(row.launch.products);
  for (const std::string& type : types)
    if (const ProductRate rate = measure_product_rate(type, features, profile.limits.threads); rate.gops > 0)
      profile.limits.products.push_back(rate);
}

}  // namespace

LaunchProfile measure_profile(const Executable& executable, const ModelInputs& inputs, int threads,
                              const MeasureSettings& given) {
  LaunchProfile profile;
  profile.dims = sizes_of_run(executable, inputs, threads);
  profile.target = executable.artifact().target;
  MeasureSettings settings = given;
  ContextOptions options;
  options.threads = threads;
  Session plain(executable, inputs, options);
  note_variant(executable, plain.context());
  profile.variant = plain.context().variant();
  const bool device = executable.artifact().on_device();
  {
    const NothingToKeep scope;
    profile.limits =
        device ? measure_device_limits(profile.target)
               : measure_limits(plain.context().threads(), vector_bytes_of(executable.artifact().cpu_features));
  }
  options.profile = true;
  Session recorded(executable, inputs, options);
  record(recorded.context(), settings, profile);
  settings.duration_seconds /= 2;
  if (!device)
    profile.limits.fma_gflops =
        std::max(profile.limits.fma_gflops, measure_fma_gflops(profile.limits.threads, profile.limits.vector_bytes));
  if (!device) measure_products(executable.artifact().cpu_features, profile);
  for (ProfiledLaunch& row : profile.rows)
    row.point = roofline(row.launch.flops, row.bytes(), row.ms * 1e-3, profile.limits, row.launch.products);
  profile.plain_ms = summarize(measure({&plain.context()}, settings).front()).mean;
  return profile;
}

report::RunTrace trace_run(const Executable& executable, const ModelInputs& inputs, int threads, int runs) {
  const bool device = executable.artifact().on_device();
  const std::unique_ptr<Executor> pool = make_thread_pool(threads > 0 ? threads : default_threads());
  PartTrace trace(*pool);
  ContextOptions options;
  options.profile = true;
  if (!device) options.executor = &trace;
  Session session(executable, inputs, options);
  Context& context = session.context();
  for (int i = 0; i < 3; ++i) context.run();
  std::vector<report::RunTrace> traces;
  for (int i = 0; i < runs && !(interrupted() && i > 0); ++i) {
    trace.start();
    context.run();
    traces.push_back(
        {context.total_nanoseconds(), device ? 0 : pool->workers(), trace.parts(), context.launch_nanoseconds()});
  }
  const auto middle = traces.begin() + static_cast<std::ptrdiff_t>(traces.size() / 2);
  std::nth_element(traces.begin(), middle, traces.end(),
                   [](const auto& a, const auto& b) { return a.total_ns < b.total_ns; });
  return std::move(*middle);
}

}  // namespace opfuse::cli
