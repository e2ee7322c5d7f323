// Programs of small nets: the program interpreter agrees with the graph interpreter, views replace
// launches, groups that cannot be generated are split with a note.
#include "program/build.hpp"

#include <gmock/gmock.h>

#include "opfuse/error.hpp"
#include "program/layout_facts.hpp"
#include "program/uncompilable.hpp"
#include "region/lower_support.hpp"

namespace opfuse {
namespace {

using namespace testing_region;

AttrMap same3x3() { return {{"pads", Ints{1, 1, 1, 1}}}; }

/// Convolutions and windows wish their images blocked, as a code generator does.
BuildOptions options_with_wishes() {
  BuildOptions options;
  options.wish_layouts = [](const Region& region) {
    LayoutWish wish{std::vector<std::optional<Layout>>(region.params.size())};
    const Anchor anchor = region.stages.back().anchor;
    if (anchor != Anchor::contraction && anchor != Anchor::window) return wish;
    for (size_t i = 0; i < wish.params.size(); ++i)
      if (region.params[i].role != ParamRole::constant && region.params[i].type.shape.rank() == 4)
        wish.params[i] = Layout::channels_blocked(4, 1, 16);
    return wish;
  };
  return options;
}

Program expect_program(const Graph& graph, const BuildOptions& options = options_with_wishes(),
                       const SymbolValues& symbols = {}) {
  const Program program = build_program(graph, parse_target("cpu:avx512"), options);
  RandomInputOptions random;
  random.symbols = symbols;
  const std::vector<Tensor> inputs = random_inputs(graph, random);
  InterpretOptions exact;
  exact.keep_exact = true;
  const std::vector<Tensor> want = interpret(graph, inputs, exact), got = interpret(program, inputs);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(want[i].sizes(), got[i].sizes());
    if (want[i].sizes() != got[i].sizes()) continue;
    EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6) << print(program);
  }
  return program;
}

TEST(BuildProgram, OutputsLieInBlocksWhereThatIsAskedFor) {
  Net net;
  Value* seen = net("relu", {net.conv(net.input({1, 3, 12, 12}), 32, 3, same3x3())});
  Value* y = net("relu", {net.conv(seen, 32, 3, same3x3())});
  seen->name = "seen", y->name = "y";
  net.graph.set_outputs({seen, y});
  const auto layout = [](const Program& program, size_t output) {
    return program.buffers[static_cast<size_t>(program.outputs[output])].layout.text();
  };
  BuildOptions options = options_with_wishes();
  EXPECT_EQ(layout(expect_program(net.graph, options), 0), "0123");
  options.outputs_in_blocks = {"seen"};
  const Program program = expect_program(net.graph, options);
  EXPECT_EQ(layout(program, 0), "0123/1:16");
  EXPECT_EQ(layout(program, 1), "0123");
}

TEST(BuildProgram, AResidualNetKeepsBlockedLayoutsBetweenConvolutions) {
  Net net;
  Value* x = net("relu", {net.conv(net.input({1, 3, 12, 12}), 32, 3, same3x3())});
  Value* y = net("relu", {net("add", {net.conv(x, 32, 3, same3x3()), x})});
  y = net("global_average_pool", {y});
  y = net("flatten", {y});
  net.graph.set_outputs({net("gemm", {y, net.constant({10, 32}), net.constant({10})}, {{"transB", true}})});
  const Program program = expect_program(net.graph);
  int blocked = 0;
  for (const Buffer& buffer : program.buffers)
    blocked += buffer.kind == BufferKind::intermediate && buffer.layout == Layout::channels_blocked(4, 1, 16);
  EXPECT_GE(blocked, 4) << print(program);
  EXPECT_EQ(program.launches.size(), 7u) << "flatten is a view\n" << print(program);
  for (int index : program.inputs) EXPECT_TRUE(program.buffers[static_cast<size_t>(index)].layout.is_dense());
  for (int index : program.outputs) EXPECT_TRUE(program.buffers[static_cast<size_t>(index)].layout.is_dense());
}

