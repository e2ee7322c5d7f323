// Memory that was freed, back to the system.
#pragma once

#include <string>

namespace opfuse {

/// "jemalloc 5.3.0", or "the C library's": of this process.
std::string malloc_name();

/// malloc keeps what a compiler freed, some 40 MB of a model of medium size, between blocks that are in use. Worth its
/// milliseconds before a long phase whose memory is pages of its own. Does nothing where the C library has no such
/// call.
void return_free_memory();

/// Pages of mapped files that were read leave the process; who reads them again finds them in the system's cache.
void release_file_pages();

}  // namespace opfuse
