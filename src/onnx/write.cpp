// Graph -> ONNX file. Protobuf puts a length before every message, so everything but the weights is encoded first; then
// the weights stream from where they are (the mapped source file, usually) into the new one.
#include "onnx/write.hpp"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "onnx/graph_writer.hpp"
#include "onnx/metadata.hpp"
#include "onnx/tensor_proto.hpp"
#include "onnx/value_info.hpp"

namespace opfuse {
namespace {

using onnx::Bytes;
using onnx::Encoder;

constexpr size_t kExternalAlignment = 4096;  // pages: readers map the file
constexpr size_t kSmallTensor = 1024;        // stays in the model even when weights are external: shapes, scales

/// Pieces of a message, some of them not owned.
struct Pieces {
  std::vector<std::pair<std::string, Bytes>> list;  ///< owned bytes, then referenced bytes
  size_t size = 0;

  void add(std::string owned, Bytes referenced = {}) {
    size += owned.size() + referenced.size();
    list.emplace_back(std::move(owned), referenced);
  }
};

/// A tensor's bytes as the file has them: those in memory, but for types of 4 and 2 bits.
struct Stored {
  explicit Stored(const Tensor& tensor)
      : packed(onnx::is_packed(tensor.dtype()) ? onnx::packed(tensor) : ""),
        bytes(onnx::is_packed(tensor.dtype()) ? Bytes(packed)
                                              : Bytes(static_cast<const char*>(tensor.data()), tensor.bytes())) {}
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  std::string packed;
  Bytes bytes;
};

size_t varint_size(size_t value) {
  size_t n = 1;
  while (value >>= 7) ++n;
  return n;
}

/// An initializer as field 5 of GraphProto, data inside.
void add_inline(Pieces& graph, const std::string& name, const Tensor& tensor) {
  Encoder head;
  head.integers(1, tensor.sizes());
  head.integer(2, onnx::onnx_type_of(tensor.dtype()));
  head.bytes(8, name);
  const Stored stored(tensor);
  const size_t bytes = stored.bytes.size();
  Encoder field;
  field.length(5, head.text().size() + 1 + varint_size(bytes) + bytes);
  field.raw(head.text());
  field.length(9, bytes);
  if (onnx::is_packed(tensor.dtype()))
    graph.add(field.text() + stored.packed);
  else
    graph.add(field.text(), stored.bytes);
}

struct Place {
  std::string location;
  size_t offset, length;
};

void add_external(Pieces& graph, const std::string& name, const Tensor& tensor, const Place& place) {
  Encoder proto;
  proto.integers(1, tensor.sizes());
  proto.integer(2, onnx::onnx_type_of(tensor.dtype()));
  proto.bytes(8, name);
  const auto entry = [&](const char* key, const std::string& value) {
    Encoder pair;
    pair.bytes(1, key);
    pair.bytes(2, value);
    proto.message(13, pair);
  };
  entry("location", place.location);
  entry("offset", std::to_string(place.offset));
  entry("length", std::to_string(place.length));
  proto.integer(14, 1);
  Encoder field;
  field.message(5, proto);
  graph.add(field.text());
}

std::string value_info(const Graph& graph, std::string_view key, const Value* value, const std::string& name) {
  if (const std::string* kept = onnx::find_metadata(graph, std::string(key) + name)) {
    const size_t space = kept->rfind(' ');
    if (space != std::string::npos && kept->substr(0, space) == value->type.text())
      return onnx::from_hex(std::string_view(*kept).substr(space + 1));
  }
  return onnx::encode_value_info(name, value->type);
}

int64_t ir_version(const Graph& graph, int64_t opset) {
  const int64_t needed = opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : opset >= 12 ? 7 : 4;
  return std::max(needed, onnx::metadata_number(graph, onnx::kIrVersion, 8));
}

int fused_groups(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node* node) { return node->op == fused_op(); }));
}

/// metadata_props of a model with functions; what a file that was read says is written anew.
constexpr std::string_view kGroups = "opfuse.groups", kVersion = "opfuse.version";

void add_facts(const Graph& graph, Encoder& model) {
  const auto entry = [&](std::string_view key, const std::string& value) {
    Encoder pair;
    pair.bytes(1, key);
    pair.bytes(2, value);
    model.message(14, pair);
  };
  entry(kGroups, std::to_string(fused_groups(graph)));
  entry(kVersion, OPFUSE_VERSION);
}

