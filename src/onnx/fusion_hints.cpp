// Reading keeps the fields of nodes that it does not decode in Graph::metadata; metadata_props are among them.
#include "onnx/fusion_hints.hpp"

#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "onnx/call_record.hpp"
#include "onnx/metadata.hpp"

namespace opfuse {
namespace {

std::vector<std::string> names_in(const FusionHint& hint, const std::string& text) {
  if (text == "*" && !hint.fuse) return {};
  if (!text.starts_with("[") && text != "*") return {text};
  try {
    const auto names = nlohmann::json::parse(text).get<std::vector<std::string>>();
    if (!names.empty()) return names;
  } catch (const nlohmann::json::exception&) {  // said below
  }
  throw fail(E::malformed_model, "{} is \"{}\", not a name or a list of names", hint.key(), text)
      .node(hint.node)
      .hint(hint.fuse ? "write \"other\" or [\"a\", \"b\"]" : "write \"*\", \"other\" or [\"a\", \"b\"]");
}

}  // namespace

std::vector<FusionHint> fusion_hints(const Graph& graph) {
  std::vector<FusionHint> hints;
  for (const auto& [key, hex] : graph.metadata) {
    if (!key.starts_with(onnx::kNodeFields)) continue;
    const std::string fields = onnx::from_hex(hex);
    for (const bool fuse : {false, true}) {
      FusionHint hint{key.substr(onnx::kNodeFields.size()), fuse, {}};
      const std::string value = onnx::node_entry(fields, hint.key());
      if (value.empty()) continue;
      hint.with = names_in(hint, value);
      hints.push_back(std::move(hint));
    }
  }
  return hints;
}

}  // namespace opfuse
