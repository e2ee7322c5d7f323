// Files of targets: those that are compiled in say what they always said, those of users are read or refused with the
// place of every mistake.
#include "target/target_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/fail.hpp"
#include "target/fields.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

using testing::ElementsAre;

/// "2:8: message | hint" of every mistake.
std::vector<std::string> mistakes_in(const std::string& text) {
  std::vector<std::string> lines;
  for (const TargetMistake& m : read_target_text(text, "mine.toml").mistakes)
    lines.push_back(fmt::format("{}:{}: {}{}", m.line, m.column, m.message, m.hint.empty() ? "" : " | " + m.hint));
  return lines;
}

const std::string kHead = "schema = 1\nextends = \"cpu:avx2\"\n";

TEST(Targets, ThatAreShippedHaveTheInstructionsTheyHad) {
  EXPECT_THAT(known_targets(), ElementsAre("cpu:avx512", "cpu:avx2", "cpu:baseline"));
  EXPECT_THAT(cuda_targets(), ElementsAre("cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90", "cuda:sm_90a",
                                          "cuda:sm_100", "cuda:sm_120", "cuda:emulated"));
  const TargetInfo wide = parse_target("cpu:avx512"), narrow = parse_target("cpu:baseline");
  EXPECT_THAT(wide.features, ElementsAre("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma"));
  EXPECT_EQ(wide.vector_bytes, 64);
  EXPECT_EQ(wide.vector_registers, 32);
  EXPECT_TRUE(wide.fma);
  EXPECT_EQ(wide.llvm_cpu, "x86-64-v4");
  EXPECT_EQ(wide.multiply_adds_in_flight(), 8);
  EXPECT_THAT(narrow.features, ElementsAre("sse2"));
  EXPECT_EQ(narrow.llvm_cpu, "x86-64");
  EXPECT_FALSE(narrow.fma);
  EXPECT_EQ(parse_target("cuda:sm_90a").cuda_arch, "sm_90a");
  EXPECT_EQ(parse_target("cuda:sm_80").shared_kilobytes, 163);
  EXPECT_TRUE(parse_target("cuda:emulated").emulated);
}

TEST(Targets, ThatAreShippedAreWholeAndFingerprintsAreOfFilesAlone) {
  for (const ShippedTarget& shipped : shipped_targets()) {
    const TargetFile file = read_shipped(shipped);
    EXPECT_TRUE(file.mistakes.empty()) << shipped.stem;
    EXPECT_EQ(file.is_target(), shipped.stem != "x86" && shipped.stem != "cuda") << shipped.stem;
  }
  for (const std::string& name : listed_targets()) EXPECT_EQ(parse_target(name).fingerprint, "") << name;
}

TEST(Targets, WithMoreFeaturesKeepTheF32CodeOfTheirs) {
  const TargetInfo more = parse_target("cpu:avx512-vnni"), plain = parse_target("cpu:avx512");
  EXPECT_EQ(more.llvm_cpu, plain.llvm_cpu);
  EXPECT_TRUE(more.has("avx512vnni") && more.has("avx512f") && !plain.has("avx512vnni"));
}

TEST(Targets, TheDefaultIsAnInstructionSetWithFeaturesBeside) {
  const TargetInfo host = host_target(), named = parse_target(host.name);
  EXPECT_THAT(known_targets(), testing::Contains(host.name)) << "features alone do not change the default's name";
  std::vector<std::string> features = named.features;
  features.insert(features.end(), host.beside.begin(), host.beside.end());
  EXPECT_EQ(host.features, features);
  EXPECT_TRUE(named.beside.empty());
  EXPECT_EQ(host.fingerprint.empty(), host.beside.empty()) << "kernels with and without are never mixed";
  const bool here = std::ranges::count(host_features(), "avx512vnni") == 1;
  EXPECT_EQ(host.has("avx512vnni"), here && host.name == "cpu:avx512");
  EXPECT_FALSE(host.name == "cpu:avx512" && host.has("avxvnni")) << "the other encoding of the same";
}

TEST(Targets, AreFoundByNameOrTold) {
  try {
    parse_target("cpu:avx513");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "bad_option");
    EXPECT_THAT(error.diagnostic().hint, testing::StartsWith("did you mean \"cpu:avx512\"? known targets: host, cpu:"));
  }
  EXPECT_EQ(parse_target("cpu:host").name, host_target().name);
}