TEST(BuildProgram, LayoutsThatNoKernelTakesAreNotAssigned) {
  const auto blocked = [](bool takes) {
    Net net;
    Value* x = net("relu", {net.conv(net.input({1, 3, 12, 12}), 32, 3, same3x3())});
    net.graph.set_outputs({net("global_average_pool", {net.conv(x, 32, 3, same3x3())})});
    BuildOptions options = options_with_wishes();
    const auto wishes = options.wish_layouts;
    options.wish_layouts = [wishes](const Region& region) {
      LayoutWish wish = wishes(region);
      wish.any = region.stages[0].anchor != Anchor::contraction;
      return wish;
    };
    options.choose_schedule = [takes](const Region& region, const std::vector<Layout>& layouts, const auto&) {
      bool dense = true;
      for (const Layout& layout : layouts) dense &= layout.is_dense();
      return Schedule{takes || dense || region.stages[0].anchor != Anchor::contraction ? "kernel" : "", {}};
    };
    const Program program = expect_program(net.graph, options);
    int count = 0;
    for (const Launch& launch : program.launches) {
      EXPECT_EQ(launch.schedule.skeleton, "kernel") << print(program);
      for (int index : launch.buffers) count += !program.buffers[static_cast<size_t>(index)].layout.is_dense();
    }
    return count;
  };
  EXPECT_GT(blocked(true), 0);
  EXPECT_EQ(blocked(false), 0);
}

TEST(BuildProgram, ConcatOperandsArePartsOfTheResultWhenBlocksFit) {
  for (int64_t channels : {16, 8}) {
    Net net;
    Value* x = net.input({1, 16, 6, 6});
    Value* a = net("relu", {net.conv(x, channels, 1)});
    Value* b = net("relu", {net.conv(x, 16, 3, same3x3())});
    Value* y = net("concat", {a, b}, {{"axis", int64_t{1}}});
    net.graph.set_outputs({net("relu", {net.conv(y, 16, 1)})});
    const Program program = expect_program(net.graph);
    EXPECT_EQ(program.launches.size(), channels == 16 ? 6u : program.launches.size()) << print(program);
    EXPECT_LE(program.launches.size(), 7u);
  }
}

/// Convolutions of 64 channels and more wish blocks of 64; the others, and what they store, blocks of 16.
TEST(BuildProgram, LargerBlocksAreForAllThatShareThem) {
  BuildOptions options = options_with_wishes();
  options.wish_layouts = [plain = options.wish_layouts](const Region& region) {
    LayoutWish wish = plain(region);
    wish.narrow = wish.params;
    if (region.stages[0].anchor != Anchor::contraction) return wish;
    for (size_t i = 0; i < wish.params.size(); ++i)
      if (region.params[i].role == ParamRole::input && wish.params[i] && region.params[i].type.shape[1] == Dim(128))
        wish.params[i] = Layout::channels_blocked(4, 1, 64);
    return wish;
  };
  for (int64_t channels : {64, 32}) {  // of a part; blocks of 64 would make a copy of parts of 32
    Net net;
    Value* x = net.input({1, 16, 6, 6});
    Value* a = net("relu", {net.conv(x, channels, 1)});
    Value* b = net("relu", {net.conv(x, 128 - channels, 3, same3x3())});
    Value* y = net("concat", {a, b}, {{"axis", int64_t{1}}});
    Value* z = net("relu", {net.conv(y, 128, 1)});
    net.graph.set_outputs({net("relu", {net("add", {net.conv(z, 128, 1), z})})});
    const Program program = expect_program(net.graph, options);
    std::map<std::string, int> layouts;
    for (const Buffer& b : program.buffers)
      if (b.kind == BufferKind::intermediate && !b.layout.blocks.empty()) ++layouts[b.layout.text()];
    const bool whole = channels == 64;
    EXPECT_GT(layouts["0123/1:64"], whole ? 3 : 0) << print(program);
    EXPECT_GT(layouts["0123/1:16"], whole ? -1 : 2) << print(program);
  }
}

TEST(BuildProgram, SplitAndSliceAreBoxesOfTheirOperand) {
  Net net;
  Value* x = net("relu", {net.input({2, 32, 5})});
  Node* split = net.node("split", {x}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, 2);
  Value* y = net("add", {split->outputs[0], split->outputs[1]});
  Value* cut = net("slice", {y, net.integers({1}), net.integers({9}), net.integers({1})});
  net.graph.set_outputs({net("relu", {cut})});
  const Program program = expect_program(net.graph);
  EXPECT_EQ(program.launches.size(), 3u) << print(program);
}

TEST(BuildProgram, ChannelShuffleAndDepthwiseUnits) {
  Net net;
  Value* x = net("relu", {net.conv(net.input({1, 3, 8, 8}), 32, 3, same3x3())});
  Node* split = net.node("split", {x}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, 2);
  Value* right = net.conv(split->outputs[1], 16, 3, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{16}}});
  Value* y = net("concat", {split->outputs[0], net("relu", {net.conv(right, 16, 1)})}, {{"axis", int64_t{1}}});
  y = net("reshape", {y, net.integers({1, 2, 16, 8, 8})});
  y = net("transpose", {y}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  net.graph.set_outputs({net("reshape", {y, net.integers({1, 32, 8, 8})})});
  expect_program(net.graph);
}

