// What an error prints: place, operands, hint, the frames it passed, names that are close.
#include <gtest/gtest.h>

#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/quote.hpp"

namespace opfuse {
namespace {

TEST(Diagnostic, PrintsPlaceOperandsAndHint) {
  Error e = fail(E::channel_mismatch, "input has {} channels but the weights expect {}", 3, 4)
                .node("/conv1/Conv")
                .op("Conv, opset 17")
                .operand("x : f32[1,3,8,8]")
                .file("a.onnx")
                .during("infer-shapes")
                .hint("group is 1");
  EXPECT_STREQ(e.what(),
               "error[E0203] channel_mismatch: input has 3 channels but the weights expect 4\n"
               "  --> a.onnx, node \"/conv1/Conv\" (Conv, opset 17)\n"
               "      x : f32[1,3,8,8]\n"
               "  while: infer-shapes\n"
               "  hint:  group is 1");
}

TEST(Diagnostic, KeepsWhatInnerFramesSaid) {
  EXPECT_EQ(fail(E::bad_text, "x").node("inner").node("outer").diagnostic().node, "inner");
}

TEST(Diagnostic, InternalErrorsNameTheirPlace) {
  try {
    OPFUSE_CHECK(1 + 1 == 3, "sum of {}", 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "internal");
    EXPECT_NE(e.diagnostic().message.find("diagnostics_test.cpp"), std::string::npos) << e.what();
    EXPECT_NE(e.diagnostic().message.find("1 + 1 == 3"), std::string::npos);
  }
}

TEST(ErrorCodes, AreUniqueAndDocumented) {
  std::set<std::string> codes, names;
  for (const ErrorCodeInfo& info : error_codes()) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GT(std::string(info.doc).size(), 10u) << info.name;
    EXPECT_EQ(make_error(info.id, "m").diagnostic().code, info.code);
  }
}

TEST(DidYouMean, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> known = {"relu", "leaky_relu", "conv"};
  EXPECT_EQ(did_you_mean("rleu", known), "did you mean \"relu\"?");
  EXPECT_EQ(did_you_mean("xxxxxxxx", known), "known: relu, leaky_relu, conv");
  EXPECT_EQ(closest_name("zzz", known), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Quote, GivesBackEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string quoted = quote(all);
  size_t at = 0;
  EXPECT_EQ(unquote(quoted, at), all);
  EXPECT_EQ(at, quoted.size());
  for (const char* bad : {"\"abc", "\"a\\q\"", "\"\\x1", "\"\\"}) {
    at = 0;
    EXPECT_EQ(unquote(bad, at), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace opfuse
