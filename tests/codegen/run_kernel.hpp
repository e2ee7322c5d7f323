// Compiles a region for a target, runs it between sentinels and compares with the region interpreter.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpu/generator.hpp"

namespace opfuse {
inline void PrintTo(const TargetInfo& t, std::ostream* out) { *out << t.name; }
}  // namespace opfuse

namespace opfuse::test {

/// Machine code mapped executable; calls one kernel.
class LoadedCode {
 public:
  explicit LoadedCode(const LinkedCode& code);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  using Function = void (*)(void* const*, const int64_t*, char*, int64_t, int64_t);
  Function at(size_t offset) const { return reinterpret_cast<Function>(static_cast<char*>(memory_) + offset); }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

struct Case {
  std::string name;
  std::string region;                     ///< text
  std::vector<std::string> layouts = {};  ///< by parameter; "" or absent: wished, or dense
  bool wished = false;                    ///< take wish_layouts for every unnamed parameter
  std::vector<SymbolValues> bindings = {{}};
  double tolerance = 2e-5;
  double low = -1, high = 1;                ///< range of random operands
  std::vector<Tensor> operands = {};        ///< by parameter, empty tensors are drawn
  Precision precision = Precision::exact;   ///< of the interpreter
  std::pair<int, int> in_place = {-1, -1};  ///< a result and the operand where it lies
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// A case in the layouts that the region's skeleton wishes for.
inline Case wished(std::string name, std::string region, std::vector<SymbolValues> bindings = {{}}) {
  Case c;
  c.name = std::move(name);
  c.region = std::move(region);
  c.wished = true;
  c.bindings = std::move(bindings);
  return c;
}

KernelSpec spec_of(const Case& c, const TargetInfo& target);
/// Compiles once, runs under every binding; reports through GoogleTest.
void check_case(const Case& c, const TargetInfo& target);
/// The same for a specification of the caller's making.
void check_spec(const Case& c, const KernelSpec& spec, const TargetInfo& target);
/// Targets this machine runs.
std::vector<TargetInfo> runnable_targets();
/// One test of check_case per case and runnable target.
#define OPFUSE_CASES(Suite, cases)                                                                         \
  class Suite : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};                            \
  TEST_P(Suite, matches_the_interpreter) { check_case(std::get<0>(GetParam()), std::get<1>(GetParam())); } \
  INSTANTIATE_TEST_SUITE_P(                                                                                \
      Kernels, Suite, testing::Combine(testing::ValuesIn(cases), testing::ValuesIn(runnable_targets())),   \
      [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); })
std::string case_name(const Case& c, const TargetInfo& target);

}  // namespace opfuse::test
