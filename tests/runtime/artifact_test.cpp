// An .opf reads back as written, and is refused where a byte is missing or another.
#include "runtime/artifact.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file_bytes.hpp"
#include "opfuse/runtime.hpp"
#include "testing/opf_file.hpp"

namespace opfuse {
namespace {

/// ret: a kernel that does nothing.
const std::vector<uint8_t> kReturn = {0xc3};
const std::vector<uint8_t> kConstants(256, 7);

Artifact small_artifact() {
  Artifact a;
  a.target = "cpu:baseline";
  a.cpu_features = {"sse2"};
  a.model_name = "tiny";
  a.symbols = {"n"};
  a.inputs = {{"x", parse_type("f32[n,4]"), 0}};
  a.outputs = {{"y", parse_type("f32[n,4]"), 1}};
  const Dim bytes = Dim::symbol("n") * Dim(16);
  a.buffers = {
      {Storage::input, 0, 0, bytes, "x"}, {Storage::output, 0, 0, bytes, "y"}, {Storage::constant, -1, 0, 256, "w"}};
  ArtifactLaunch launch;
  launch.name = "relu__r";
  launch.symbol = "map_0";
  launch.sources = {"r"};
  launch.buffers = {0, 1, 2};
  launch.flops = Dim::symbol("n") * Dim(4);
  a.launches = {launch};
  a.code = kReturn;
  a.constants = kConstants;
  return a;
}

class ArtifactFile : public testing::Test {
 protected:
  std::string path =
      (std::filesystem::temp_directory_path() / ("opfuse_artifact_" + std::to_string(getpid()))).string();
  void TearDown() override { std::remove(path.c_str()); }
  std::string read() { return file_bytes(path).value_or(""); }
  void write(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::string code_of_load() {
    try {
      load_artifact(path);
    } catch (const Error& e) {
      return e.diagnostic().name;
    }
    return "loaded";
  }
};

TEST_F(ArtifactFile, ReadsBackWhatWasWritten) {
  save_artifact(small_artifact(), path);
  const Artifact back = load_artifact(path);
  EXPECT_EQ(back.model_name, "tiny");
  EXPECT_EQ(back.inputs.at(0).type, parse_type("f32[n,4]"));
  EXPECT_EQ(back.buffers.at(0).bytes.evaluate({{"n", 3}}), 48);
  EXPECT_EQ(back.launches.at(0).sources, std::vector<std::string>{"r"});
  EXPECT_TRUE(std::equal(back.constants.begin(), back.constants.end(), kConstants.begin(), kConstants.end()));
}

TEST_F(ArtifactFile, RefusesEveryTruncation) {
  save_artifact(small_artifact(), path);
  const std::string whole = read();
  for (size_t size : {size_t{0}, size_t{7}, size_t{23}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    write(whole.substr(0, size));
    EXPECT_EQ(code_of_load(), "bad_file") << size << " bytes";
  }
}

TEST_F(ArtifactFile, RefusesAFlippedByteAnywhereThatMatters) {
  save_artifact(small_artifact(), path);
  const std::string whole = read();
  for (size_t at : {size_t{3}, size_t{10}, size_t{18}, size_t{60}, size_t{4096}, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    write(damaged);
    EXPECT_EQ(code_of_load(), "bad_file") << "byte " << at;
  }
}

/// The small artifact with a variant for n = 2.
Artifact artifact_with_variant() {
  Artifact a = small_artifact();
  ArtifactVariant variant{a, {{"n", 2}}, 1, 0};
  variant.symbols.clear();
  variant.launches[0].name = "relu__r at 2";
  a.variants = {variant};
  return a;
}

TEST_F(ArtifactFile, KeepsVariants) {
  save_artifact(artifact_with_variant(), path);
  const Artifact back = load_artifact(path);
  ASSERT_EQ(back.variants.size(), 1U);
  EXPECT_EQ(back.variants[0].when, (SymbolValues{{"n", 2}}));
  EXPECT_EQ(back.variants[0].code_bytes, 1U);
  EXPECT_EQ(&back.program_for({{"n", 2}}), &back.variants[0]);
  for (const int64_t n : {1, 3, 17}) EXPECT_EQ(&back.program_for({{"n", n}}), &back) << n;
}

/// The small artifact, whose launch is a body.
Artifact artifact_with(const ArtifactBody& body, const std::vector<ArtifactLaunch::Step>& steps) {
  Artifact a = small_artifact();
  a.bodies = {body};
  a.launches[0].steps = steps;
  return a;
}

const std::vector<ArtifactLaunch::Step> kMoves = {{16, -1}, {16, -1}, {0, -1}};
const Dim kN = Dim::symbol("n");

TEST_F(ArtifactFile, KeepsBodies) {
  save_artifact(artifact_with({0, 1, kN, false, "n", 4}, kMoves), path);
  const Artifact open = load_artifact(path);
  ASSERT_EQ(open.bodies.size(), 1U);
  EXPECT_EQ(open.bodies[0].symbol, "n");
  EXPECT_EQ(open.bodies[0].launches, 1);
  EXPECT_EQ(open.bodies[0].times, kN);
  EXPECT_EQ(open.bodies[0].from, 4);
  EXPECT_FALSE(open.bodies[0].steps);
  EXPECT_EQ(open.launches[0].steps[1].bytes, Dim(16));
  Artifact constant = artifact_with({0, 1, 8}, kMoves);
  for (size_t b : {0, 1}) constant.buffers[b].bytes = 8 * 16;
  save_artifact(constant, path);
  EXPECT_EQ(load_artifact(path).bodies[0].times, Dim(8));
  save_artifact(artifact_with({0, 1, kN, true}, {{16, 1}, {16, -1}, {0, -1}}), path);
  EXPECT_TRUE(load_artifact(path).bodies[0].steps);
  EXPECT_EQ(load_artifact(path).launches[0].steps[0].first, 1);
}

TEST_F(ArtifactFile, RefusesBodiesThatItsLaunchesCannotRun) {
  const auto name_with = [&](const ArtifactBody& body, const std::vector<ArtifactLaunch::Step>& steps = kMoves) {
    save_artifact(artifact_with(body, steps), path);
    return code_of_load();
  };
  const ArtifactBody images{0, 1, kN, false, "n", 4};
  EXPECT_EQ(name_with(images), "loaded");
  EXPECT_EQ(name_with({0, 1, kN, false, "m", 4}), "bad_file") << "an unknown dimension";
  EXPECT_EQ(name_with({0, 1, Dim::symbol("m"), false, "n", 4}), "bad_file") << "an unknown dimension";
  EXPECT_EQ(name_with({0, 2, kN, false, "n", 4}), "bad_file") << "more launches than there are";
  EXPECT_EQ(name_with({1, 1, kN, false, "n", 4}), "bad_file") << "a launch that is not there";
  EXPECT_EQ(name_with({-1, 2, kN, false, "n", 4}), "bad_file") << "a launch that is not there";
  EXPECT_EQ(name_with({0, 1, kN, false, "n", 0}), "bad_file");
  EXPECT_EQ(name_with({0, 1, kN, true, "n", 4}), "bad_file") << "steps of a batch";
  EXPECT_EQ(name_with(images, {{16, -1}, {16, -1}}), "bad_file") << "a buffer that is not said to move or stay";
  EXPECT_EQ(name_with(images, {{16, -1}, {-16, -1}, {0, -1}}), "bad_file");
  EXPECT_EQ(name_with(images, {{16, 1}, {16, -1}, {0, -1}}), "bad_file") << "the part before";
  EXPECT_EQ(name_with(images, {{0, -1}, {0, -1}, {0, -1}}), "bad_file") << "nothing moves";
  Artifact two = artifact_with(images, kMoves);
  two.bodies.push_back(images);
  save_artifact(two, path);
  EXPECT_EQ(code_of_load(), "bad_file") << "two bodies on one launch";
}

TEST_F(ArtifactFile, RefusesMoreImagesThanTheMapsHold) {
  const auto name_with = [&](int64_t images, int64_t step) {
    Artifact a = artifact_with({0, 1, images}, {{step, -1}, {step, -1}, {0, -1}});
    for (size_t b : {0, 1}) a.buffers[b].bytes = 32 * 16;
    save_artifact(a, path);
    return code_of_load();
  };
  EXPECT_EQ(name_with(32, 16), "loaded");
  EXPECT_EQ(name_with(33, 16), "bad_file");
  EXPECT_EQ(name_with(int64_t{1} << 60, 16), "bad_file");
  EXPECT_EQ(name_with(8, 0), "bad_file") << "images in one place";
}

TEST_F(ArtifactFile, RefusesVariantsThatTheModelCannotHave) {
  const auto name_after = [&](const std::function<void(ArtifactVariant&)>& damage) {
    Artifact a = artifact_with_variant();
    damage(a.variants[0]);
    save_artifact(a, path);
    return code_of_load();
  };
  EXPECT_EQ(name_after([](ArtifactVariant&) {}), "loaded");
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.when = {{"m", 2}}; }), "bad_file") << "an unknown dimension";
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.when.clear(); }), "bad_file") << "a guard that always holds";
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.when["n"] = -1; }), "bad_file");
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.symbols = {"n"}; }), "bad_file") << "both fixed and open";
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.symbols = {"m"}; }), "bad_file");
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.launches[0].code_offset = 1; }), "bad_file") << "code elsewhere";
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.launches[0].buffers[1] = 9; }), "bad_file");
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.buffers[2].offset = 1; }), "bad_file") << "constants beyond the end";
  EXPECT_EQ(name_after([](ArtifactVariant& v) { v.buffers[0].root = 4; }), "bad_file");
}

