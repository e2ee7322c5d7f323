// An open batch image by image: the first launches run once per image, and no bit of a result changes.
#include "program/image_loop.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "driver/compilation.hpp"
#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "fusion/plan.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "program/body.hpp"
#include "program/lifetimes.hpp"
#include "proof/compare.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMap = 16 * 12 * 12 * 4;  ///< bytes of an image's largest map
constexpr ImageCaches kRoom = {3 * kMap, 1 << 20};
constexpr int64_t kFrom = 4;  ///< the first batch whose largest map exceeds a core's own

/// Five launches; the first three touch maps of 16 x 12 x 12. %r is read again by the fourth.
std::string net(const std::string& last = "%y = relu(%d)\n return %y") {
  return R"(graph (%x: f32[n,8,12,12]) {
    %w1 = const rand<1> : f32[16,8,1,1]
    %w2 = const rand<2> : f32[16,1,3,3]
    %w3 = const rand<3> : f32[8,16,4,4]
    %w4 = const rand<4> : f32[8,8,3,3]
    %a = conv(%x, %w1)
    %r = relu(%a)
    %b = conv(%r, %w2) {group = 16, pads = [1,1,1,1]}
    %s = sigmoid(%b)
    %m = mul(%b, %s)
    %c = conv(%m, %w3) {strides = [4,4]}
    %d = conv(%c, %w4) {pads = [1,1,1,1]}
    )" + last +
         "\n }";
}

struct Lowered {
  Graph graph;
  Program program;
};

/// The same program without and with the loop.
Lowered lowered(const std::string& text, const ImageCaches* room = nullptr) {
  const TargetInfo target = host_target();
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  graph = apply(graph, plan_graph(graph, target, {}));
  LowerOptions options;
  options.image_loop = false;
  Program program = lower_to_program(graph, target, options);
  if (room) loop_over_images(program, *room);
  return {std::move(graph), std::move(program)};
}

/// Launches of bodies.
int looped_launches(const Program& program) {
  int launches = 0;
  for (const Body& body : program.bodies) launches += body.launches;
  return launches;
}

Executable executable_of(const Program& program) {
  ArtifactOptions options;
  options.cache = false;
  return Executable::from_artifact(build_artifact(program, host_target(), options));
}

/// Runs parts on the caller's thread and counts launches.
struct Counting : Executor {
  int64_t launches = 0;
  int workers() const override { return 1; }
  void run(int64_t parts, PartFunction fn, void* context) override {
    ++launches;
    for (int64_t part = 0; part < parts; ++part) fn(context, part, 0);
  }
};

std::vector<Tensor> run_counted(const Executable& executable, const std::vector<Tensor>& inputs, int64_t& launches) {
  Counting counting;
  ContextOptions options;
  options.executor = &counting;
  size_t told = 0, all = 0;  // every launch that runs is told of, and how many there are
  options.progress = [&](size_t done, size_t of) {
    EXPECT_EQ(done, told++);
    all = of;
    return true;
  };
  std::vector<Tensor> results = run_executable(executable, inputs, std::move(options));
  launches = counting.launches;
  EXPECT_EQ(static_cast<int64_t>(told), launches);
  EXPECT_EQ(all, told);
  return results;
}

void expect_same_bits(const Tensor& a, const Tensor& b, int64_t batch) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << "batch " << batch;
}

/// At all batches: the bits of the program without the loop, and so many launches.
void expect_unchanged(const std::string& text, int looped) {
  const Lowered plain = lowered(text), loop = lowered(text, &kRoom);
  ASSERT_EQ(looped_launches(loop.program), looped) << print(loop.program);
  ASSERT_EQ(loop.program.bodies[0].from, kFrom);
  const Executable a = executable_of(plain.program), b = executable_of(loop.program);
  const auto all = static_cast<int64_t>(plain.program.launches.size());
  for (const int64_t batch : {1, 2, 3, 4, 5, 9}) {
    const std::vector<Tensor> inputs = random_inputs(plain.graph, {.seed = 5, .symbols = {{"n", batch}}});
    int64_t together = 0, by_image = 0;
    const std::vector<Tensor> want = run_counted(a, inputs, together), got = run_counted(b, inputs, by_image);
    EXPECT_EQ(together, all);
    EXPECT_EQ(by_image, batch < kFrom ? all : looped * batch + all - looped) << batch;
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) expect_same_bits(want[i], got[i], batch);
  }
  for (const OutputComparison& o :
       compare_outputs(loop.graph, b, random_inputs(loop.graph, {.seed = 6, .symbols = {{"n", 6}}}),
                       random_inputs(loop.graph, {.seed = 7, .symbols = {{"n", 6}}}), {}))
    EXPECT_TRUE(o.ok) << o.name << " " << o.difference.relative();
}

