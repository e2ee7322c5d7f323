// Words for people: numbers with their nouns, lines as wide as the terminal.
#pragma once

#include <cstddef>
#include <string>

namespace opfuse::cli {

std::string counted(size_t count, const std::string& noun);  ///< "1 launch", "2 launches"
/// Cut at the width of the terminal, with "..." for the rest; whole where stdout is a file or a pipe.
std::string fitted(const std::string& line);

}  // namespace opfuse::cli
