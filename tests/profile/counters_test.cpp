// Hardware counters count work of this process, or say why they do not.
#include "profile/counters.hpp"

#include <gtest/gtest.h>

namespace opfuse {
namespace {

TEST(HardwareCounters, CountOrSayWhyNot) {
  const HardwareCounters counters;
  if (!counters.missing().empty()) {
    EXPECT_NE(counters.missing().find("perf_event_open: "), std::string::npos);
    EXPECT_FALSE(counters.read());
    return;
  }
  const auto before = counters.read();
  ASSERT_TRUE(before);
  volatile double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
  const auto after = counters.read();
  ASSERT_TRUE(after);
  EXPECT_GT(after->instructions, before->instructions + 1e6);
  EXPECT_GT(after->cycles, before->cycles);
}

}  // namespace
}  // namespace opfuse