TEST(ImageLoop, LaunchesOnMapsBeyondTheRoomRunOncePerImage) { expect_unchanged(net(), 3); }

TEST(ImageLoop, WhatLaterLaunchesReadIsKeptForAllImages) {
  expect_unchanged(net("%p = average_pool(%r) {kernel_shape = [4,4], strides = [4,4]}\n %q = conv(%p, %w5)\n"
                       " %y = add(%d, %q)\n return %y")
                       .insert(net().find("%a ="), "%w5 = const rand<5> : f32[8,16,1,1]\n    "),
                   4);
}

TEST(ImageLoop, ResultsOfTheModelMayComeFromTheLoop) { expect_unchanged(net("return %r, %d"), 3); }

TEST(ImageLoop, MapsOfTheLoopAloneStayInOnePlaceAndOthersDoNot) {
  const Program program = lowered(net(), &kRoom).program;
  const int looped = looped_launches(program);
  std::vector<int64_t> steps(program.buffers.size(), 0);
  for (size_t l = 0; l < static_cast<size_t>(looped); ++l)
    for (size_t i = 0; i < program.launches[l].steps.size(); ++i)
      if (const int b = program.launches[l].buffers[i]; program.launches[l].steps[i].moves)
        steps[static_cast<size_t>(b)] = moved_bytes(program, program.bodies[0], b).value();
  const std::vector<Lifetime> lives = lifetimes(program);
  int inside = 0, outside = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    const Lifetime life = lives[i];
    if (b.kind == BufferKind::constant || b.kind == BufferKind::input) {
      EXPECT_EQ(steps[i], b.kind == BufferKind::input ? 8 * 12 * 12 * 4 : 0) << b.name;
      continue;
    }
    if (b.kind == BufferKind::output || b.view_of >= 0 || life.first >= looped) continue;
    const bool within = life.last < looped;
    ++(within ? inside : outside);
    EXPECT_EQ(steps[i] == 0, within) << b.name;
    EXPECT_EQ(life.first, within ? life.first : 0) << b.name;
  }
  EXPECT_EQ(inside, 2);
  EXPECT_EQ(outside, 1);
}

TEST(ImageLoop, IsSaidAndEndsWithTheLastLargeMap) {
  EXPECT_THAT(lowered(net(), &kRoom).program.notes,
              ::testing::Contains(::testing::HasSubstr("3 launches run image by image from n = 4 on")));
}

void expect_none(const std::string& text, const ImageCaches& room) {
  const Program program = lowered(text, &room).program;
  EXPECT_TRUE(program.bodies.empty()) << print(program);
  for (const std::string& note : program.notes)
    EXPECT_THAT(note, ::testing::Not(::testing::HasSubstr("image by image")));
}

TEST(ImageLoop, LeavesSmallMapsAndConstantBatchesAlone) {
  expect_none(net(), {8 * kMap, 1 << 20});
  std::string constant = net();
  constant.replace(constant.find("[n,"), 3, "[9,");
  expect_none(constant, kRoom);
}

TEST(ImageLoop, EndsWhereTheNumberOfAnImageOrOfAllIsAValue) {
  const auto looped_with = [](const Expr& factor) {
    Program program = lowered(net()).program;
    Expr& value = program.launches[0].region.stages[0].outputs[0].value;
    value = Expr::make(ExprOp::mul, {value, Expr::make_cast(factor, DType::f32)});
    loop_over_images(program, kRoom);
    return looped_launches(program);
  };
  EXPECT_EQ(looped_with(Expr::coord(1)), 3);
  EXPECT_EQ(looped_with(Expr::coord(0)), 0);
  EXPECT_EQ(looped_with(Expr::extent(16)), 3);
  EXPECT_EQ(looped_with(Expr::extent(Dim::symbol("n"))), 0);
}

TEST(ImageLoop, EndsWhereImagesMeet) {
  // a mean over the batch, a sum along it, and a transpose that moves it
  for (const char* meet :
       {"%e = reduce_mean(%x) {axes = [0], keepdims = 1}\n    %z = sub(%x, %e)", "%z = softmax(%x) {axis = 0}",
        "%t = transpose(%x) {perm = [1,0,2,3]}\n    %u = softmax(%t) {axis = 1}\n"
        "    %z = transpose(%u) {perm = [1,0,2,3]}"}) {
    std::string text = net();
    text.insert(text.find("%a ="), std::string(meet) + "\n    ");
    text.replace(text.find("conv(%x, %w1)"), 13, "conv(%z, %w1)");
    expect_none(text, kRoom);
  }
}

