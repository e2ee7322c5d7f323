// Loops over parts as bodies of programs: what becomes a body and what copies, values, lifetimes, what verify refuses.
#include <gmock/gmock.h>

#include "opfuse/error.hpp"
#include "ops/registry.hpp"
#include "program/body.hpp"
#include "program/build.hpp"
#include "program/lifetimes.hpp"
#include "region/lower_support.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Its program, which has the values of the graph.
Program program_of(const std::string& text, const BuildOptions& options = {}) {
  const Graph graph = parse_graph(text, ops());
  const Program program = build_program(graph, parse_target("cpu:avx512"), options);
  const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3});
  InterpretOptions exact;
  exact.keep_exact = true;
  const std::vector<Tensor> want = interpret(graph, inputs, exact), got = interpret(program, inputs);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i)
    EXPECT_LE(difference(got[i], want[i]).relative(), 1e-12) << i << "\n" << print(program);
  return program;
}

/// `before` makes %x2, the loop reads it and makes %y, `after` follows.
std::string net(const std::string& before, const std::string& after) {
  return R"(graph (%x: f32[4,6,5]) {
    )" + before +
         R"(
    %y = for_parts (%x2 as %a) {parts = 2, of = "image", cuts = [0], joins = [0]} {
      %s = softmax(%a) {axis = 2}
      %t = relu(%s)
      %m = softmax(%t) {axis = 1}
      %n = softmax(%m) {axis = 2}
      yield %n
    }
    )" + after +
         " }";
}

TEST(Bodies, ALoopInTheMiddleOfAProgram) {
  const Program program = program_of(
      net("%p = softmax(%x) {axis = 1} %x2 = softmax(%p) {axis = 0}", "%z = softmax(%y) {axis = 0} return %z"));
  ASSERT_EQ(program.bodies.size(), 1u);
  const Body& body = program.bodies[0];
  EXPECT_EQ(body.kind, BodyKind::parts);
  EXPECT_EQ(body.first, 2);
  EXPECT_EQ(body.times, Dim(2));
  EXPECT_EQ(static_cast<size_t>(body.first + body.launches), program.launches.size() - 1);
  EXPECT_EQ(body_of(program, 2), &body);
  EXPECT_EQ(body_of(program, 1), nullptr);
  EXPECT_THAT(print(program), HasSubstr("once for each image of 2"));
  EXPECT_THAT(program.notes,
              Contains(HasSubstr("launches run image by image: their work and times are of all 2 images")));
}

TEST(Bodies, WhatIsSharedLivesThroughAllOfTheBodyAndTheRestDoesNot) {
  BuildOptions options;
  options.in_place = false;
  const Program program = program_of(
      net("%x2 = softmax(%x) {axis = 0}", "%z = softmax(%y) {axis = 0} %u = add(%z, %x2) return %u"), options);
  ASSERT_EQ(program.bodies.size(), 1u);
  const Body& body = program.bodies[0];
  const int end = body.first + body.launches - 1;
  const std::vector<Lifetime> lives = lifetimes(program);
  int inside = 0;
  for (int l = body.first; l <= end; ++l)
    for (size_t i = 0; i < program.launches[static_cast<size_t>(l)].steps.size(); ++i) {
      const Launch& launch = program.launches[static_cast<size_t>(l)];
      const int buffer = launch.buffers[i];
      const Lifetime life = lives[static_cast<size_t>(root_of(program, buffer))];
      if (launch.steps[i].moves) {
        EXPECT_LE(life.first, body.first);
        EXPECT_GE(life.last, end);
        EXPECT_EQ(moved_bytes(program, body, buffer), Dim(2 * 6 * 5 * 4));
      } else {
        ++inside;
        EXPECT_TRUE(life.first > body.first || life.last < end);
      }
    }
  EXPECT_GT(inside, 0);
}

