// What this process read as input, so that no output replaces it. Files are known by device and inode: another spelling
// of a path, a link or a hard link is the same file.
#pragma once

#include <string>

namespace opfuse {

/// From here on read files are remembered. A program with outputs asks for it at its start; the library does not.
void remember_read_files();
void remember_read_file(const std::string& path);
/// The path under which the file at `path` was read; empty when it was not.
std::string read_as(const std::string& path);

}  // namespace opfuse
