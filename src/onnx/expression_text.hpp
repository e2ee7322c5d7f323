// The text of one operator as an expression, taken apart: what its function computes, as encoded nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse::onnx {

struct TextOrigin {
  std::string file;  ///< for messages; empty: the text of an option
  size_t line = 1;
};

struct ExpressionOperator {
  std::string domain, name;  ///< domain: empty where the definition leaves it open
  std::vector<std::string> inputs, attributes;
  std::string fields;  ///< of a FunctionProto: inputs, the result, attributes with defaults, nodes, the opset
};

/// E::bad_file with line and column.
ExpressionOperator parse_expression_operator(std::string_view text, const TextOrigin& origin);

}  // namespace opfuse::onnx
