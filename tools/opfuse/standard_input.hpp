// A model on standard input: `opfuse explain - < m.onnx`.
#pragma once

#include <string>

namespace opfuse::cli {

/// "-" and the names that the system has for it.
bool is_standard_input(const std::string& argument);
/// A path under which what stands there can be read as often as needed. Reads it to its end the first time. Throws
/// E::bad_option where nobody writes there but a person.
const std::string& file_of_standard_input();
/// The path to open for an argument: the argument itself, or what standard input became.
const std::string& path_of(const std::string& argument);

}  // namespace opfuse::cli
