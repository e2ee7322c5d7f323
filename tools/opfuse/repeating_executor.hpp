// Times one launch of a program by itself: when its turn comes it is run again and again, over the operands that the
// launches before it have just written.
#pragma once

#include <memory>
#include <vector>

#include "opfuse/runtime.hpp"

namespace opfuse::cli {

class RepeatingExecutor final : public Executor {
 public:
  /// `launch`: its number in the program. Runs at least `seconds` long, unless interrupted.
  RepeatingExecutor(int threads, size_t launch, double seconds);
  int workers() const override { return pool_->workers(); }
  void run(int64_t parts, PartFunction fn, void* context) override;

  /// Before every run of the context.
  void restart() { next_ = 0; }
  /// Microseconds per launch, one number for every batch of about 50 us.
  const std::vector<double>& sample() const { return sample_; }
  /// Microseconds that a launch of so many parts takes when its kernel does nothing.
  double empty_launch(int64_t parts);

 private:
  std::unique_ptr<Executor> pool_;
  size_t launch_, next_ = 0;
  double seconds_;
  std::vector<double> sample_;

  std::vector<double> repeat(int64_t parts, PartFunction fn, void* context, double seconds);
};

}  // namespace opfuse::cli
