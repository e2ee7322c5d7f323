// Finding the cases on disk, and sorting out those that use operators opfuse does not declare.
#include "conformance/cases.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/mapped_file.hpp"
#include "onnx/flatten_functions.hpp"
#include "onnx/import_table.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/wire.hpp"

namespace opfuse::conformance {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDebianFolder = "/usr/share/libonnx-testdata/data";
constexpr const char* kGroups[] = {"node", "pytorch-converted", "pytorch-operator", "simple", "light"};

std::vector<Tensor> numbered(const std::string& folder, const char* stem) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = folder + "/" + stem + "_" + std::to_string(i) + ".pb";
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_tensor_pb(path).second);
  }
}

Case with_tolerance(Case c) {
  std::ifstream file(c.folder + "/tolerance");
  double rtol = 0, atol = 0;
  if (file >> rtol >> atol) c.rtol = rtol, c.atol = atol;
  return c;
}

}  // namespace

std::string data_root() {
  const char* given = std::getenv("OPFUSE_ONNX_TESTDATA");
  const std::string root = given ? given : kDebianFolder;
  return fs::is_directory(root) ? root : std::string();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const std::string root = data_root();
  for (const char* group : kGroups) {
    const std::string folder = root + "/" + group;
    if (root.empty() || !fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder))
      if (fs::exists(entry.path() / "model.onnx"))
        cases.push_back(
            with_tolerance({std::string(group) + "/" + entry.path().filename().string(), entry.path().string()}));
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

std::vector<std::string> undeclared_operators(const Case& c) {
  const auto file = MappedFile::open(c.folder + "/model.onnx");
  const onnx::ModelProto model = onnx::parse_model(file->bytes());
  std::set<std::string> names;
  Limits limits;
  limits.inlined_nodes = INT64_MAX;
  for (const onnx::FlatNode& node : onnx::flatten_functions(model, limits).nodes) {
    if (!onnx::is_default_domain(node.proto.domain))
      names.insert(std::string(node.proto.domain) + "." + std::string(node.proto.op_type));
    else if (!onnx::is_declared(node.proto.op_type))
      names.insert(std::string(node.proto.op_type));
  }
  return {names.begin(), names.end()};
}

int64_t opset_of(const Case& c) {
  const auto file = MappedFile::open(c.folder + "/model.onnx");
  return onnx::opset_version(onnx::parse_model(file->bytes()).opsets, "");
}

std::vector<std::string> input_names(const Case& c) {
  const auto file = MappedFile::open(c.folder + "/model.onnx");
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : onnx::parse_model(file->bytes()).graph.inputs) names.emplace_back(input.name);
  return names;
}

std::vector<DataSet> data_sets(const Case& c) {
  std::vector<DataSet> sets;
  for (const auto& entry : fs::directory_iterator(c.folder))
    if (entry.is_directory()) sets.push_back({entry.path().string(), {}, {}});
  std::sort(sets.begin(), sets.end(), [](const DataSet& a, const DataSet& b) { return a.name < b.name; });
  for (DataSet& set : sets) {
    set.inputs = numbered(set.name, "input");
    set.outputs = numbered(set.name, "output");
  }
  return sets;
}

std::set<std::string> listed_refusals() {
  std::set<std::string> names;
  std::ifstream file(OPFUSE_TEST_DIR "/conformance/refused.txt");
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') names.insert(line);
  return names;
}

}  // namespace opfuse::conformance
