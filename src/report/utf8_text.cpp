// The JSON library replaces such sequences where it writes a string; reading the string back gives the text.
#include "report/utf8_text.hpp"

#include <nlohmann/json.hpp>

namespace opfuse::report {

std::string utf8_text(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace opfuse::report
