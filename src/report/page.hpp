// The viewer: one HTML file with style, scripts and the document in it. It loads nothing from anywhere.
#pragma once

#include <string>
#include <string_view>

namespace opfuse::report {

/// The page with `document` (JSON text) inside; `title` is shown by the browser.
std::string page_with(const std::string& document, const std::string& title);

/// The parts of the page, from page/*.{html,css,js}.
extern const std::string_view kPageHtml, kPageCss, kPageScripts;

}  // namespace opfuse::report