std::string model_fields(const Graph& graph, const onnx::GraphWriter& writer) {
  Encoder model;
  const int64_t version = ir_version(graph, writer.opsets.at(""));
  // Functions are known since IR 8, metadata of nodes since IR 10.
  model.integer(1, writer.functions.text().empty() ? version : std::max<int64_t>(version, 10));
  const std::string* kept = onnx::find_metadata(graph, onnx::kModelFields);
  if (kept) model.raw(onnx::from_hex(*kept));
  const bool functions = !writer.functions.text().empty();
  if (functions || !kept) {  // of fields given twice the last one counts
    model.bytes(2, "opfuse");
    model.bytes(3, OPFUSE_VERSION);
  }
  for (const auto& [domain, version] : writer.opsets) {
    Encoder opset;
    opset.bytes(1, domain);
    opset.integer(2, version);
    model.message(8, opset);
  }
  if (const std::string* functions = onnx::find_metadata(graph, onnx::kFunctions))
    model.raw(onnx::from_hex(*functions));
  model.raw(writer.functions.text());
  for (const auto& [key, value] : graph.metadata) {
    const bool escaped = key.starts_with(onnx::kUserKey);
    if ((key.starts_with("onnx:") && !escaped) || key == kGroups || key == kVersion) continue;
    Encoder entry;
    entry.bytes(1, escaped ? Bytes(key).substr(onnx::kUserKey.size()) : Bytes(key));
    entry.bytes(2, value);
    model.message(14, entry);
  }
  if (functions) add_facts(graph, model);
  return model.text();
}

/// GraphProto without initializers.
std::string graph_fields(const Graph& graph, const onnx::GraphWriter& writer) {
  Encoder out;
  out.raw(writer.nodes().text());
  out.bytes(2, graph.name.empty() ? "graph" : graph.name);
  for (const Value* value : graph.inputs())
    out.bytes(11, value_info(graph, onnx::kInputInfo, value, writer.name_of(value)));
  for (const Value* value : graph.outputs())
    out.bytes(12, value_info(graph, onnx::kOutputInfo, value, writer.name_of(value)));
  out.raw(writer.value_types.text());
  if (const std::string* kept = onnx::find_metadata(graph, onnx::kGraphFields)) out.raw(onnx::from_hex(*kept));
  return out.text();
}

Pieces inline_model(const Graph& graph, const onnx::GraphWriter& writer) {
  Pieces content;
  content.add(graph_fields(graph, writer));
  for (const auto& [name, tensor] : writer.initializers) add_inline(content, name, tensor);
  return content;
}

/// Weights into `path`.data; the rest stays in the returned message.
Pieces external_model(const Graph& graph, const onnx::GraphWriter& writer, const std::string& path) {
  const std::string data_path = path + ".data", location = std::filesystem::path(data_path).filename().string();
  Pieces content;
  content.add(graph_fields(graph, writer));
  AtomicFile data(data_path);
  for (const auto& [name, tensor] : writer.initializers) {
    if (tensor.bytes() <= kSmallTensor) {
      add_inline(content, name, tensor);
      continue;
    }
    data.write(std::string((kExternalAlignment - data.written() % kExternalAlignment) % kExternalAlignment, '\0'));
    const Stored stored(tensor);
    add_external(content, name, tensor, {location, data.written(), stored.bytes.size()});
    data.write(stored.bytes);
  }
  data.commit();
  return content;
}

std::string prefix_of(const Graph& graph, const onnx::GraphWriter& writer, const Pieces& content) {
  Encoder model;
  model.raw(model_fields(graph, writer));
  model.length(7, content.size);
  return model.text();
}

}  // namespace

void write_onnx(const Graph& graph, const std::string& path, const WriteOptions& options) {
  onnx::GraphWriter writer(graph, options);
  writer.run();
  Pieces content = inline_model(graph, writer);
  if (content.size > options.max_file_bytes) content = external_model(graph, writer, path);
  AtomicFile file(path);
  file.write(prefix_of(graph, writer, content));
  for (const auto& [owned, referenced] : content.list) {
    file.write(owned);
    file.write(referenced);
  }
  file.commit();
}

std::string write_onnx_bytes(const Graph& graph, const WriteOptions& options) {
  onnx::GraphWriter writer(graph, options);
  writer.run();
  const Pieces content = inline_model(graph, writer);
  std::string bytes = prefix_of(graph, writer, content);
  bytes.reserve(bytes.size() + content.size);
  for (const auto& [owned, referenced] : content.list) bytes.append(owned).append(referenced);
  return bytes;
}

}  // namespace opfuse
