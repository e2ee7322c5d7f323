// Memory of tensors: aligned, zeroed, bounded for the sanitizer, and an error that says what it was for.
#include "base/aligned_bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "base/sanitizers.hpp"

namespace opfuse {
namespace {

TEST(AlignedBytes, StartAtAPageAndHoldZeros) {
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{100'000}, (size_t{2} << 20) + 1}) {
    AlignedBytes bytes(size, "a test");
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 4096, 0u) << size;
    const auto view = bytes.span();
    EXPECT_TRUE(std::all_of(view.begin(), view.end(), [](uint8_t b) { return b == 0; })) << size;
    bytes.data()[size - 1] = 7;
    EXPECT_EQ(bytes.span().back(), 7);
  }
}

TEST(AlignedBytes, MoveWithTheirOwner) {
  AlignedBytes a(10, "a test");
  a.data()[3] = 1;
  const uint8_t* place = a.data();
  AlignedBytes b = std::move(a);
  EXPECT_EQ(b.data(), place);
  AlignedBytes c;
  EXPECT_TRUE(c.span().empty());
  c = std::move(b);
  EXPECT_EQ(c.data(), place);
  EXPECT_EQ(c.span()[3], 1);
}

TEST(AlignedBytes, ThatCannotBeHadSayWhatTheyWereFor) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX / 2}) try {
      AlignedBytes bytes(size, "a test");
      ADD_FAILURE() << size;
    } catch (const Error& e) {
      EXPECT_EQ(e.diagnostic().name, "out_of_memory");
      EXPECT_NE(std::string(e.what()).find("bytes for a test could not be had"), std::string::npos) << e.what();
    }
}

#if defined(OPFUSE_ASAN)
TEST(AlignedBytesDeathTest, TheSanitizerKnowsWhereTheyEnd) {
  AlignedBytes bytes(100, "a test");
  const volatile uint8_t* data = bytes.data();
  EXPECT_EQ(data[99], 0);
  EXPECT_DEATH(static_cast<void>(data[100]), "use-after-poison");
}
#endif

}  // namespace
}  // namespace opfuse
