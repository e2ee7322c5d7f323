// A turn is a run that is not counted, because the contestant before it left its own data in the caches, and then runs
// for kTurnMs. Alone, a context needs no turns.
#include "profile/turns.hpp"

#include <algorithm>

#include "base/now_ns.hpp"

namespace opfuse {
namespace {

constexpr double kTurnMs = 40;

double run_once(Context& context) {
  const int64_t start = now_ns();
  context.run();
  return static_cast<double>(now_ns() - start) * 1e-6;
}

/// Returns the milliseconds of its counted runs.
double take_turn(Context& context, bool alone, std::vector<double>& sample, const std::function<bool()>& stopped,
                 const std::function<void()>& after_run) {
  if (!alone) context.run();
  double spent = 0;
  do {
    sample.push_back(run_once(context));
    spent += sample.back();
    after_run();
  } while (!alone && spent < kTurnMs && !stopped());
  return spent;
}

}  // namespace

std::vector<std::vector<double>> measure_in_turns(const std::vector<Context*>& contexts, const TurnSettings& settings,
                                                  const std::function<bool()>& stop,
                                                  const std::function<void(size_t)>& after_run) {
  const auto stopped = [&] { return stop && stop(); };
  for (Context* context : contexts) {
    const int64_t until = now_ns() + static_cast<int64_t>(settings.warmup_seconds * 1e9);
    do context->run();
    while (now_ns() < until && !stopped());
  }
  std::vector<std::vector<double>> samples(contexts.size());
  const double enough = settings.duration_seconds * 1e3;
  const size_t least = static_cast<size_t>(std::max(1, settings.iterations));
  double spent = 0;
  while (!stopped()) {
    bool more = spent < enough;
    for (size_t i = 0; i < contexts.size() && !more; ++i) more = samples[i].size() < least;
    if (!more) break;
    double shortest = -1;
    for (size_t i = 0; i < contexts.size(); ++i) {
      const double turn = take_turn(*contexts[i], contexts.size() == 1, samples[i], stopped, [&] {
        if (after_run) after_run(i);
      });
      shortest = shortest < 0 ? turn : std::min(shortest, turn);
    }
    spent += shortest;
  }
  return samples;
}

}  // namespace opfuse
