// Constants that a file has as their sources are, once it is loaded, those that were compiled.
#include "runtime/prepared_constants.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file_bytes.hpp"
#include "opfuse/runtime.hpp"
#include "tensor/paired_codes.hpp"
#include "testing/opf_file.hpp"

namespace opfuse {
namespace {

constexpr size_t kPlain = 192;

Tensor filters(int64_t outputs, int64_t inputs) {
  Tensor codes(DType::i8, {outputs, inputs, 3, 3});
  for (int64_t i = 0; i < codes.elements(); ++i) codes.set_integer(i, i * 37 % 256 - 128);
  return codes;
}

Tensor weights(int64_t outputs, int64_t inputs) {
  Tensor codes(DType::i8, {outputs, inputs, 1, 1});
  for (int64_t i = 0; i < codes.elements(); ++i) codes.set_integer(i, i * 37 % 256 - 128);
  return codes;
}

struct Constants {
  std::vector<uint8_t> bytes;
  std::vector<PreparedConstant> prepared;
  size_t stored = 0;

  void add_plain(size_t count) {
    for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(bytes.size() * 7 + 3));
    stored += count;
  }
  void add(const Tensor& source, const std::string& layout) {
    const Layout how = Layout::parse(layout);
    const Tensor made = pack(source, how);
    prepared.push_back({bytes.size(), made.bytes(), source, how});
    const auto* from = static_cast<const uint8_t*>(made.data());
    bytes.insert(bytes.end(), from, from + made.bytes());
    bytes.resize((bytes.size() + 63) / 64 * 64);
    stored += (source.bytes() + 63) / 64 * 64;
  }
};

Artifact artifact_of(const Constants& constants) {
  static const std::vector<uint8_t> code = {0xc3};
  Artifact a;
  a.target = "cpu:baseline";
  a.cpu_features = {"sse2"};
  a.model_name = "tiny";
  a.inputs = {{"x", parse_type("f32[4]"), 0}};
  a.outputs = {{"y", parse_type("f32[4]"), 1}};
  const auto size = static_cast<int64_t>(constants.bytes.size());
  a.buffers = {
      {Storage::input, 0, 0, 16, "x"}, {Storage::output, 0, 0, 16, "y"}, {Storage::constant, -1, 0, size, "w"}};
  ArtifactLaunch launch;
  launch.name = launch.symbol = "map_0";
  launch.buffers = {0, 1, 2};
  a.launches = {launch};
  a.code = code;
  a.constants = constants.bytes;
  a.prepared = constants.prepared;
  return a;
}

class PreparedConstants : public testing::Test {
 protected:
  std::string path =
      (std::filesystem::temp_directory_path() / ("opfuse_prepared_" + std::to_string(getpid()))).string();
  void TearDown() override { std::remove(path.c_str()); }