TEST_F(ArtifactFile, CodeForAnotherCpuIsKeptAndSavedButNotRun) {
  Artifact a = small_artifact();
  a.cpu_features = {"sse2", "quantum"};
  const Executable executable = Executable::from_artifact(std::move(a));
  try {
    executable.create_context();
    FAIL() << "a context of code that needs \"quantum\"";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "unsupported_cpu");
    EXPECT_NE(std::string(e.what()).find("needs the CPU feature quantum"), std::string::npos) << e.what();
  }
  executable.save(path);
}

TEST_F(ArtifactFile, RefusesACpuFeatureThisMachineLacks) {
  Artifact a = small_artifact();
  a.cpu_features = {"sse2", "quantum"};
  save_artifact(a, path);
  EXPECT_EQ(code_of_load(), "unsupported_cpu");
}

/// The small artifact's file with one more section, or with what `change` makes of its table.
class ArtifactSections : public ArtifactFile {
 protected:
  OpfFile saved() {
    save_artifact(small_artifact(), path);
    return OpfFile(read());
  }
  std::string message_of_load() {
    try {
      load_artifact(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.diagnostic().name, "bad_file");
      return e.diagnostic().message + " | " + e.diagnostic().hint;
    }
    return "loaded";
  }
  std::string load_with(nlohmann::json entry) {
    OpfFile file = saved();
    file.add(std::move(entry), "of the future");
    write(file.bytes());
    return message_of_load();
  }
};