TEST(BuildProgram, ReshapesOfGraphInputsAndToGraphOutputs) {
  Net net;
  Value* x = net.input({2, 12});
  Value* a = net("reshape", {x, net.integers({2, 3, 4})});
  Value* b = net("reshape", {net("relu", {a}), net.integers({6, 4})});
  net.graph.set_outputs({a, b, x});
  const Program program = expect_program(net.graph);
  EXPECT_EQ(program.launches.size(), 3u) << "relu into the output's memory, two copies\n" << print(program);
}

TEST(BuildProgram, AnUnboundBatchStaysSymbolic) {
  Net net;
  Value* x = net("relu", {net.conv(net.input({Dim::symbol("n"), 3, 8, 8}), 16, 3, same3x3())});
  Value* y = net("flatten", {net("global_average_pool", {net.conv(x, 16, 3, same3x3())})});
  net.graph.set_outputs({net("gemm", {y, net.constant({16, 5})})});
  for (int64_t n : {1, 2, 3}) {
    const Program program = expect_program(net.graph, options_with_wishes(), {{"n", n}});
    EXPECT_EQ(program.symbols, std::vector<std::string>{"n"});
  }
}

TEST(BuildProgram, AFusedGroupIsOneLaunchNamedAfterIt) {
  Net net;
  Value* y = net("relu", {net.batch_norm(net.conv(net.input({1, 3, 6, 6}), 16, 3, same3x3()))});
  net.fuse({y});
  const Program program = expect_program(net.graph);
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_EQ(program.launches[0].name, "FusedTest__all");
  EXPECT_EQ(program.launches[0].pattern, "Test");
}

TEST(BuildProgram, AGroupThatCannotBeGeneratedIsSplitWithANote) {
  Net net;
  Value* y = net("relu", {net.conv(net.conv(net.input({1, 3, 6, 6}), 16, 3, same3x3()), 8, 1)});
  net.fuse({y});
  BuildOptions options;
  options.cannot_generate = [](const Region& region) -> std::optional<std::string> {
    if (region.stages.size() > 1) return "two stages are too many";
    return std::nullopt;
  };
  const Program program = expect_program(net.graph, options);
  EXPECT_EQ(program.launches.size(), 3u);
  ASSERT_EQ(program.notes.size(), 1u);
  EXPECT_THAT(program.notes[0], testing::HasSubstr("split at FusedTest__all: two stages are too many"));
}

TEST(BuildProgram, ADividedGroupFeedsReadersThatWereLoweredBeforeIt) {
  Net net;
  Value* y = net("relu", {net.conv(net.conv(net.input({1, 3, 6, 6}), 16, 3, same3x3()), 8, 1)});
  net.fuse({y});
  net.graph.set_outputs({net("sigmoid", {net.graph.outputs()[0]})});
  BuildOptions options;
  options.cannot_generate = [](const Region& region) -> std::optional<std::string> {
    if (region.stages.size() > 1) return "two stages are too many";
    return std::nullopt;
  };
  int asked = 0;
  options.divide = [&](const Node& fused) {  // {conv}, {conv, relu}
    ++asked;
    Graph body = fused.body->clone();
    outline(body, {body.nodes()[1], body.nodes()[2]}, {fused_op(), "Inner__conv", "Inner"});
    return body;
  };
  const Program program = expect_program(net.graph, options);
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(program.launches.size(), 3u);
  EXPECT_EQ(program.launches[1].name, "Inner__conv");
}

TEST(BuildProgram, OperatorsWithoutAKernelAreReportedTogether) {
  Net net;
  Value* x = net.input({4, 4});
  const AttrMap flat{{"axis", int64_t{0}}, {"flatten", true}};
  net.graph.set_outputs({net("hardmax", {x}, flat), net("hardmax", {net("relu", {x})}, flat)});
  try {
    build_program(net.graph, parse_target("cpu:avx512"));
    FAIL() << "built";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "uncompilable");
    EXPECT_THAT(error.what(), testing::HasSubstr("2 operators cannot be compiled"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--allow-reference runs hardmax in the interpreter"));
  }
  BuildOptions options;
  options.allow_reference = true;
  const Program program = build_program(net.graph, parse_target("cpu:avx512"), options);
  EXPECT_EQ(program.notes.size(), 2u);
}

TEST(BuildProgram, TheInterpreterIsNoHelpWhereMemoryCannotBePlanned) {
  Net net;
  net.graph.set_outputs({net("relu", {net("cast", {net("non_zero", {net.input({4, 4})})}, {{"to", DType::f32}})})});
  for (bool allow : {false, true}) {
    BuildOptions options;
    options.allow_reference = allow;
    const std::vector<Obstacle> obstacles = find_obstacles(net.graph, options);
    ASSERT_EQ(obstacles.size(), 3u);
    EXPECT_FALSE(obstacles[0].follows || obstacles[0].interpreted);
    EXPECT_TRUE(obstacles[1].follows && obstacles[2].follows);
    try {
      build_program(net.graph, parse_target("cpu:avx512"), options);
      FAIL() << "built";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostic().hint.find("--allow-reference"), std::string::npos) << error.diagnostic().hint;
      EXPECT_THAT(error.what(), testing::HasSubstr("1 operator cannot be compiled"));
    }
  }
}

