// What a session says of opfuse: provider options, and ONNX Runtime's own settings of compiled models.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "opfuse/opfuse.hpp"
#include "ort_abi.hpp"

namespace opfuse::ort {

inline constexpr const char* kProviderName = "OpfuseExecutionProvider";

struct Options {
  Target target = Target::host();
  CompileOptions compile{};
  size_t min_nodes = 3;        ///< smaller parts of a graph stay with ONNX Runtime
  bool write_context = false;  ///< ep.context_enable
  bool embed_context = false;  ///< ep.context_embed_mode
  std::string context_path;    ///< ep.context_file_path; empty: beside the model
};

/// Throws Failure for a name or a value that is not known.
Options options_of(const SessionOptions* session);

}  // namespace opfuse::ort