// ---- a constant batch, which loop-over-images cuts

/// Five images, the groups of the first three maps for each.
struct ConstantBatch {
  Graph graph, fused;
  Program program;
};

ConstantBatch constant_batch(const ImageCaches& caches) {
  std::string text = net("return %r, %d");
  text.replace(text.find("[n,"), 3, "[5,");
  ConstantBatch made;
  made.graph = parse_graph(text, ops());
  prepare(made.graph, {}, nullptr);
  made.fused = apply(made.graph, plan_graph(made.graph, host_target(), {}));
  loop_over_images()(made.fused, {.caches = caches});
  made.program = lower_to_program(made.fused, host_target(), {});
  return made;
}

TEST(ImageLoop, AConstantBatchRunsTheGroupsOfAnImageForEach) {
  const ConstantBatch whole = constant_batch({8 * kMap, 1 << 20}), loop = constant_batch(kRoom);
  EXPECT_TRUE(whole.program.bodies.empty());
  ASSERT_EQ(looped_launches(loop.program), 4) << print(loop.program);  // r is stored in blocks, its result is not
  EXPECT_THAT(print(loop.program), ::testing::HasSubstr("body: launches 0 to 3, once for each image of 5\n"));
  EXPECT_THAT(loop.program.notes, ::testing::Contains(::testing::HasSubstr(
                                      "4 launches run image by image: their work and times are of all 5 images")));
  const std::vector<Tensor> inputs = random_inputs(whole.graph, {.seed = 3});
  const std::vector<Tensor> want = interpret(whole.program, inputs), exact = interpret(loop.program, inputs);
  int64_t launches = 0;
  const Executable executable = executable_of(loop.program);
  const std::vector<Tensor> got = run_counted(executable, inputs, launches);
  EXPECT_EQ(launches, 5 * 4 + 1);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(difference(exact[i], want[i]).max_abs, 0) << i;
    EXPECT_LE(difference(got[i], want[i]).relative(), 1e-5) << i;
  }
}

TEST(ImageLoop, EveryImageOfAConstantBatchIsProved) {
  ConstantBatch loop = constant_batch(kRoom);
  const std::vector<Tensor> inputs = random_inputs(loop.graph, {.seed = 3}), others = random_inputs(loop.graph, {});
  const auto compared = [&](const Program& program) {
    return compare_groups(loop.fused, program, executable_of(program), inputs, {});
  };
  const std::vector<GroupComparison> groups = compared(loop.program);
  ASSERT_EQ(groups.size(), loop.program.launches.size());
  for (const GroupComparison& group : groups) EXPECT_TRUE(group.ok) << group.name;
  for (const OutputComparison& output : compare_outputs(loop.fused, executable_of(loop.program), inputs, others, {}))
    EXPECT_TRUE(output.ok) << output.name;
  Expr& value = loop.program.launches[1].region.stages[0].outputs[0].value;
  value = Expr::make(ExprOp::mul, {value, Expr::constant(DType::f32, 1.01)});
  EXPECT_FALSE(compared(loop.program)[1].ok);
}

TEST(ImageLoop, WorkIsThatOfAllImages) {
  const auto flops = [](const Program& program) {
    double sum = 0;
    const Executable executable = executable_of(program);
    for (const ArtifactLaunch& launch : executable.artifact().launches)
      sum += static_cast<double>(launch.flops.value());
    return sum;
  };
  EXPECT_EQ(flops(constant_batch(kRoom).program), flops(constant_batch({8 * kMap, 1 << 20}).program));
}

// ---- loops of a graph that is given

/// A loop behind a group for all images, in front of another.
constexpr const char* kGiven = R"(graph (%x: f32[6,8,10,10]) {
  %w = const rand<1> : f32[16,8,3,3]
  %v = const rand<2> : f32[16,1,3,3]
  %k = const rand<3> : f32[8,16,1,1]
  %a = conv(%x, %w) {pads = [1,1,1,1]}
  %r = relu(%a)
  %y, %z = for_parts (%r, %x as %u) {parts = 3, of = "pair", cuts = [0,0], joins = [0,0]} {
    %v = const rand<2> : f32[16,1,3,3]
    %k = const rand<3> : f32[8,16,1,1]
    %d = conv(%r, %v) {group = 16, pads = [1,1,1,1]}
    %e = sigmoid(%d)
    %p = conv(%e, %k)
    %q = add(%p, %u)
    yield %q, %e
  }
  %t = conv(%y, %w) {pads = [1,1,1,1]}
  %s = add(%t, %z)
  return %s, %y
})";

