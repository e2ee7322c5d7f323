// The document stands in a <script type="application/json">, whose text ends at the first "</script": so every '<' is
// written as \u003c, which JSON reads as the same.
#include "report/page.hpp"

#include "report/utf8_text.hpp"

namespace opfuse::report {
namespace {

std::string for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string for_text(const std::string& text) {
  std::string out;
  for (char c : utf8_text(text)) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

std::string page_with(const std::string& document, const std::string& title) {
  std::string page(kPageHtml);
  const auto fill = [&](const std::string& mark, const std::string& text) {
    const size_t at = page.find(mark);
    page.replace(at, mark.size(), text);
  };
  fill("<!--title-->", for_text(title));
  fill("<!--style-->", "<style>\n" + std::string(kPageCss) + "</style>");
  fill("<!--data-->", "<script type=\"application/json\" id=\"data\">" + for_script(document) + "</script>");
  fill("<!--scripts-->", "<script>\n" + std::string(kPageScripts) + "</script>");
  return page;
}

}  // namespace opfuse::report