TEST(TargetFile, StatesWhatDiffers) {
  const test::TemporaryFolder folder;
  folder.write("base.toml", "schema = 1\nname = \"cpu:base\"\nextends = \"cpu:avx2\"\n[rates]\nmemory = 5\n");
  const std::string path = folder.write("mine.toml",
                                        "schema = 1\nextends = \"base.toml\"\n[caches]\nl2_bytes = 2000000\n"
                                        "l3_bytes = 90000000\n[core]\nfma_units = 1\n");
  const TargetInfo mine = parse_target(path);
  EXPECT_EQ(mine.name, "cpu:mine");
  EXPECT_EQ(mine.l2_bytes, 2000000) << "a file's sizes count more than those the system reports";
  EXPECT_EQ(mine.l1_bytes, parse_target("cpu:avx2").l1_bytes);
  EXPECT_EQ(mine.rates.memory, 5);
  EXPECT_EQ(mine.rates.maps, 30);
  EXPECT_EQ(mine.multiply_adds_in_flight(), 4);
  EXPECT_EQ(mine.fingerprint.size(), 32U) << "kernels of two files with one name are never mixed";
  EXPECT_EQ(parse_target("cpu:mine").l2_bytes, 2000000) << "plans name it";
  folder.write("mine.toml", "schema = 1\nextends = \"base.toml\"\n");
  EXPECT_NE(parse_target(path).fingerprint, mine.fingerprint);
}

TEST(TargetFile, WhatIsPrintedReadsBack) {
  for (const std::string& name : listed_targets()) {
    if (name == "cuda:emulated") continue;  // only itself
    const TargetInfo target = parse_target(name);
    std::string text = toml_of(target) + toml_of(capabilities_of(target));
    const size_t at = text.find("name = \"") + 8;
    text.insert(text.find('"', at), "-again");
    const TargetFile again = read_target_text(text, "again.toml");
    ASSERT_TRUE(again.mistakes.empty()) << text << again.mistakes[0].message;
    EXPECT_EQ(toml_of(again.target) + toml_of(again.capabilities), text);
  }
}

TEST(TargetFile, EveryMistakeIsSaidOnceWithItsPlace) {
  EXPECT_THAT(
      mistakes_in(kHead + "[cahces]\nl2_bytes = 1\n[caches]\nl2_byte = 4096\nl1_bytes = \"32k\"\nl3_bytes = 1.5\n"
                          "[rates]\nmemory = 0\n[instructions]\nfeatures = [\"avx512vni\", \"avxvnni\"]\n"),
      testing::UnorderedElementsAre("3:1: [cahces] is not a section of a target | did you mean \"caches\"?",
                                    "6:11: [caches] has no field \"l2_byte\" | did you mean \"l2_bytes\"?",
                                    "7:12: caches.l1_bytes must be a whole number",
                                    "8:12: caches.l3_bytes must be a whole number",
                                    "10:10: rates.memory = 0 is outside [0.01, 10000]",
                                    "12:13: there is no feature 'avx512vni' | did you mean \"avx512vnni\"?"));
  EXPECT_THAT(mistakes_in("schema = 1\nextends = \"cpu:avx3\"\n"),
              ElementsAre("2:11: there is no target 'cpu:avx3' to extend | did you mean \"cpu:avx2\"?"));
  EXPECT_THAT(mistakes_in("name = \"cpu:x\"\n"), ElementsAre("1:1: the file lacks its schema | begin with schema = 1"));
  EXPECT_THAT(mistakes_in("schema = 2\n"),
              ElementsAre("1:10: schema 2 is of another opfuse; this one reads schema 1 | begin with schema = 1"));
  EXPECT_THAT(mistakes_in("schema = 1\n"),
              ElementsAre("1:1: the file has neither kind nor extends | kinds: cpu, cuda, planning, accelerator"));
  EXPECT_EQ(mistakes_in("schema = = 1\n").size(), 1U);
  EXPECT_THAT(mistakes_in(kHead + "kind = \"cuda\"\n"), ElementsAre("3:8: the file extends a target of the kind cpu"));
  EXPECT_THAT(mistakes_in(kHead + "[gpu]\narch = \"sm_80\"\n"),
              ElementsAre("4:8: gpu.arch is not a field of cpu targets"));
  EXPECT_THAT(mistakes_in("schema = 1\nextends = \"x86\"\n[instructions]\nfeatures = [\"sse2\"]\n"),
              ElementsAre("1:1: the target lacks instructions.llvm_cpu | state it, or extend a target",
                          "1:1: the target lacks instructions.vector_bytes | state it, or extend a target",
                          "1:1: the target lacks instructions.vector_registers | state it, or extend a target",
                          "1:1: the target lacks instructions.fma | state it, or extend a target"));
}