TEST_F(ArtifactSections, ARequiredOneThatIsUnknownNamesTheReleaseItNeeds) {
  const std::string says = load_with({{"id", "placement"}, {"version", 1}, {"required", true}, {"since", "0.7.0"}});
  EXPECT_THAT(says, testing::HasSubstr("needs opfuse 0.7.0 or later: its section 'placement'"));
  EXPECT_THAT(says, testing::HasSubstr("run it with opfuse 0.7.0, or compile the model again"));
}

TEST_F(ArtifactSections, OptionalOnesThatAreUnknownAreSkippedAndSaid) {
  EXPECT_EQ(load_with({{"id", "debug"}, {"version", 3}, {"required", false}, {"since", "0.7.0"}}), "loaded");
  const Artifact a = load_artifact(path);
  EXPECT_EQ(a.skipped, std::vector<std::string>{"'debug', version 3, of opfuse 0.7.0"});
  save_artifact(a, path);
  EXPECT_TRUE(load_artifact(path).skipped.empty());
}

TEST_F(ArtifactSections, LaterVersionsOfKnownOnesAreAskedForOrSkipped) {
  Artifact with_plan = small_artifact();
  with_plan.plan_json = "{}";
  save_artifact(with_plan, path);
  OpfFile file(read());
  OpfFile later = file;
  later.table["sections"][later.index_of("program")].update({{"version", 4}, {"since", "0.9.0"}});
  write(later.bytes());
  EXPECT_THAT(message_of_load(), testing::HasSubstr("needs opfuse 0.9.0 or later: its section 'program', version 4"));
  file.table["sections"][file.index_of("plan")].update({{"version", 2}, {"since", "0.9.0"}});
  write(file.bytes());
  EXPECT_EQ(message_of_load(), "loaded");
  EXPECT_EQ(load_artifact(path).plan_json, "");
}

