// Times that are kept and merged, and groups that are taken apart because they say so.
#include "driver/measure_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file_bytes.hpp"
#include "driver/compilation.hpp"
#include "link/generators.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"
#include "testing/temporary_folder.hpp"
#include "tune/timing_cache.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const TimingKey kKey{"r1", "dense", "this machine"};

TEST(TimingCache, IsTextThatIsReadAgain) {
  TimingCache cache;
  cache.add(kKey, {"fused", 12.5, 0.01, 15, "build a"});
  cache.add(kKey, {"split", 20, 0.02, 15, "build a"});
  cache.add({"r2", "dense", "another \"machine\""}, {"fused", 1, 0, 3, "build a"});
  EXPECT_EQ(TimingCache::from_json(cache.json()), cache);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(TimingCache::from_json(cache.json()).json(), cache.json());
}

TEST(TimingCache, MergesInAnyOrder) {
  TimingCache a, b;
  a.add(kKey, {"fused", 12, 0.01, 15, "build a"});
  b.add(kKey, {"fused", 10, 0.01, 30, "build a"});
  b.add(kKey, {"split", 20, 0.02, 15, "build a"});
  TimingCache ab = a, ba = b;
  ab.merge(b), ba.merge(a);
  EXPECT_EQ(ab, ba);
  EXPECT_EQ(ab.find(kKey, "fused", "build a")->count, 30) << "more runs say more";
}

TEST(TimingCache, TimesOfAnotherBuildAreHintsNeverVerdicts) {
  TimingCache cache;
  cache.add(kKey, {"fused", 12, 0.01, 15, "build a"});
  EXPECT_EQ(cache.find(kKey, "fused", "build b"), nullptr);
  ASSERT_NE(cache.hint(kKey, "fused"), nullptr);
  EXPECT_EQ(cache.hint(kKey, "fused")->median, 12);
  EXPECT_EQ(cache.hint({"r9", "", ""}, "fused"), nullptr);
}

TEST(TimingCache, FilesGrowAndWhatIsNoneIsRefused) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path("sub/timings.json");
  EXPECT_EQ(TimingCache::read(file).size(), 0u);
  TimingCache one, two;
  one.add(kKey, {"fused", 12, 0.01, 15, "build a"});
  two.add(kKey, {"split", 20, 0.01, 15, "build a"});
  one.write(file), two.write(file);
  EXPECT_EQ(TimingCache::read(file).size(), 2u);
  for (const char* text : {"", "{}", "{\"schema\": \"opfuse.timings/9\", \"timings\": []}",
                           "{\"schema\": \"opfuse.timings/1\", \"timings\": [{\"region\": 1}]}",
                           "{\"schema\": \"opfuse.timings/1\", \"timings\": [{\"region\": \"\", \"layouts\": \"\", "
                           "\"machine\": \"\", \"form\": \"\", \"median_us\": -1, \"spread\": 0, \"count\": 1, "
                           "\"generator\": \"\"}]}"})
    EXPECT_THROW(TimingCache::from_json(text), Error) << text;
}

const std::string kTwo = "graph (%x: f32[64,256]) {\n %a = relu(%x) @\"a\"\n %b = sigmoid(%a) @\"b\"\n return %b }";

Compilation measured(const std::string& file) {
  CompilationOptions options;
  options.algorithms.measure = true;
  options.algorithms.threads = 1;
  options.timings = {file};
  Compilation c(parse_graph(kTwo, ops()), host_target(), options);
  c.run_to(Milestone::lowered);
  return c;
}

/// The same file with other medians.
void set_median(const std::string& file, const std::string& form, const char* median) {
  std::string text = file_bytes(file).value_or("");
  const size_t row = text.find("\"form\":\"" + form + "\"");
  ASSERT_NE(row, std::string::npos) << text;
  const size_t begin = text.find("\"median_us\":", row) + 12, end = text.find(',', begin);
  text.replace(begin, end - begin, median);
  std::ofstream(file) << text;
}

TEST(MeasuredGroups, AreKnownTheNextTimeAndSlowOnesAreTakenApart) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path("timings.json");
  EXPECT_THAT(measured(file).notes(),
              Contains(HasSubstr("1 groups of the rules against their kernels apart: 1 measured")));
  EXPECT_EQ(TimingCache::read(file).size(), 2u);
  set_median(file, "split", "900.0"), set_median(file, "fused", "100.0");
  const Compilation fast = measured(file);
  EXPECT_THAT(fast.notes(), Contains(HasSubstr("0 measured, 1 known")));
  EXPECT_EQ(fast.program.launches.size(), 1u);
  set_median(file, "split", "10.0");
  const Compilation slow = measured(file);
  EXPECT_EQ(slow.program.launches.size(), 2u);
  ASSERT_EQ(slow.plan.edges.size(), 1u);
  EXPECT_EQ(slow.plan.edges[0].executed, kTwoLaunches);
  EXPECT_EQ(slow.plan.edges[0].decline.code, "measured_slower");
  EXPECT_THAT(slow.plan.edges[0].decline.message, HasSubstr("100.0 us as one launch, 10.0 us apart"));
}

TEST(MeasuredGroups, NeedSizes) {
  CompilationOptions options;
  options.algorithms.measure = true;
  const std::string open = "graph (%x: f32[n,256]) {\n %a = relu(%x) @\"a\"\n %b = sigmoid(%a) @\"b\"\n return %b }";
  Compilation c(parse_graph(open, ops()), host_target(), options);
  EXPECT_THROW(c.run_to(Milestone::planned), Error);
}

}  // namespace
}  // namespace opfuse
