#include "compiled_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperator = "EPContext";

std::string attribute_text(const Node* node, const char* name) {
  const OpAttr* attribute = nullptr;
  if (Status* status = tables.api(entry::Node_GetAttributeByName, node, name, &attribute)) {
    tables.api(entry::ReleaseStatus, status);
    return "";
  }
  if (!attribute) return "";
  size_t bytes = 0;
  if (Status* status = tables.api(entry::ReadOpAttr, attribute, int(string), nullptr, size_t{0}, &bytes))
    tables.api(entry::ReleaseStatus, status);
  std::string text(bytes, '\0');
  if (bytes > 0) check(tables.api(entry::ReadOpAttr, attribute, int(string), text.data(), bytes, &bytes));
  return text;
}

int64_t attribute_number(const Node* node, const char* name, int64_t otherwise) {
  const OpAttr* attribute = nullptr;
  Status* status = tables.api(entry::Node_GetAttributeByName, node, name, &attribute);
  int64_t value = otherwise;
  size_t bytes = 0;
  if (!status && attribute)
    status = tables.api(entry::ReadOpAttr, attribute, int(integer), &value, sizeof value, &bytes);
  if (status) tables.api(entry::ReleaseStatus, status);
  return value;
}

fs::path folder_of_model(const Graph* graph) {
  const char* path = get<const char*>(entry::Graph_GetModelPath, graph);
  return path ? fs::path(path).parent_path() : fs::path();
}

/// A file of this process alone, gone when the object is; what was mapped of it stays.
struct TemporaryFile {
  std::string path = (fs::temp_directory_path() / "opfuse-XXXXXX").string();
  TemporaryFile() {
    const int file = mkstemp(path.data());
    if (file < 0) throw Failure("no temporary file could be made in " + fs::temp_directory_path().string());
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

struct AttributeHolder {
  std::vector<OpAttr*> all;
  AttributeHolder() = default;
  AttributeHolder(const AttributeHolder&) = delete;
  AttributeHolder& operator=(const AttributeHolder&) = delete;
  ~AttributeHolder() {
    for (OpAttr* attribute : all) tables.api(entry::ReleaseOpAttr, attribute);
  }
  void text(const char* name, const std::string& value) {
    all.push_back(get<OpAttr*>(entry::CreateOpAttr, name, static_cast<const void*>(value.data()), int(value.size()),
                               int(string)));
  }
  void number(const char* name, int64_t value) {
    all.push_back(get<OpAttr*>(entry::CreateOpAttr, name, static_cast<const void*>(&value), 1, int(integer)));
  }
};

}  // namespace

bool is_context_node(const Node* node) {
  return text_of(entry::Node_GetOperatorType, node) == kOperator && attribute_text(node, "source") == kProviderName;
}

Executable load_context(const Graph* graph, const Node* node) {
  const std::string held = attribute_text(node, "ep_cache_context");
  if (attribute_number(node, "embed_mode", 1) == 0) {
    const fs::path path = held;
    if (path.is_absolute() || held.find("..") != std::string::npos)
      throw Failure("\"" + held + "\" lies outside the model's folder");
    return Executable::load((folder_of_model(graph) / path).string());
  }
  const TemporaryFile file;
  std::ofstream(file.path, std::ios::binary) << held;
  return Executable::load(file.path);
}

Node* make_context_node(const Graph* graph, const std::string& name, const Executable& executable,
                        const Options& options) {
  AttributeHolder attributes;
  attributes.number("main_context", 1);
  attributes.number("embed_mode", options.embed_context ? 1 : 0);
  attributes.text("source", kProviderName);
  attributes.text("ep_sdk_version", version());
  attributes.text("partition_name", name);
  if (options.embed_context) {
    const TemporaryFile file;
    executable.save(file.path);
    std::ifstream in(file.path, std::ios::binary);
    attributes.text("ep_cache_context", std::string(std::istreambuf_iterator<char>(in), {}));
  } else {
    const char* model = get<const char*>(entry::Graph_GetModelPath, graph);
    fs::path base = !options.context_path.empty() ? fs::path(options.context_path) : fs::path(model ? model : "model");
    const std::string file = base.stem().string() + "_" + name + ".opf";
    executable.save((base.parent_path() / file).string());
    attributes.text("ep_cache_context", file);
  }
  std::vector<const char*> inputs, outputs;
  for (const TensorInfo& info : executable.inputs()) inputs.push_back(info.name.c_str());
  for (const TensorInfo& info : executable.outputs()) outputs.push_back(info.name.c_str());
  Node* node = nullptr;
  check(tables.editor(entry::CreateNode, kOperator, "com.microsoft", name.c_str(), inputs.data(), inputs.size(),
                      outputs.data(), outputs.size(), attributes.all.data(), attributes.all.size(), &node));
  return node;
}

}  // namespace opfuse::ort
