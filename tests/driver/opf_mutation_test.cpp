// Every field of an .opf altered, one after the other, with a valid checksum: it is refused, or it runs. A crash ends
// the test. What the machine code relies on is refused always; text that only people read may change.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "ir/graph.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

struct File {
  json header;
  std::string blobs;  ///< from the first page after the header

  explicit File(const std::string& bytes) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + 8, 8);
    header = json::parse(bytes.substr(24, size));
    blobs = bytes.substr((24 + size + 4095) / 4096 * 4096);
  }
  std::string bytes(const json& with) const {
    const std::string text = with.dump();
    const uint64_t size = text.size(), hash = hash_text(text).low;
    std::string file("OPFUSE\0\1", 8);
    file.append(reinterpret_cast<const char*>(&size), 8);
    file.append(reinterpret_cast<const char*>(&hash), 8);
    file += text;
    file.resize((file.size() + 4095) / 4096 * 4096);
    return file + blobs;
  }
};

/// Other values of the kind, and of other kinds.
std::vector<json> others(const json& value) {
  std::vector<json> list;
  if (value.is_number_integer()) {
    const int64_t n = value.get<int64_t>();
    list = {n + 1, n - 1, n * 2 + 64, -1, 0, int64_t{1} << 31, int64_t{1} << 62, INT64_MIN, UINT64_MAX, 0.5, "1"};
  } else if (value.is_string()) {
    const std::string text = value;
    list = {text + "1", "", "4096", "-64", "9223372036854775807", "nobody*64", "1//0", std::string(5000, '('), 7};
    if (!text.empty()) list.push_back(text.substr(1));
  } else if (value.is_array()) {
    json shorter = value, longer = value;
    if (!value.empty()) {
      shorter.erase(shorter.size() - 1), longer.push_back(value[0]);
      json turned = value;
      std::reverse(turned.begin(), turned.end());
      list = {shorter, longer, turned};
    }
    list.push_back(json::array());
    list.push_back(json::array({7}));
  } else if (value.is_object()) {
    for (const auto& [key, part] : value.items()) {
      json without = value;
      without.erase(key);
      list.push_back(without);
    }
  }
  list.push_back(nullptr);
  return list;
}

/// Pointers to all values of the header, itself included.
void collect(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& into) {
  into.push_back(at);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, into);
  if (value.is_object())
    for (const auto& [key, part] : value.items()) collect(part, at / key, into);
}

/// Text for people, by its place in the header: altered, the file may still run.
bool is_for_people(const std::string& place) {
  for (const char* word : {"/name", "/pattern", "/sources", "/schedule", "/flops", "/read", "/written", "/layouts",
                           "/notes", "/plan", "/model", "/producer", "/adds", "spill"})
    if (place.find(word) != std::string::npos) return true;
  if (place.starts_with("/buffers/") || place.find("/buffers/") != std::string::npos) return place.ends_with("/4");
  return place.ends_with("/device/5");  // bytes that registers spill
}

class OpfMutation : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("opfuse_mutation_" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path() const { return (folder / "m.opf").string(); }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  /// Loads and runs it with arrays of the shapes it asks for; the name of the error, "ran" without one.
  std::string outcome(int64_t n) const {
    try {
      const Executable exe = Executable::load(path());
      Context context = exe.create_context({.threads = 2});
      std::vector<float> x(static_cast<size_t>(n) * 8 * 9 * 9, 0.25F);
      context.bind("x", ArrayView{DType::f32, x.data(), {n, 8, 9, 9}});
      context.run();
      (void)context.launches();
      return "ran";
    } catch (const Error& e) {
      return e.diagnostic().name;
    }
  }

  void alter_everything(const Model& model, const CompileOptions& options) {
    compile(model, Target::host(), options).save(path());
    std::ifstream in(path(), std::ios::binary);
    const File file(std::string{std::istreambuf_iterator<char>(in), {}});
    write(file.bytes(file.header));
    ASSERT_EQ(outcome(2), "ran");
    std::vector<json::json_pointer> places;
    collect(file.header, json::json_pointer(), places);
    std::map<std::string, int> outcomes;
    for (const json::json_pointer& place : places)
      for (const json& value : others(file.header.at(place))) {
        if (value == file.header.at(place)) continue;
        json altered = file.header;
        altered.at(place) = value;
        write(file.bytes(altered));
        const std::string result = outcome(2);
        ++outcomes[result];
        if (is_for_people(place.to_string())) continue;
        EXPECT_NE(result, "ran") << place.to_string() << " = " << value.dump().substr(0, 60);
      }
    EXPECT_GT(outcomes["bad_file"], 300);
    EXPECT_GT(outcomes["ran"], 10);
    EXPECT_EQ(outcomes["internal"], 0);
  }
};

const char* const kNet = R"(graph (%x: f32[n,8,9,9]) {
 %w = const rand<1> : f32[8,8,3,3]
 %c = conv(%x, %w) {pads = [1,1,1,1]}
 %r = relu(%c)
 %p = max_pool(%r) {kernel_shape = [3,3], strides = [2,2]}
 %s = softmax(%p)
 %t = transpose(%s) {perm = [0,2,3,1]}
 return %t
})";

TEST_F(OpfMutation, EveryFieldOfAnOpenBatchWithAVariant) {
  CompileOptions options;
  options.cache = false;
  options.specialize = {{{"n", 4}}};
  alter_everything(Model::from_graph(parse_graph(kNet, ops())), options);
}

TEST_F(OpfMutation, EveryFieldOfFixedSizes) {
  CompileOptions options;
  options.cache = false;
  options.dims = {{"n", 2}};
  options.fused = false;
  alter_everything(Model::from_graph(parse_graph(kNet, ops())), options);
}

/// Bytes of the blobs, with their own checksums mended as well: weights and code are not the contract's.
TEST_F(OpfMutation, TheContractLiesWithTheCode) {
  CompileOptions options;
  options.cache = false;
  compile(Model::from_graph(parse_graph(kNet, ops())), Target::host(), options).save(path());
  std::ifstream in(path(), std::ios::binary);
  File file(std::string{std::istreambuf_iterator<char>(in), {}});
  json shorter = file.header;
  const auto bytes = file.header.at("code").at("bytes").get<uint64_t>();
  for (const uint64_t left : {uint64_t{0}, uint64_t{16}, bytes - 1}) {
    shorter["code"]["bytes"] = left;
    shorter["code"]["xxh3"] = hash_text(file.blobs.substr(0, left)).hex();
    write(file.bytes(shorter));
    EXPECT_EQ(outcome(2), "bad_file") << left;
  }
}

}  // namespace
}  // namespace opfuse
