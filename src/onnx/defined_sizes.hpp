// Sizes that data decide: operators whose results have them get a symbol for each (ir/defined_symbols.hpp), and
// operands that decide a shape are read as sizes when the model runs.
#pragma once

#include <string>
#include <vector>

#include "onnx/node_import.hpp"

namespace opfuse::onnx {

/// The symbol for what the node's first result counts: "n_mask" for the result "mask".
std::vector<std::string> defines_of(const NodeImport& node);

/// So many symbols for sizes of a value: "n_mask", "n_mask_1" ...
std::vector<std::string> symbols_named(const Graph& graph, const std::string& value, size_t count);

/// The node of that operator that reads the same operands with the same attributes, or null: one count is one symbol.
const Node* same_node(const NodeImport& node, std::string_view op, const AttrMap& attrs);

/// Some operand decides the result's shape and is computed from data.
bool sizes_to_read(const NodeImport& node);

/// Puts read_sizes before those operands, as early as may be; how many nodes that made.
size_t read_sizes_of_operands(NodeImport& node);

}  // namespace opfuse::onnx
