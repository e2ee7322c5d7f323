// {"for": "cpu", "float": [["ConvBN@/stem/conv", "preset", "preset 'stem': ..."], ...]}
#include "quantize/record.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "onnx/metadata.hpp"

namespace opfuse::quantization {

using Json = nlohmann::ordered_json;
constexpr const char* kKey = "opfuse.quantize";

void keep_record(Graph& graph, const std::string& compiler, const Placement& placement) {
  Json record{{"for", compiler}, {"float", Json::array()}};
  for (const LeftModule& left : placement.left)
    record["float"].push_back({left.id, left.reason.code, left.reason.message});
  std::erase_if(graph.metadata, [](const auto& entry) { return entry.first == kKey; });
  graph.metadata.emplace_back(kKey, record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<std::string> recorded_lines(const Graph& graph) try {
  std::vector<std::string> lines;
  const std::string* text = onnx::find_metadata(graph, kKey);
  if (!text) return lines;
  const Json record = Json::parse(*text);
  for (const Json& left : record.at("float"))
    lines.push_back(fmt::format("PRECISION f32 at {} [{}]: quantised for {}, {}", left.at(0).get<std::string>(),
                                left.at(1).get<std::string>(), record.at("for").get<std::string>(),
                                left.at(2).get<std::string>()));
  return lines;
} catch (const Json::exception&) {
  return {};
}

}  // namespace opfuse::quantization
