// Graphs as files: NAME.fir, and NAME.bin beside it for constants too large to read.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace opfuse {

class ConstantFile;

/// Writes `path` (ends in .fir) and, when there are large constants, the .bin. `header` becomes the comment
/// lines at the top, e.g. "fir 1 | after 03 fold-constants". E::file_write_failed.
void write_fir(const Graph& graph, const std::string& path, const std::string& header);
/// The same with a constant file that several graphs share; it lies in the same folder and is the caller's to commit.
void write_fir(const Graph& graph, const std::string& path, const std::string& header, ConstantFile& constants);

/// E::file_not_found, E::bad_text.
Graph read_fir(const std::string& path, const OpRegistry& registry);

}  // namespace opfuse