  OpfFile file() const { return OpfFile(file_bytes(path).value_or("")); }
  void write(const OpfFile& file) const { std::ofstream(path, std::ios::binary) << file.bytes(); }
  void expect_same(const Constants& constants) const {
    const Artifact loaded = load_artifact(path);
    ASSERT_EQ(loaded.constants.size(), constants.bytes.size());
    EXPECT_EQ(std::memcmp(loaded.constants.data(), constants.bytes.data(), constants.bytes.size()), 0);
    EXPECT_EQ(stored_constant_bytes(loaded), constants.stored);
  }
};

TEST_F(PreparedConstants, AreMadeWhereverTheyLie) {
  for (const bool first : {false, true})
    for (const bool last : {false, true}) {
      Constants constants;
      if (!first) constants.add_plain(kPlain);
      constants.add(filters(16, 8), "f4x4:0231/0:16,1:2");
      constants.add(filters(3, 5), "f2x2:0231/0:8,1:2");  // neither fills its blocks
      constants.add_plain(kPlain);
      constants.add(filters(8, 4), "f4x2:0231/0:8,1:2");
      constants.add(weights(20, 24), "p4:0123/1:2,0:16,1:4");
      if (!last) constants.add_plain(kPlain);
      save_artifact(artifact_of(constants), path);
      EXPECT_EQ(file().sections.at(file().index_of("constants")).size(), constants.stored);
      expect_same(constants);
      save_artifact(load_artifact(path), path);  // what was loaded is written as it was
      expect_same(constants);
    }
}

TEST_F(PreparedConstants, AreNotWorthItWhereTheFileIsHardlySmaller) {
  Constants constants;
  constants.add(filters(16, 8), "f4x4:0231/0:16,1:2");
  std::vector<PreparedConstant> some = constants.prepared, none = constants.prepared;
  keep_worthwhile(some, constants.bytes.size());
  EXPECT_EQ(some.size(), 1u);
  keep_worthwhile(none, 100 * constants.bytes.size());
  EXPECT_TRUE(none.empty());
}

TEST_F(PreparedConstants, PairsAreRefusedWhereTheirSourceIsAnother) {
  Constants constants;
  constants.add(weights(20, 24), "p4:0123/1:2,0:16,1:4");
  save_artifact(artifact_of(constants), path);
  const OpfFile right = file();
  const size_t bytes = constants.prepared[0].bytes;
  const auto refused = [&](const std::string& type, const std::string& layout, size_t size) {
    OpfFile altered = right;
    altered.set("prepared", nlohmann::json::array({nlohmann::json{0, size, type, layout}}).dump());
    write(altered);
    try {
      load_artifact(path);
    } catch (const Error& e) {
      return std::string(e.what()).find("not what its source gives") != std::string::npos;
    }
    return false;
  };
  const std::string type = "i8[20,24,1,1]";
  EXPECT_TRUE(refused("i8[20,12,2,1]", "p4:0123/1:2,0:16,1:4", bytes));
  EXPECT_TRUE(refused("i8[24,20,1,1]", "p4:0123/1:2,0:16,1:4", bytes));
  EXPECT_TRUE(refused(type, "p4:0123/1:2,0:16", bytes));
  EXPECT_TRUE(refused(type, "p4:0123/1:2,1:16,1:4", bytes));
  EXPECT_TRUE(refused(type, "p4:0123/1:4,0:16,1:4", bytes));
  EXPECT_TRUE(refused(type, "p99:0123/1:2,0:16,1:4", bytes));
  EXPECT_TRUE(refused("i8[480]", "p4:0", bytes));
}

TEST_F(PreparedConstants, PairsAreRefusedWhereTheyHaveNoRoom) {
  Constants constants;
  constants.add(Tensor(DType::i8, {16, 24, 1, 1}), "p1:0123/1:2,0:16,1:4");  // no pair of zeros is too large
  save_artifact(artifact_of(constants), path);
  expect_same(constants);
  Artifact forged = artifact_of(constants);
  Tensor& source = forged.prepared[0].source;
  source = source.clone();
  std::memset(source.mutable_data(), 127, source.bytes());
  try {
    prepare_constants(forged, stored_constants(forged), nullptr);
    ADD_FAILURE() << "made";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("not what its source gives"), std::string::npos) << e.what();
  }
}

TEST_F(PreparedConstants, OthersAreMappedAsTheyAre) {
  Constants constants;
  constants.add_plain(kPlain);
  save_artifact(artifact_of(constants), path);
  const OpfFile written = file();
  for (const auto& section : written.table.at("sections")) EXPECT_NE(section.at("id"), "prepared");
  expect_same(constants);
}

TEST_F(PreparedConstants, AreRefusedWhereTheirSourceIsAnother) {
  Constants constants;
  constants.add_plain(kPlain);
  constants.add(filters(16, 8), "f4x4:0231/0:16,1:2");
  save_artifact(artifact_of(constants), path);
  const OpfFile right = file();
  const auto refuses = [&](const nlohmann::json& entry, const std::string& why) {
    OpfFile altered = right;
    altered.set("prepared", nlohmann::json::array({entry}).dump());
    write(altered);
    try {
      load_artifact(path);
      ADD_FAILURE() << entry.dump() << " was loaded";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << entry.dump() << ": " << e.what();
    }
  };
  const std::string type = "i8[16,8,3,3]", layout = "f4x4:0231/0:16,1:2", other = "not what its source gives";
  const size_t bytes = constants.prepared[0].bytes;
  refuses({kPlain + 1, bytes, type, layout}, other);
  refuses({1 << 20, bytes, type, layout}, other);
  refuses({kPlain, bytes + 64, type, layout}, other);
  refuses({kPlain, bytes, "f32[16,8,3,3]", layout}, other);
  refuses({kPlain, bytes, "i8[n,8,3,3]", layout}, other);
  refuses({kPlain, bytes, "i8[16,8,5,5]", layout}, other);
  refuses({kPlain, bytes, "i8[1024,8,3,3]", layout}, other);  // more than the file has
  refuses({kPlain, bytes, "i8[4611686018427387904,8,3,3]", layout}, other);
  refuses({kPlain, bytes, type, "f4x4:0231/0:16"}, other);  // no codes
  refuses({kPlain, bytes, type, "f4x4:0231/0:1073741824,1:2"}, other);
  refuses({kPlain, bytes, type, "0231/0:16,1:2"}, other);
  refuses({64, bytes, type, layout}, "altered");  // possible, but another contract
  OpfFile none = right;
  none.set("prepared", "[]");
  write(none);
  EXPECT_THROW(load_artifact(path), Error);
}

}  // namespace
}  // namespace opfuse