TEST(BuildProgram, ResultsTakeThePlaceOfOperandsOnlyAtTheirLastUse) {
  Net net;
  Value* x = net("relu", {net.input({4, 8})});
  Value* y = net("sigmoid", {x});
  net.graph.set_outputs({net("relu", {net("add", {net("neg", {y}), x})})});
  BuildOptions options;
  options.in_place = true;
  const Program program = expect_program(net.graph, options);
  int shared = 0;
  for (const Buffer& buffer : program.buffers) shared += buffer.view_of >= 0;
  EXPECT_EQ(shared, 2) << "neg over sigmoid's result, add over either operand\n" << print(program);
}

int shared_buffers(const Program& program) {
  return static_cast<int>(std::count_if(program.buffers.begin(), program.buffers.end(),
                                        [](const Buffer& buffer) { return buffer.view_of >= 0; }));
}

TEST(BuildProgram, RowsAreNormalisedInPlaceAtTheirLastUse) {
  const auto norm = [](bool read_again) {
    Net net;
    Value* x = net("relu", {net.input({4, 9})});
    Value* y = net("layer_norm", {x, net.constant({9}), net.constant({9})});
    y = net("softmax", {y});
    net.graph.set_outputs({net("matmul", {y, net("transpose", {read_again ? x : y})})});
    return std::move(net.graph);
  };
  const Program program = expect_program(norm(false), {});
  EXPECT_EQ(shared_buffers(program), 2) << print(program);
  EXPECT_EQ(shared_buffers(expect_program(norm(true), {})), 1) << "the softmax only";
  EXPECT_EQ(shared_buffers(build_program(norm(false), parse_target("cuda:sm_80"), {})), 0);
}

TEST(BuildProgram, SumsThatReadOtherElementsThanTheirRowStoresHaveAPlaceOfTheirOwn) {
  Net net;
  Value* x = net("relu", {net.input({4, 9})});
  Value* y = net("cum_sum", {x, net.integers({1})});  // element i reads elements up to i
  Value* z = net("lrn", {net("relu", {net.input({1, 6, 3, 3})})}, {{"size", int64_t{3}}});
  net.graph.set_outputs({net("matmul", {y, net("transpose", {y})}), net("global_average_pool", {z})});
  const Program program = expect_program(net.graph, {});
  EXPECT_EQ(shared_buffers(program), 0) << print(program);
}

TEST(BuildProgram, AChainOfResultsStaysInOnePlace) {
  Net net;
  Value* x = net("relu", {net.input({4, 16})});
  Value* y = net("exp", {net("neg", {net("sigmoid", {x})})});
  net.graph.set_outputs({net("matmul", {y, net("transpose", {y})})});
  const Program program = expect_program(net.graph, {});
  EXPECT_EQ(program.arena_bytes, Dim(2 * 4 * 16 * 4)) << "the chain, and the transposed copy\n" << print(program);
}

TEST(LayoutFacts, BlockedVectorsOfWholeBlocksLieInOrder) {
  const Layout blocked = Layout::channels_blocked(4, 1, 16);
  EXPECT_TRUE(stores_row_major(blocked, {Dim::symbol("n"), 32, 1, 1}));
  EXPECT_FALSE(stores_row_major(blocked, {1, 30, 1, 1}));
  EXPECT_FALSE(stores_row_major(blocked, {1, 32, 2, 1}));
  EXPECT_TRUE(stores_row_major(blocked, {1, 16, 3, 5}) == false);
  EXPECT_TRUE(box_fits_blocks(blocked, {1, 48, 5, 5}, {0, 16, 0, 0}, {1, 16, 5, 5}));
  EXPECT_TRUE(box_fits_blocks(blocked, {1, 40, 5, 5}, {0, 16, 0, 0}, {1, 24, 5, 5}));
  EXPECT_FALSE(box_fits_blocks(blocked, {1, 40, 5, 5}, {0, 8, 0, 0}, {1, 16, 5, 5}));
}

}  // namespace
}  // namespace opfuse
