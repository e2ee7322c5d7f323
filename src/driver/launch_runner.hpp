// One launch of a program alone: operands stored through the program's own layouts, results read back the same way.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/compare.hpp"
#include "runtime/state.hpp"

namespace opfuse {

/// Where operands come from and what results must be.
struct LaunchOracle {
  /// A value of the unrolled graph by name; null: there is none.
  std::function<const Tensor*(const std::string& name)> value;
  /// What a result may be, the likeliest first: each element must be that of one of them. `inputs`: names of what the
  /// launch reads. `take` is called with each until it returns false; never: the result is `value(name)`.
  using Take = std::function<bool(const Tensor&)>;
  std::function<void(const std::string& name, const std::vector<std::string>& inputs, const Take& take)> results;
  /// What the launch stored; may be empty.
  std::function<void(const std::string& name, Tensor stored)> stored;
};

class LaunchRunner {
 public:
  LaunchRunner(const Program& program, const Executable& executable, const SymbolValues& symbols);
  /// Every launch, in the order of a run. Those that run image by image are compared for each image, under the names of
  /// unroll_images; the worst image is reported.
  std::vector<GroupComparison> run_all(const LaunchOracle& oracle, const CompareOptions& options);
  GroupComparison run(size_t index, const LaunchOracle& oracle, const CompareOptions& options);

 private:
  struct Root {
    int buffer = -1;
    int64_t offset = 0;  ///< bytes from the root's start
  };
  class IsolatedBuffer;
  std::vector<size_t> writers_with(size_t index) const;
  std::vector<void*> bind(const Launch& launch, const LaunchOracle& oracle, std::map<int, IsolatedBuffer>& roots);
  Root root_of(int buffer) const;
  const Tensor& value_of(const Buffer& buffer, const Launch& launch, const LaunchOracle& oracle) const;
  void check(const Launch& launch, const std::vector<void*>& pointers, const LaunchOracle& oracle, double tolerance,
             GroupComparison& result) const;

  const Program& program_;
  ExecutableState state_;
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;
};

}  // namespace opfuse
