// Every field of an .opf altered, one after the other, with a valid checksum: it is refused, or it runs. A crash ends
// the test. What the machine code relies on is refused always; text that only people read may change.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file_bytes.hpp"
#include "ir/graph.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "runtime/artifact.hpp"
#include "testing/json_mutations.hpp"
#include "testing/opf_file.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

/// Text for people, by its place in the header: altered, the file may still run.
bool is_for_people(const std::string& place) {
  for (const char* word : {"/name", "/pattern", "/sources", "/schedule", "/flops", "/read", "/written", "/layouts",
                           "/notes", "/plan", "/model", "/producer", "/adds", "/products", "spill"})
    if (place.find(word) != std::string::npos) return true;
  if (place.ends_with("/since")) return true;
  if (place.starts_with("/buffers/") || place.find("/buffers/") != std::string::npos) return place.ends_with("/4");
  return place.ends_with("/device/5");  // bytes that registers spill
}

/// A launch is one of f32 products where it does not say more: for profile.
bool leaves_out_products(const json& given, const json& altered) {
  return given.is_object() && altered.is_object() && given.contains("products") && !altered.contains("products");
}

/// What an optional section is called, and its version: altered, it is one of a later release and passed over.
bool names_optional_section(const json& table, const json::json_pointer& place) {
  const json::json_pointer section = place.parent_pointer();
  const std::string field = place.empty() ? "" : place.back();
  return (field == "id" || field == "version") && table.contains(section) && table.at(section).is_object() &&
         table.at(section).value("required", true) == false;
}

/// A section's version made older, or that of programs with routines, which this release reads too: what a version
/// has is told by its keys, so the file means what it meant.
bool is_readable_version(const json& table, const json::json_pointer& place, const json& value) {
  if (place.empty() || place.back() != "version" || !value.is_number_integer() || value <= 0) return false;
  const json& section = table.at(place.parent_pointer());
  const bool runs = section.contains("id") && (section["id"] == "program" || section["id"] == "variants");
  return value < table.at(place) || (runs && value == 3);
}

class OpfMutation : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("opfuse_mutation_" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path() const { return (folder / "m.opf").string(); }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }

  std::string contents() const { return file_bytes(path()).value_or(""); }

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

  void alter_everything(const Model& model, const CompileOptions& options, const Target& target = Target::host()) {
    compile(model, target, options).save(path());
    const OpfFile file(contents());
    const OpfFile whole(file.bytes());  // with all sections on pages
    write(whole.bytes());
    ASSERT_EQ(outcome(2), "ran");
    std::map<std::string, int> outcomes;
    const auto alter = [&](const json& given, const std::function<std::string(const json&)>& bytes_with) {
      std::vector<json::json_pointer> places;
      collect(given, json::json_pointer(), places);
      for (const json::json_pointer& place : places)
        for (const json& value : others(given.at(place))) {
          if (value == given.at(place)) continue;
          json altered = given;
          altered.at(place) = value;
          write(bytes_with(altered));
          const std::string result = outcome(2);
          ++outcomes[result];
          if (is_for_people(place.to_string()) || names_optional_section(given, place)) continue;
          if (is_readable_version(given, place, value) || leaves_out_products(given.at(place), value)) continue;
          EXPECT_NE(result, "ran") << place.to_string() << " = " << value.dump().substr(0, 60);
        }
    };
    alter(whole.table, [&](const json& altered) { return whole.bytes_with(altered); });
    for (const char* id : {"model", "program", "variants", "prepared"}) {
      if (!whole.has(id)) continue;
      alter(whole.json_of(id), [&](const json& altered) {
        OpfFile with = whole;
        with.set(id, altered.dump());
        return with.bytes();
      });
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

const char* const kNetOfCodes = R"(graph (%x: f32[2,8,9,9]) {
 %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %t = const splat<0.05> : f32[]
 %c = const rand<1> : i8[16,8,3,3] %zw = const splat<0> : i8[] %sw = const splat<0.01> : f32[]
 %w = dequantize_linear(%c, %sw, %zw)
 %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
 %v = conv(%d, %w) {pads = [1,1,1,1]}
 %y = quantize_linear(%v, %t, %z) %r = dequantize_linear(%y, %t, %z)
 return %r
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

/// Without byte products the filters of codes are transformed, which loading does again.
TEST_F(OpfMutation, EveryFieldOfConstantsThatLoadingMakes) {
  CompileOptions options;
  options.cache = false;
  options.algorithm = {"f4"};
  alter_everything(Model::from_graph(parse_graph(kNetOfCodes, ops())), options, Target::named("cpu:avx2"));
  EXPECT_TRUE(OpfFile(contents()).has("prepared"));
}

/// Bytes of sections, with their own checksums mended as well: weights and code are not the contract's.
TEST_F(OpfMutation, TheContractLiesWithTheCode) {
  CompileOptions options;
  options.cache = false;
  compile(Model::from_graph(parse_graph(kNet, ops())), Target::host(), options).save(path());
  const OpfFile file(contents());
  const std::string code = file.sections.at(file.index_of("code"));
  for (const size_t left : {size_t{0}, size_t{16}, code.size() - 1}) {
    OpfFile shorter = file;
    shorter.set("code", code.substr(0, left));
    write(shorter.bytes());
    EXPECT_EQ(outcome(2), "bad_file") << left;
  }
}

}  // namespace
}  // namespace opfuse
