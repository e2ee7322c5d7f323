// Every reader on damaged files, each batch in a process of its own, and on the files of corpus/NAME/, which once made
// it fail. `./dev fuzz --reader NAME` looks for more.
#include "readers/readers.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_bytes.hpp"
#include "onnx/mutate.hpp"
#include "opfuse/error.hpp"
#include "testing/own_process.hpp"

namespace opfuse::readers {

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

namespace {

/// "" when the bytes are read or refused.
std::string problem_of(const Reader& reader, const std::string& bytes) {
  try {
    reader.read(bytes);
  } catch (const Error& error) {
    return error.diagnostic().name == "internal" ? error.diagnostic().text() : "";
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

class Readers : public testing::TestWithParam<Reader> {};

TEST_P(Readers, TakeTheirSeeds) {
  const std::vector<std::string> seeds = seeds_of(GetParam().name);
  EXPECT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) EXPECT_NO_THROW(GetParam().read(seed));
}

TEST_P(Readers, ReadOrRefuseDamagedFilesNeverWorse) {
  constexpr int kFiles = 1500, kSeconds = 100;
  const std::vector<std::string> seeds = seeds_of(GetParam().name);
  const test::Ended ended = test::in_own_process(
      [&]() -> std::string {
        test::Generator random(20261123);
        for (int i = 0; i < kFiles; ++i) {
          const std::string bytes = test::mutated(seeds[random.below(seeds.size())], random);
          const std::string problem = problem_of(GetParam(), bytes);
          if (!problem.empty()) return fmt::format("file {}: {}", i, problem);
        }
        return {};
      },
      kSeconds);
  EXPECT_TRUE(ended.complete()) << "signal " << ended.signal;
  EXPECT_EQ(ended.text, "");
}

TEST_P(Readers, ReadOrRefuseWhatOnceFailed) {
  const std::filesystem::path folder = std::string(OPFUSE_TEST_DIR) + "/readers/corpus/" + GetParam().name;
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string bytes = file_bytes(entry.path()).value_or("");
    const test::Ended ended = test::in_own_process([&] { return problem_of(GetParam(), bytes); }, 20);
    EXPECT_TRUE(ended.complete()) << entry.path() << ": signal " << ended.signal;
    EXPECT_EQ(ended.text, "") << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Readers, testing::ValuesIn(readers()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace opfuse::readers
