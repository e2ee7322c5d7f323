// What a call of an exported function keeps of the nodes that became its body. Functions are shared by all groups of
// one structure, so names of nodes and tensors stand at the call, in metadata_props; reading the file puts them back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/wire.hpp"

namespace opfuse::onnx {

inline constexpr std::string_view kFunctionDomain = "dev.opfuse";

/// One entry per node of the function, in its order. "" where there is nothing to say: Constant nodes have no name.
struct CallRecord {
  std::vector<std::string> nodes;                ///< names of the original nodes
  std::vector<std::vector<std::string>> values;  ///< names of their results
  std::vector<std::string> fields;               ///< encoded fields of the original nodes that opfuse does not decode

  void add(std::string node, std::vector<std::string> results, std::string unknown_fields);
  bool operator==(const CallRecord&) const = default;
};

/// metadata_props (fields 9 of NodeProto) with keys opfuse.pattern, opfuse.origin, opfuse.values and, when some node
/// had any, opfuse.fields.
std::string encode_record(const CallRecord& record, const std::string& pattern);

/// The value of a key of metadata_props in the fields of a node that are not decoded; "" where there is none.
std::string node_entry(Bytes node_fields, std::string_view key);

/// The record in a call's undecoded fields; nothing when it has none or another tool damaged it.
std::optional<CallRecord> decode_record(Bytes node_fields);

}  // namespace opfuse::onnx
