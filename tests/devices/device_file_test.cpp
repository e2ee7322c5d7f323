// Sections of devices, and launches that name them, altered field by field with checksums that hold: such a file is
// refused with an error, or it loads and runs. A crash ends the test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/file_bytes.hpp"
#include "base/temporary_folder.hpp"
#include "driver/compilation.hpp"
#include "driver/placement.hpp"
#include "opfuse/runtime.hpp"
#include "ops/registry.hpp"
#include "testing/json_mutations.hpp"
#include "testing/opf_file.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr const char* kNet = R"(graph (%x: f32[batch,12,33]) {
  %w = const rand<1> : f32[33,18]
  %m = matmul(%x, %w) @"first"
  %g = gelu(%m) @"act"
  %y = softmax(%g) @"soft"
  return %y })";

std::string text_of(const std::string& path) { return file_bytes(path).value_or(""); }

/// Loads and runs; false where it is refused.
bool runs(const std::string& bytes, const std::string& path) {
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    const Executable executable = Executable::load(path);
    Context context = executable.create_context({.threads = 1});
    std::vector<float> x(2 * 12 * 33, 0.5f);
    context.bind("x", {DType::f32, x.data(), {2, 12, 33}});
    context.run();
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.diagnostic().name, "internal") << error.what();
    return false;
  }
}

struct DeviceSection {
  json header;
  std::string blobs;
  explicit DeviceSection(const std::string& bytes) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    header = json::parse(bytes.substr(8, size));
    blobs = bytes.substr(8 + size);
  }
  std::string with(const json& other) const {
    const std::string text = other.dump();
    const uint64_t size = text.size();
    return std::string(reinterpret_cast<const char*>(&size), 8) + text + blobs;
  }
};

class DeviceFile : public testing::Test {
 protected:
  void SetUp() override {
    setenv("OPFUSE_PLUGINS", OPFUSE_PLUGIN_FOLDER, 1);
    CompilationOptions options;
    options.accelerators = {"example-npu", "cuda:emulated"};
    options.place = {{"*", "example-npu"}, {"*", "cuda:emulated"}};
    Executable::from_artifact(compile_graph(parse_graph(kNet, ops()), host_target(), options).artifact).save(path_);
  }
  TemporaryFolder folder_;
  const std::string path_ = folder_.path("m.opf"), bad_ = folder_.path("bad.opf");
};

TEST_F(DeviceFile, launches_of_devices_are_refused_where_anything_of_them_is_altered) {
  const OpfFile file(text_of(path_));
  ASSERT_TRUE(runs(file.bytes(), bad_)) << "put together again it is the same file";
  const json program = file.json_of("program");
  int altered = 0;
  for (size_t l = 0; l < program.at("launches").size(); ++l) {
    const json::json_pointer place = json::json_pointer("/launches") / l / "placed";
    if (!program.contains(place)) continue;
    std::vector<json::json_pointer> values;
    collect(program.at(place), place, values);
    for (const json::json_pointer& at : values)
      for (const json& other : others(program.at(at))) {
        json changed = program;
        changed[at] = other;
        if (changed == program) continue;
        OpfFile bad = file;
        bad.set("program", changed.dump());
        EXPECT_FALSE(runs(bad.bytes(), bad_)) << at.to_string() << " = " << other;
        ++altered;
      }
  }
  EXPECT_GT(altered, 200);
}

TEST_F(DeviceFile, sections_of_devices_are_refused_where_what_runs_is_altered) {
  const OpfFile file(text_of(path_));
  for (const char* id : {"device:example-npu", "device:cuda:emulated"}) {
    const DeviceSection section(file.sections.at(file.index_of(id)));
    std::vector<json::json_pointer> values;
    collect(section.header, json::json_pointer(), values);
    for (const json::json_pointer& at : values) {
      const std::vector<json> all = others(section.header.at(at));
      for (size_t i = 0; i < all.size(); i += 3) {
        json changed = section.header;
        changed[at] = all[i];
        if (changed == section.header) continue;
        OpfFile bad = file;
        bad.set(id, section.with(changed));
        EXPECT_FALSE(runs(bad.bytes(), bad_)) << id << at.to_string() << " = " << all[i];
      }
    }
    for (const size_t size : {size_t{0}, size_t{7}, size_t{9}, section.with(section.header).size() - 1}) {
      OpfFile bad = file;
      bad.set(id, file.sections.at(file.index_of(id)).substr(0, size));
      EXPECT_FALSE(runs(bad.bytes(), bad_)) << id << " of " << size << " bytes";
    }
  }
}

}  // namespace
}  // namespace opfuse
