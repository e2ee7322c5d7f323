// Records as JSON texts in metadata_props: other tools show them, and a name may hold any character.
#include "onnx/call_record.hpp"

#include <nlohmann/json.hpp>

#include "onnx/metadata.hpp"

namespace opfuse::onnx {

using Json = nlohmann::json;

namespace {

constexpr uint32_t kMetadataProps = 9;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void add_entry(Encoder& out, std::string_view key, const std::string& value) {
  Encoder entry;
  entry.bytes(1, key);
  entry.bytes(2, value);
  out.message(kMetadataProps, entry);
}

std::string value_of(Bytes entry, std::string_view wanted) {
  std::string key, value;
  for_each_field(entry, [&](uint32_t tag, Bytes, Bytes bytes, int64_t) {
    if (tag == 1) key = bytes;
    if (tag == 2) value = bytes;
  });
  return key == wanted ? value : std::string();
}

}  // namespace

std::string node_entry(Bytes node_fields, std::string_view key) {
  std::string found;
  for_each_field(node_fields, [&](uint32_t tag, Bytes, Bytes bytes, int64_t) {
    if (tag == kMetadataProps && found.empty()) found = value_of(bytes, key);
  });
  return found;
}

void CallRecord::add(std::string node, std::vector<std::string> results, std::string unknown_fields) {
  nodes.push_back(std::move(node));
  values.push_back(std::move(results));
  fields.push_back(std::move(unknown_fields));
}

std::string encode_record(const CallRecord& record, const std::string& pattern) {
  Encoder out;
  add_entry(out, "opfuse.pattern", pattern);
  add_entry(out, "opfuse.origin", text_of(record.nodes));
  add_entry(out, "opfuse.values", text_of(record.values));
  std::vector<std::string> hex;
  bool any = false;
  for (const std::string& f : record.fields) hex.push_back(to_hex(f)), any |= !f.empty();
  if (any) add_entry(out, "opfuse.fields", text_of(hex));
  return out.text();
}

std::optional<CallRecord> decode_record(Bytes node_fields) {
  try {
    const std::string nodes = node_entry(node_fields, "opfuse.origin"),
                      values = node_entry(node_fields, "opfuse.values"),
                      fields = node_entry(node_fields, "opfuse.fields");
    if (nodes.empty() || values.empty()) return std::nullopt;
    CallRecord record{Json::parse(nodes), Json::parse(values), {}};
    record.fields.resize(record.nodes.size());
    if (!fields.empty()) {
      const std::vector<std::string> hex = Json::parse(fields);
      if (hex.size() != record.nodes.size()) return std::nullopt;
      for (size_t i = 0; i < hex.size(); ++i) record.fields[i] = from_hex(hex[i]);
    }
    if (record.values.size() != record.nodes.size()) return std::nullopt;
    return record;
  } catch (const std::exception&) {  // text of another tool: names are decoration, the model is whole without them
    return std::nullopt;
  }
}

}  // namespace opfuse::onnx
