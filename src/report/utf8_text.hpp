// Names come from models and may hold any byte; pictures and pages are UTF-8.
#pragma once

#include <string>

namespace opfuse::report {

/// The text with U+FFFD in place of each sequence of bytes that is not UTF-8.
std::string utf8_text(const std::string& text);

}  // namespace opfuse::report
