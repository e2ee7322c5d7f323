// The table of ONNX operators that have a counterpart.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onnx/node_import.hpp"

namespace opfuse::onnx {

/// Imports a node of the default domain by the table; its results, or nullopt when the table does not have the
/// operator (or the registry does not declare it).
std::optional<std::vector<Value*>> import_known(NodeImport& node);

/// True when the table and the registry have the operator.
bool is_declared(std::string_view onnx_op);

/// ONNX's name of an opfuse operator in an opset, "" when that has none; `preferred` where several fit.
std::string onnx_name(std::string_view op, int64_t opset, std::string_view preferred);

/// The oldest opset that an opfuse operator can be written in, 0 when there is none.
int64_t first_opset(std::string_view op);

/// How an operator is read.
struct OperatorSupport {
  std::string onnx;
  std::string op;        ///< opfuse's operator; empty: it is read as a composition of others
  int64_t since = 0;     ///< first opset that is read
  int64_t until = 0;     ///< first opset that has it no more; 0: the newest has it
  std::string how{};     ///< of one that the reader takes apart: as what, and where
  std::string domain{};  ///< "com.microsoft"; empty: ONNX's own
};

/// Operators that the reader takes apart itself, sorted by name.
struct StructuralOperator {
  std::string_view onnx, domain;
  int64_t since = 0;
  std::string_view how;
};
std::span<const StructuralOperator> structural_operators();

/// All of them, sorted by name, those of ONNX's own domain first.
std::vector<OperatorSupport> all_operator_support();

/// (ONNX name, opfuse name) of every declared operator, sorted by ONNX name.
std::vector<std::pair<std::string, std::string>> operator_names();

}  // namespace opfuse::onnx
