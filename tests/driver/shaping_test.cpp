// Shaping as passes of the manager: named, in one order, switched off by name, dumped, replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "driver/compilation.hpp"
#include "fusion/explain/shaping_text.hpp"
#include "ir/fir_file.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"

namespace opfuse {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

const TargetInfo kTarget = parse_target("cpu:avx512");

/// A large map between a convolution and the depthwise one behind it.
Graph chain() {
  return parse_graph(R"(graph (%x: f32[1,16,112,112]) {
    %w1 = const rand<1> : f32[96,16,1,1]
    %w2 = const rand<2> : f32[96,1,3,3]
    %a = conv(%x, %w1)  @"expand"(Conv@17)
    %r = relu(%a)  @"act"(Relu@17)
    %y = conv(%r, %w2) {group = 96, pads = [1,1,1,1], strides = [2,2]}  @"depth"(Conv@17)
    return %y
  })",
                     ops());
}

Compilation shaped(const CompilationOptions& options, const TargetInfo& target = kTarget) {
  Compilation compilation(chain(), target, options);
  compilation.run_to(Milestone::shaped);
  return compilation;
}

TEST(Shaping, TellsARecordWithACodeForEveryPair) {
  const Compilation c = shaped({});
  ASSERT_EQ(pairs_of(c.verdicts).size(), 1u);
  const ShapeVerdict verdict = pairs_of(c.verdicts)[0];
  EXPECT_EQ(verdict.pass, "join-chains");
  EXPECT_EQ(verdict.code(), "done");
  EXPECT_EQ(verdict.value, "r");
  EXPECT_EQ(verdict.number("bytes"), 96 * 112 * 112 * 4);
  EXPECT_THAT(verdict.sources, testing::ElementsAre("expand", "act", "depth"));
  EXPECT_EQ(sentence_of(verdict), "one launch, 4.82 MB between them stay in caches");
  EXPECT_THAT(c.notes(), Contains(HasSubstr("1 of 1 pairs of a convolution and a depthwise one")));
}

TEST(Shaping, LeavesOutWhatIsSwitchedOffByName) {
  CompilationOptions options;
  options.no_pass = {"join-chains"};
  const Compilation c = shaped(options);
  ASSERT_EQ(pairs_of(c.verdicts).size(), 1u);
  EXPECT_EQ(c.verdicts[0].code(), "disabled");
  EXPECT_EQ(sentence_of(c.verdicts[0]), "two launches, disabled: the pass join-chains is switched off");
  EXPECT_TRUE(c.fused.nodes().size() > 1 || c.fused.nodes()[0]->is("for_parts"));  // slices may take over
  options.no_pass = {"join-chains", "run-in-slices"};
  EXPECT_EQ(shaped(options).fused.nodes().size(), 2u);
  options.no_pass = {"join-means", "run-in-slices"};
  EXPECT_EQ(shaped(options).fused.nodes().size(), 1u);
}

TEST(Shaping, EveryPassCanBeSwitchedOff) {
  CompilationOptions options;
  for (const ShapingPass& pass : shaping_passes()) options.no_pass.push_back(pass.name);
  const Compilation c = shaped(options);
  for (const ShapeVerdict& verdict : c.verdicts) EXPECT_EQ(verdict.code(), "disabled") << verdict.pass;
  EXPECT_TRUE(c.shapings.empty());
}

TEST(Shaping, RefusesUnknownNamesBeforeAnythingRuns) {
  CompilationOptions options;
  options.no_pass = {"join-chain"};
  try {
    Compilation compilation(chain(), kTarget, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "unknown_name");
    EXPECT_THAT(error.diagnostic().hint, HasSubstr("join-chains"));
  }
}

TEST(Shaping, GpusHaveNone) {
  const Compilation c = shaped({}, parse_target("cuda:sm_80"));
  EXPECT_TRUE(c.verdicts.empty());
  EXPECT_EQ(c.fused.nodes().size(), 2u);
}

/// A folder of its own, gone afterwards.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("opfuse-shaping-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(Shaping, DumpsGoOnWherePreparingEnded) {
  const Folder folder;
  CompilationOptions options;
  options.dump_dir = folder.path.string();
  const Compilation c = shaped(options);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path))
    if (entry.path().extension() == ".fir") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 3u);
  EXPECT_EQ(names.front(), "00-input.fir");
  EXPECT_THAT(names[names.size() - 2], testing::EndsWith("-fused.fir"));
  EXPECT_THAT(names.back(), testing::EndsWith("-join-chains.fir"));
  const auto read = [&](const std::string& name) { return read_fir((folder.path / name).string(), ops()); };
  EXPECT_TRUE(equal(read(names.back()), c.fused));
  EXPECT_EQ(read("00-input.fir").nodes().size(), 3u);  // its constants are still those that it was written with
  Graph replayed = read(names[names.size() - 2]);
  EXPECT_TRUE(run_passes(replayed, {pass_for("join-chains", kTarget)}).changed());
  EXPECT_TRUE(equal(replayed, c.fused));
}

TEST(Shaping, VariantsAreDumpedBesideTheModel) {
  const Folder folder;
  CompilationOptions options;
  options.dump_dir = folder.path.string();
  options.specialize = {{{"n", 2}}};
  Graph open = parse_graph("graph (%x: f32[n,8]) { %y = relu(%x) %z = exp(%y) return %z }", ops());
  Compilation compilation(open, kTarget, options);
  compilation.run_to(Milestone::shaped);
  EXPECT_TRUE(equal(read_fir((folder.path / "variant-00" / "00-fused.fir").string(), ops()),
                    *compilation.variants.at(0).graph));
}

TEST(Shaping, APassIsFoundByNameAmongAll) {
  for (const ShapingPass& pass : shaping_passes()) EXPECT_EQ(pass_for(pass.name, kTarget).name, pass.name);
  EXPECT_EQ(pass_for("fold-constants", kTarget).name, "fold-constants");
  EXPECT_THROW(pass_for("join-everything", kTarget), Error);
}

TEST(Shaping, WhatNoChainsStandsForIsInTheList) { EXPECT_NO_THROW(check_shaping_names(passes_of_chains())); }

}  // namespace
}  // namespace opfuse