TEST_F(ArtifactSections, AreThereOnceInOrderAndAsTheyAreMarked) {
  for (const char* id : {"model", "program", "code", "constants"}) {
    OpfFile file = saved();
    const size_t at = file.index_of(id);
    OpfFile without = file, twice = file, optional = file;
    without.table["sections"].erase(at);
    without.sections.erase(without.sections.begin() + static_cast<std::ptrdiff_t>(at));
    write(without.bytes());
    EXPECT_THAT(message_of_load(), testing::HasSubstr(std::string("lacks its section '") + id)) << id;
    twice.add(file.table["sections"][at], file.sections[at]);
    write(twice.bytes());
    EXPECT_THAT(message_of_load(), testing::HasSubstr("there twice")) << id;
    optional.table["sections"][at]["required"] = false;
    write(optional.bytes());
    EXPECT_THAT(message_of_load(), testing::HasSubstr("marked optional")) << id;
  }
  OpfFile turned(saved().bytes());
  std::swap(turned.table["sections"][0], turned.table["sections"][1]);
  write(turned.bytes_with(turned.table));
  EXPECT_THAT(message_of_load(), testing::HasSubstr("begins within another one"));
}

TEST_F(ArtifactSections, OtherFormatsNameTheRemedy) {
  for (const int format : {3, 6}) {
    OpfFile file = saved();
    file.table["format"] = format;
    write(file.bytes());
    EXPECT_THAT(message_of_load(),
                testing::HasSubstr(std::to_string(format) + ", codegen 1; this opfuse reads formats 4 and 5"));
    EXPECT_THAT(message_of_load(), testing::HasSubstr("compile the model again"));
  }
}

TEST_F(ArtifactFile, NamesAMissingFile) { EXPECT_EQ(code_of_load(), "file_not_found"); }

TEST_F(ArtifactFile, LeavesNoPartialFileBehindWhenItCannotWrite) {
  EXPECT_THROW(save_artifact(small_artifact(), "/nonexistent-folder/x.opf"), Error);
}

TEST(Context, RefusesWrongBindingsAndNamesTheInputs) {
  const Executable exe = Executable::from_artifact(small_artifact());
  Context ctx = exe.create_context({.threads = 1});
  std::vector<float> x(8), wrong(6);
  std::vector<int32_t> ints(8);
  EXPECT_THROW(ctx.run(), Error);
  EXPECT_THROW(ctx.bind("z", view(x, {2, 4})), Error);
  EXPECT_THROW(ctx.bind("x", view(wrong, {2, 3})), Error);
  EXPECT_THROW(ctx.bind("x", view(ints, {2, 4})), Error);
  ctx.bind("x", view(x, {2, 4}));
  ctx.run();
  EXPECT_EQ(ctx.output("y").shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(ctx.launches().at(0).flops, 8);
}

TEST(Context, FollowsANewBatchSize) {
  const Executable exe = Executable::from_artifact(small_artifact());
  Context ctx = exe.create_context({.threads = 2});
  for (int64_t n : {1, 2, 3, 17}) {
    std::vector<float> x(static_cast<size_t>(n) * 4);
    ctx.bind("x", view(x, {n, 4}));
    ctx.run();
    EXPECT_EQ(ctx.output("y").shape, (std::vector<int64_t>{n, 4}));
  }
}

TEST(Context, RunsTheVariantThatTheBoundSizesMeet) {
  const Executable exe = Executable::from_artifact(artifact_with_variant());
  EXPECT_EQ(exe.variants(), (std::vector<SymbolValues>{{{"n", 2}}}));
  Context ctx = exe.create_context({.threads = 1});
  EXPECT_THROW(ctx.variant(), Error);
  for (int64_t n : {2, 1, 17, 2, 3}) {
    std::vector<float> x(static_cast<size_t>(n) * 4);
    ctx.bind("x", view(x, {n, 4}));
    EXPECT_EQ(ctx.variant(), n == 2 ? (SymbolValues{{"n", 2}}) : SymbolValues{}) << n;
    ctx.run();
    EXPECT_EQ(ctx.launches().at(0).name, n == 2 ? "relu__r at 2" : "relu__r") << n;
    EXPECT_EQ(ctx.output("y").shape, (std::vector<int64_t>{n, 4}));
  }
}

TEST(Context, StopsWhenTheHostCancels) {
  const Executable exe = Executable::from_artifact(small_artifact());
  Context ctx = exe.create_context({.threads = 1, .progress = [](size_t, size_t) { return false; }});
  std::vector<float> x(4);
  ctx.bind("x", view(x, {1, 4}));
  try {
    ctx.run();
    FAIL() << "was not cancelled";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "cancelled");
  }
}

}  // namespace
}  // namespace opfuse
