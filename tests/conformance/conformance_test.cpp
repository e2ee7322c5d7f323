// ONNX's backend test suite. A case whose operators are all declared must give the expected outputs, or be refused
// with an E::unsupported_* error and stand in refused.txt; the list must be exact. Every engine runs every case.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>

#include "base/mapped_file.hpp"
#include "conformance/cases.hpp"
#include "conformance/engines.hpp"
#include "conformance/run_case.hpp"
#include "onnx/mutate.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/error.hpp"

namespace opfuse::conformance {

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

namespace {

class Conformance : public testing::TestWithParam<std::tuple<Case, size_t>> {};

TEST_P(Conformance, GivesTheExpectedOutputsOrIsRefusedByName) {
  const auto& [c, engine] = GetParam();
  const bool listed = listed_refusals().contains(c.name);
  try {
    EXPECT_EQ(run_case(c, engines()[engine]).wrong, "") << c.name;
    EXPECT_FALSE(listed) << c.name << " stands in refused.txt but runs";
  } catch (const Error& error) {
    EXPECT_TRUE(is_refusal(error)) << error.diagnostic().text();
    EXPECT_TRUE(listed) << c.name << " is refused but does not stand in refused.txt:\n" << error.diagnostic().text();
  }
}

std::vector<Case> declared_cases() {
  std::vector<Case> declared;
  for (const Case& c : all_cases())
    if (undeclared_operators(c).empty() && opset_of(c) >= kOldestOpset) declared.push_back(c);
  return declared;
}

std::string test_name(const testing::TestParamInfo<std::tuple<Case, size_t>>& info) {
  std::string name = std::get<0>(info.param).name + "_" + engines()[std::get<1>(info.param)].name;
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Onnx, Conformance,
                         testing::Combine(testing::ValuesIn(declared_cases()),
                                          testing::Range<size_t>(0, engines().size())),
                         test_name);

TEST(ConformanceData, IsInstalled) {
  if (data_root().empty())
    GTEST_SKIP() << "no ONNX test data: apt install libonnx-testdata, or set OPFUSE_ONNX_TESTDATA";
  EXPECT_GT(all_cases().size(), 900u);
}

/// Only rounding noise of the largest value counts as the suite's own error, and only where ours is the exact value.
TEST(ConformanceJudgement, ExpectedValuesAreOffOnlyByNoise) {
  const auto vector = [](std::vector<double> v) { return Tensor::of(DType::f32, {2}, v); };
  const Tensor exact = Tensor::of<double>(DType::f64, {2}, {1, 0});
  const auto judged = [&](double got, double want) {
    return judge_differences(vector({1, got}), vector({1, want}), exact, 1e-3, 1e-7);
  };
  EXPECT_EQ(judged(3e-15, 1.9e-7).wrong, "");
  EXPECT_NE(judged(3e-15, 1.9e-7).off, "");
  EXPECT_NE(judged(3e-15, 1.1e-6).wrong, "");    // more than noise: another result is meant
  EXPECT_NE(judged(2.2e-7, -1.9e-7).wrong, "");  // ours is off too
  EXPECT_EQ(judged(9e-8, 0).off, "");
}

TEST(ConformanceData, CountsWhatIsNotDeclared) {
  std::map<std::string, int> cases_by_operator;
  size_t undeclared = 0, old = 0, all = 0;
  for (const Case& c : all_cases()) {
    ++all;
    if (opset_of(c) < kOldestOpset && ++old) continue;
    const auto names = undeclared_operators(c);
    undeclared += names.empty() ? 0 : 1;
    for (const std::string& name : names) ++cases_by_operator[name];
  }
  std::printf("%zu of %zu cases are older than opset %d; %zu use operators that are not declared:", old, all,
              static_cast<int>(kOldestOpset), undeclared);
  for (const auto& [name, count] : cases_by_operator) std::printf(" %s (%d)", name.c_str(), count);
  std::printf("\n");
}

TEST(ConformanceData, RefusedCasesExist) {
  if (data_root().empty()) GTEST_SKIP() << "no ONNX test data";
  std::set<std::string> names;
  for (const Case& c : declared_cases()) names.insert(c.name);
  for (const std::string& name : listed_refusals()) EXPECT_TRUE(names.contains(name)) << name;
}

/// Every operator's importer and inference meets attributes and shapes that no exporter would write.
TEST(ConformanceFuzz, DamagedCasesAreReadOrRefusedNeverWorse) {
  constexpr int kRounds = 10;
  for (const Case& c : all_cases()) {
    const auto file = MappedFile::open(c.folder + "/model.onnx");
    test::Generator random(std::hash<std::string>{}(c.name));
    for (int round = 0; round < kRounds; ++round) {
      const std::string bytes = test::mutated(std::string(file->bytes()), random);
      try {
        const Graph graph = read_onnx_bytes(bytes);
        verify(graph);
        write_onnx_bytes(graph);
      } catch (const Error& error) {
        EXPECT_NE(error.diagnostic().name, "internal") << c.name << ": " << error.diagnostic().text();
      } catch (const std::exception& error) {
        FAIL() << c.name << " round " << round << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace opfuse::conformance
