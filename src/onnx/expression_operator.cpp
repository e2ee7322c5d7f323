#include "onnx/expression_operator.hpp"

#include <set>

#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "onnx/expression_text.hpp"
#include "onnx/flatten_functions.hpp"

namespace opfuse::onnx {
namespace {

std::string text_of_file(const std::string& path) {
  auto text = file_bytes(path);
  if (!text)
    throw fail(E::file_not_found, "there is no file '{}' of operators", path)
        .hint("a definition has a '=': swish(x, b) = x * sigmoid(b * x)");
  return *std::move(text);
}

std::vector<ExpressionOperator> parse_all(const std::vector<std::string>& given) {
  std::vector<ExpressionOperator> all;
  for (const std::string& argument : given) {
    const bool is_text = argument.find('=') != std::string::npos;
    const std::string text = is_text ? argument : text_of_file(argument);
    TextOrigin origin{is_text ? std::string() : argument, 0};
    for (size_t first = 0; first < text.size();) {
      const size_t end = std::min(text.find('\n', first), text.size());
      const std::string_view line = std::string_view(text).substr(first, end - first);
      const std::string_view code = line.substr(0, line.find('#'));
      ++origin.line;
      first = end + 1;
      if (code.find_first_not_of(" \t\r") != std::string_view::npos)
        all.push_back(parse_expression_operator(code, origin));
    }
  }
  return all;
}

/// Domains in which the model calls an operator of that name.
std::set<std::string> domains_of_calls(const std::string& name, const ModelProto& model) {
  std::set<std::string> domains;
  const auto look = [&](const std::vector<NodeProto>& nodes) {
    for (const NodeProto& node : nodes)
      if (node.op_type == name && !is_default_domain(node.domain)) domains.emplace(node.domain);
  };
  look(model.graph.nodes);
  for (const FunctionProto& function : model.functions) look(function.nodes);
  const bool nowhere = domains.empty();
  for (const OperatorSet& opset : model.opsets)  // a call in a branch or loop
    if (nowhere && !is_default_domain(opset.domain)) domains.emplace(opset.domain);
  return domains;
}

}  // namespace

std::string expression_operators(const std::vector<std::string>& given, const ModelProto& model) {
  std::set<std::pair<std::string, std::string>> defined;
  for (const FunctionProto& function : model.functions) defined.emplace(function.domain, function.name);
  Encoder functions;
  functions.bytes(7, {});  // a model has a graph
  for (const ExpressionOperator& op : parse_all(given)) {
    std::set<std::string> domains = domains_of_calls(op.name, model);
    if (!op.domain.empty()) domains = {op.domain};
    for (const std::string& domain : domains) {
      if (!defined.emplace(domain, op.name).second)
        throw fail(E::duplicate_name, "operator \"{}\" of domain {} is defined twice", op.name, domain)
            .hint("the model's own functions need no definition");
      Encoder function;
      function.bytes(1, op.name);
      function.bytes(10, domain);
      function.raw(op.fields);
      functions.message(25, function);
    }
  }
  return functions.text();
}

}  // namespace opfuse::onnx
