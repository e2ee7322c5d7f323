// Everything that reads bytes from outside, as functions of the bytes: what mutation fuzzing drives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse::readers {

struct Reader {
  const char* name;
  void (*read)(std::string_view bytes);  ///< returns, or throws opfuse::Error: the bytes are refused
};

/// The rows of readers.def.
const std::vector<Reader>& readers();
const Reader& reader_named(std::string_view name);

/// Small valid files of the format: one at least.
std::vector<std::string> seeds_of(std::string_view reader);  // seeds.cpp
const std::string& cache_file_path();

}  // namespace opfuse::readers
