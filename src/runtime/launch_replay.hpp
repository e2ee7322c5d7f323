// Launches by themselves: an executor between a context and its pool that runs each launch again, right behind itself.
//
//     LaunchReplay replay(*pool, executable.artifact().program_for(sizes), sizes);
//     options.executor = &replay;        context.run();       replay.nanoseconds() are those of the second times
//
// The second time all that a launch reads and writes lies where the first one left it. So launches of two programs meet
// the same memory, whatever ran before them and wherever the arena has their results.
#pragma once

#include <vector>

#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// Only for contexts of CPUs, and one at a time. The context's own times are of both runs of a launch.
class LaunchReplay final : public Executor {
 public:
  LaunchReplay(Executor& pool, const ArtifactProgram& program, const SymbolValues& sizes);
  int workers() const override { return pool_.workers(); }
  void run(int64_t parts, PartFunction fn, void* context) override;

  void start();  ///< forgets what was measured
  /// By launch; -1: it is not run again (it belongs to a loop, or is none of the executor's).
  const std::vector<int64_t>& nanoseconds() const { return nanoseconds_; }

 private:
  /// A result that lies where an operand does: it is put back before the launch runs again.
  struct Overlap {
    size_t buffer = 0;  ///< number among the launch's
    size_t bytes = 0;
  };
  Executor& pool_;
  std::vector<std::vector<Overlap>> overlaps_;
  std::vector<char> in_loop_;
  std::vector<int64_t> nanoseconds_;
  std::vector<char> saved_;
};

}  // namespace opfuse
