// What the reader keeps of a file beside the graph; write_onnx puts it back.
#include "onnx/call_record.hpp"
#include "onnx/metadata.hpp"
#include "onnx/model_reader.hpp"
#include "onnx/value_info.hpp"

namespace opfuse::onnx {

/// Kept only where encoding the type again would lose something (unnamed dimensions, denotations, documentation).
void ModelReader::keep_value_info(std::string_view key, const ValueInfo& info, const TensorType& type) {
  if (encode_value_info(info.name, type) == info.raw || !options_.dimensions.empty()) return;
  graph_.metadata.emplace_back(std::string(key) + std::string(info.name), type.text() + " " + to_hex(info.raw));
}

void ModelReader::read_metadata() {
  auto& metadata = graph_.metadata;
  metadata.emplace_back(kIrVersion, std::to_string(model_.ir_version));
  for (const OperatorSet& opset : model_.opsets)
    metadata.emplace_back(std::string(kOpset) + (is_default_domain(opset.domain) ? "" : std::string(opset.domain)),
                          std::to_string(opset.version));
  if (!model_.unknown.empty()) metadata.emplace_back(kModelFields, to_hex(model_.unknown));
  if (!model_.graph.unknown.empty()) metadata.emplace_back(kGraphFields, to_hex(model_.graph.unknown));
  if (flat_.calls_left) {
    Encoder functions;
    for (const FunctionProto& function : model_.functions)
      if (function.domain != kFunctionDomain) functions.bytes(25, function.raw);  // made again by the writer
    metadata.emplace_back(kFunctions, to_hex(functions.text()));
  }
  for (const Entry& entry : model_.metadata) {
    const bool ours = entry.key.starts_with("onnx:");
    metadata.emplace_back((ours ? std::string(kUserKey) : std::string()) + std::string(entry.key), entry.value);
  }
}

}  // namespace opfuse::onnx
