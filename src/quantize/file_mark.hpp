// What tells one sample's file from another of the same name.
#pragma once

#include <string>

namespace opfuse::quantization {

/// Name, size and a hash of its first and last 4 KiB: where archives and compressed pictures differ, all do.
std::string file_mark(const std::string& path);

}  // namespace opfuse::quantization