TEST(Bodies, TwoLoopsOneBehindTheOther) {
  const Program program = program_of(net("%x2 = relu(%x)", R"(
    %z = for_parts (%y, %x) {parts = 4, cuts = [0,0], joins = [0]} {
      %d = add(%y, %x)
      %e = softmax(%d) {axis = 1}
      yield %e
    }
    return %z, %y)"));
  ASSERT_EQ(program.bodies.size(), 2u);
  EXPECT_EQ(program.bodies[1].of, "part");
  EXPECT_EQ(program.bodies[1].times, Dim(4));
}

TEST(Bodies, WhatIsCapturedAsAWholeStays) {
  // %p is a box of four rows of six, as large as a part would be
  const Program program = program_of(R"(graph (%x: f32[8,5], %q: f32[8,5]) {
    %b = softmax(%q) {axis = 0}
    %p = slice(%b) {starts = [2], ends = [6], axes = [0]}
    %x2 = softmax(%x) {axis = 0}
    %y = for_parts (%x2, %p) {parts = 2, cuts = [0,-1], joins = [0]} {
      %d = add(%x2, %p)
      %e = softmax(%d) {axis = 1}
      yield %e
    }
    return %y })");
  ASSERT_EQ(program.bodies.size(), 1u);
}

TEST(Bodies, AnInputAndAnOutputOfTheModel) {
  const Program program = program_of(R"(graph (%x: f32[3,8]) {
    %y = for_parts (%x) {parts = 3, of = "image", cuts = [0], joins = [0]} { %s = softmax(%x) {axis = 1} yield %s }
    return %y })");
  ASSERT_EQ(program.bodies.size(), 1u);
  EXPECT_EQ(program.bodies[0].launches, 1);
  EXPECT_EQ(program.intermediate_bytes, Dim(0));
}

TEST(Bodies, ViewsOfPartsAndAResultThatNobodyReads) {
  program_of(R"(graph (%x: f32[4,6,5]) {
    %y, %u = for_parts (%x) {parts = 2, cuts = [0], joins = [0,0]} {
      %s = softmax(%x) {axis = 2}
      %k = const dense<2,30> : i64[2]
      %f = reshape(%s, %k)
      %g = softmax(%x) {axis = 1}
      yield %f, %g
    }
    return %y })");
  program_of(R"(graph (%x: f32[4,6,5]) {
    %y = for_parts (%x) {parts = 4, cuts = [0], joins = [0]} {
      %s = softmax(%x) {axis = 2}
      %g = softmax(%x) {axis = 1}
      %c = concat(%s, %g) {axis = 1}
      yield %c
    }
    return %y })");
}

TEST(Bodies, RowsWithinAPart) {
  const Program program = program_of(R"(graph (%x: f32[6,5,4]) {
    %x2 = softmax(%x) {axis = 0}
    %y = for_parts (%x2) {parts = 2, cuts = [0], joins = [0]} {
      %a = slice(%x2) {starts = [1], ends = [2], axes = [0]}
      %b = slice(%x2) {starts = [0], ends = [2], axes = [0]}
      %s = softmax(%a) {axis = 1}
      %t = softmax(%b) {axis = 2}
      %c = concat(%s, %t) {axis = 0}
      yield %c
    }
    return %y })");
  ASSERT_EQ(program.bodies.size(), 1u);
}

TEST(Bodies, SlicesOfInnerAxesBecomeCopies) {
  const Program program = program_of(R"(graph (%x: f32[4,6]) {
    %y = for_parts (%x) {parts = 3, cuts = [1], joins = [1]} { %s = softmax(%x) {axis = 0} yield %s }
    return %y })");
  EXPECT_TRUE(program.bodies.empty());
  EXPECT_EQ(program.launches.size(), 3u);
}

TEST(Bodies, TargetsWithoutLoopsAndBuildsWithoutViewsGetCopies) {
  const std::string text = net("%x2 = relu(%x)", "return %y");
  BuildOptions options;
  options.loops = false;
  EXPECT_TRUE(program_of(text, options).bodies.empty());
  options.loops = true, options.views = false;
  EXPECT_TRUE(program_of(text, options).bodies.empty());
}

TEST(Bodies, VerifyRefusesBodiesThatOverlapOrMoveTooFar) {
  const auto problem = [](const auto& change) {
    Program program = program_of(net("%x2 = softmax(%x) {axis = 0}", "return %y"));
    change(program.bodies);
    try {
      verify(program);
    } catch (const Error& error) {
      return error.diagnostic().message;
    }
    return std::string("valid");
  };
  EXPECT_EQ(problem([](auto&) {}), "valid");
  EXPECT_THAT(problem([](auto& bodies) { bodies[0].times = Dim(3); }), HasSubstr("moves over 6 rows"));
  EXPECT_THAT(problem([](auto& bodies) { bodies[0].launches = 99; }), HasSubstr("a body has launches"));
  EXPECT_THAT(problem([](auto& bodies) { bodies.push_back(bodies[0]); }), HasSubstr("a body has launches"));
}

}  // namespace
}  // namespace opfuse