void expect_proved(const Graph& graph, const Compilation& compiled) {
  const Executable executable = Executable::from_artifact(compiled.artifact);
  const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 4}), others = random_inputs(graph, {.seed = 5});
  const Comparison proof = compare_model(graph, compiled.fused, compiled.program, executable, inputs, others, {});
  for (const GroupComparison& group : proof.groups) EXPECT_TRUE(group.ok) << group.name << " " << group.problem;
  for (const OutputComparison& output : proof.outputs) EXPECT_TRUE(output.ok) << output.name;
}

TEST(ForParts, ALoopInTheMiddleOfAModelRunsAndIsProved) {
  const Graph graph = parse_graph(kGiven, ops());
  CompilationOptions options;
  options.artifact.cache = false;
  const Compilation compiled = compile_graph(graph, host_target(), options);
  ASSERT_EQ(compiled.program.bodies.size(), 1u);
  EXPECT_GT(compiled.program.bodies[0].first, 0);
  EXPECT_EQ(compiled.program.bodies[0].times, Dim(3));
  expect_proved(graph, compiled);
}

TEST(ForParts, LoopsWithTheSameNamesInsideAreToldApart) {
  const Graph graph = parse_graph(R"(graph (%x: f32[4,6,10]) {
    %y = for_parts (%x) {parts = 2, cuts = [0], joins = [0]} {
      %s = softmax(%x) {axis = 1}
      %r = sigmoid(%s)
      yield %r
    }
    %z = for_parts (%y as %x) {parts = 4, cuts = [0], joins = [0]} {
      %s = softmax(%x) {axis = 2}
      %r = tanh(%s)
      yield %r
    }
    return %z })",
                                  ops());
  CompilationOptions options;
  options.artifact.cache = false;
  const Compilation compiled = compile_graph(graph, host_target(), options);
  ASSERT_EQ(compiled.program.bodies.size(), 2u);
  expect_proved(graph, compiled);
}

TEST(ForParts, AResultWithoutANameIsProved) {
  const Graph graph = parse_graph(R"(graph (%x: f32[4,6,10]) {
    %0 = for_parts (%x) {parts = 4, of = "image", cuts = [0], joins = [0]} {
      %s = softmax(%x) {axis = 2}
      yield %s
    }
    %y = softmax(%0) {axis = 1}
    return %y })",
                                  ops());
  CompilationOptions options;
  options.artifact.cache = false;
  const Compilation compiled = compile_graph(graph, host_target(), options);
  ASSERT_EQ(compiled.program.bodies.size(), 1u);
  expect_proved(graph, compiled);
}

TEST(ForParts, MoreCopiesThanTheLimitAreRefused) {
  const auto refused = [](int64_t parts, int64_t limit) {
    const Graph graph =
        parse_graph(fmt::format("graph (%x: f32[2,2]) {{ %y = for_parts (%x) {{parts = {}, cuts = [-1], joins = [1]}} "
                                "{{ %r = relu(%x) yield %r }} return %y }}",
                                parts),
                    ops());
    CompilationOptions options;
    options.limits.unrolled_nodes = limit;
    try {
      Compilation compilation(graph, host_target(), options);
    } catch (const Error& error) {
      return error.diagnostic().name + " " + error.diagnostic().hint;
    }
    return std::string();
  };
  EXPECT_EQ(refused(8, 8), "");
  EXPECT_THAT(refused(9, 8), ::testing::HasSubstr("unsupported_op raise it with --limit unrolled_nodes=N"));
  EXPECT_NE(refused(int64_t{1} << 60, 8192), "");
}

TEST(ForParts, ADumpOfAShapedGraphIsCompiled) {
  const ConstantBatch loop = constant_batch(kRoom);
  const ParseOptions with{.data = constant_data(loop.fused), .folder = ""};
  const Graph dumped = parse_graph(print(loop.fused), ops(), with);
  CompilationOptions options;
  options.artifact.cache = false;
  const Compilation compiled = compile_graph(dumped, host_target(), options);
  EXPECT_EQ(looped_launches(compiled.program), looped_launches(loop.program));
  expect_proved(loop.graph, compiled);
}

}  // namespace
}  // namespace opfuse
