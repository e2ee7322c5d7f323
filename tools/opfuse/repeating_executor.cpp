// Short launches are timed in batches, so that reading the clock (25 ns) is not part of them.
#include "repeating_executor.hpp"

#include <algorithm>

#include "console.hpp"
#include "interrupt.hpp"
#include "profile/statistics.hpp"

namespace opfuse::cli {
namespace {

constexpr int64_t kBatchNs = 50'000;

void nothing(void*, int64_t, int) {}

}  // namespace

RepeatingExecutor::RepeatingExecutor(int threads, size_t launch, double seconds)
    : pool_(make_thread_pool(threads)), launch_(launch), seconds_(seconds) {}

std::vector<double> RepeatingExecutor::repeat(int64_t parts, PartFunction fn, void* context, double seconds) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 4; ++i) {  // warm
    const int64_t start = now_ns();
    pool_->run(parts, fn, context);
    least = std::min(least, now_ns() - start);
  }
  const int64_t batch = std::clamp<int64_t>(kBatchNs / std::max<int64_t>(least, 1), 1, 2000);
  const int64_t until = now_ns() + static_cast<int64_t>(seconds * 1e9);
  std::vector<double> sample;
  do {
    const int64_t start = now_ns();
    for (int64_t i = 0; i < batch; ++i) pool_->run(parts, fn, context);
    sample.push_back(1e-3 * static_cast<double>(now_ns() - start) / static_cast<double>(batch));
  } while ((now_ns() < until || sample.size() < 5) && !interrupted());
  return sample;
}

void RepeatingExecutor::run(int64_t parts, PartFunction fn, void* context) {
  if (next_++ == launch_)
    sample_ = repeat(parts, fn, context, seconds_);
  else
    pool_->run(parts, fn, context);
}

double RepeatingExecutor::empty_launch(int64_t parts) {
  return summarize(repeat(parts, nothing, nullptr, 0.0005)).median;
}

}  // namespace opfuse::cli
