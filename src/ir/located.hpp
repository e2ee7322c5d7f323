// Completing an error with what is known about the node it came from.
#pragma once

#include <string>
#include <vector>

#include "base/fail.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// The hint where only the size of an open dimension is missing.
inline constexpr const char* kGiveSizes = "give the sizes of open dimensions (--dim NAME=SIZE)";

/// The operator as the model calls it: "Conv", "If", "com.example.Mine"; opfuse's own name where different nodes of
/// the model, or none, became this one.
std::string source_operator(const Node& node);

/// "Conv, opset 17", or opfuse's own name when the source is unknown.
std::string op_text(const std::vector<Source>& sources, const OpInfo& op);

/// Adds node, operator and operands, unless the error already names a node.
Error located(Error error, const OpInfo& op, const std::vector<Value*>& inputs, const std::vector<Source>& sources);

}  // namespace opfuse