/// Files that state everything were whole before [kernels], [parts], [shares] and the last rows of [costs] were fields.
TEST(TargetFile, WithoutYoungerFieldsHasThoseOfX86) {
  const TargetInfo whole = parse_target("cpu:avx2");
  std::string old;
  for (const TargetField& field : target_fields()) {
    if (!field.allowed("cpu") || field.later || std::string_view(field.key) == "name") continue;
    const std::string section = *field.section ? fmt::format("[{}]\n", field.section) : "";
    if (old.find(section) == std::string::npos) old += section;
    old += fmt::format("{} = {}\n", field.key, text_of(field, whole));
  }
  const TargetFile file = read_target_text("schema = 1\n" + old, "mine.toml");
  ASSERT_TRUE(file.mistakes.empty()) << file.mistakes[0].message;
  for (const TargetField& field : target_fields())
    if (field.allowed("cpu") && field.later) {
      EXPECT_EQ(text_of(field, file.target), text_of(field, whole)) << field.key;
    }
  EXPECT_EQ(file.target.kernels.winograd_tile, 40);
  EXPECT_EQ(file.target.parts.missing, 2);
  EXPECT_EQ(file.target.shares.weights, 0.8);
}

TEST(TargetFile, InstructionsThatCodeWouldUseAreFeatures) {
  EXPECT_THAT(
      mistakes_in("schema = 1\nextends = \"x86\"\n[instructions]\nfeatures = [\"sse2\"]\nllvm_cpu = \"x86-64-v4\"\n"
                  "vector_bytes = 32\nvector_registers = 32\nfma = true\n"),
      ElementsAre("5:12: llvm_cpu = \"x86-64-v4\" needs the feature avx2 | add it to instructions.features",
                  "6:16: vector_bytes = 32 needs the feature avx2 | add it to instructions.features",
                  "7:20: vector_registers = 32 needs the feature avx512vl | add it to instructions.features",
                  "8:7: fma = true needs the feature fma | add it to instructions.features"));
  EXPECT_THAT(mistakes_in(kHead + "[instructions]\nllvm_cpu = \"znver4\"\nvector_bytes = 48\n"),
              ElementsAre("4:12: there is no llvm_cpu 'znver4' | known: x86-64, x86-64-v3, x86-64-v4"));
  EXPECT_THAT(mistakes_in(kHead + "[instructions]\nvector_bytes = 48\n"),
              ElementsAre("4:16: vector_bytes must be 16, 32 or 64"));
  EXPECT_THAT(mistakes_in(kHead + "[caches]\nl1_bytes = 65536\nl2_bytes = 32768\n"),
              ElementsAre(testing::HasSubstr("a level is smaller than the one before")));
}

TEST(TargetFile, ArchitecturesAreNamedAndNotPlayed) {
  EXPECT_THAT(mistakes_in("schema = 1\nextends = \"cuda:sm_80\"\n[gpu]\narch = \"ampere\"\n"),
              ElementsAre("4:8: \"ampere\" is not an architecture | write \"sm_80\""));
  EXPECT_THAT(mistakes_in("schema = 1\nextends = \"cuda:emulated\"\n"),
              ElementsAre("1:1: only cuda:emulated itself is emulated"));
}

TEST(TargetFile, NamesAreOfTheirKindAndNotTaken) {
  EXPECT_THAT(mistakes_in(kHead + "name = \"cpu:avx512\"\n"),
              ElementsAre("3:8: the name 'cpu:avx512' is that of a target of opfuse | choose another name, and extend "
                          "that target"));
  for (const char* name : {"mine", "cuda:mine", "cpu:", "cpu:my box", "cpu:a\\nb"})
    EXPECT_EQ(mistakes_in(kHead + "name = \"" + name + "\"\n").size(), 1U) << name;
}

TEST(TargetFile, ThatExtendsItselfIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("loop.toml", "schema = 1\nextends = \"loop.toml\"\n");
  const TargetFile file = read_target_file(path);
  ASSERT_EQ(file.mistakes.size(), 1U);
  EXPECT_THAT(file.mistakes[0].message, testing::HasSubstr("one of them extends itself"));
  EXPECT_THROW(parse_target(path), Error);
  EXPECT_THROW(parse_target("/nowhere/x.toml"), Error);
}

TEST(TargetFile, AnyBytesEndInATargetOrInMistakes) {
  const std::string whole = toml_of(parse_target("cpu:avx2"));
  for (size_t cut = 0; cut < whole.size(); cut += 7) {
    std::string damaged = whole.substr(0, cut) + whole.substr(std::min(whole.size(), cut + 1 + cut % 5));
    for (const std::string& text : {whole.substr(0, cut), damaged}) {
      const TargetFile file = read_target_text(text, "mine.toml");
      EXPECT_TRUE(!file.mistakes.empty() || file.target.lanes_f32() > 0) << text;
    }
  }
}

TEST(Features, OfThisMachineAreAmongThoseKnown) {
  std::vector<std::string> names;
  for (const CpuFeature& feature : cpu_features()) names.emplace_back(feature.name);
  for (const std::string& here : host_features()) EXPECT_THAT(names, testing::Contains(here));
  for (const char* name : {"avx512vnni", "avxvnni", "avx512bf16", "avx512fp16"})
    EXPECT_THAT(names, testing::Contains(name));
  EXPECT_THAT(host_features(), testing::Contains("sse2"));
}

}  // namespace
}  // namespace opfuse
