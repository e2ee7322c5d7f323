// What a model file says beside its graph, kept in Graph::metadata so that it survives every pass and text dumps. Keys
// that begin with "onnx:" are ours; the model's own metadata_props keep their keys.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.hpp"

namespace opfuse::onnx {

inline constexpr std::string_view kIrVersion = "onnx:ir_version";
inline constexpr std::string_view kOpset = "onnx:opset:";              ///< + domain -> version
inline constexpr std::string_view kModelFields = "onnx:model_fields";  ///< encoded fields we do not decode, in hex
inline constexpr std::string_view kGraphFields = "onnx:graph_fields";
inline constexpr std::string_view kFunctions = "onnx:functions";      ///< encoded FunctionProtos that calls still need
inline constexpr std::string_view kNodeFields = "onnx:node_fields:";  ///< + node name
inline constexpr std::string_view kInputInfo = "onnx:input:";         ///< + tensor name -> type text, space, hex
inline constexpr std::string_view kOutputInfo = "onnx:output:";       ///< the same
inline constexpr std::string_view kUserKey = "onnx:user:";            ///< + a model's own key that begins with "onnx:"

std::string to_hex(std::string_view bytes);
std::string from_hex(std::string_view hex);  ///< E::bad_text

const std::string* find_metadata(const Graph& graph, std::string_view key);

/// The number under `key`, `otherwise` when there is none. E::bad_text when it is not a number.
int64_t metadata_number(const Graph& graph, std::string_view key, int64_t otherwise);

}  // namespace opfuse::onnx
