// ONNX Runtime's functions in C++: a status becomes an exception, a count and a filled array become a vector.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "ort_abi.hpp"

namespace opfuse::ort {

/// The tables of the process that loaded the plug-in.
struct Tables {
  Table api, ep, editor;
};
extern Tables tables;

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Failure, and releases the status.
void check(Status* status);

/// What calls across the boundary return: null, or a status made of what `step` throws.
Status* guarded(const char* what, const auto& step);
Status* status_of(const char* what, const std::exception& error);

/// api(entry, arguments..., &result)
template <class Result, class Signature, class... Arguments>
Result get(Entry<Signature> entry, Arguments... arguments) {
  Result result{};
  check(tables.api(entry, arguments..., &result));
  return result;
}

/// An array whose size one function says and which another fills.
template <class Item, class CountSignature, class FillSignature, class Of>
std::vector<Item> list(Entry<CountSignature> count, Entry<FillSignature> fill, const Of* of) {
  std::vector<Item> items(get<size_t>(count, of));
  if (!items.empty()) check(tables.api(fill, of, items.data(), items.size()));
  return items;
}

inline std::vector<const Node*> nodes_of(const Graph* graph) {
  return list<const Node*>(entry::Graph_GetNumNodes, entry::Graph_GetNodes, graph);
}
/// With null where an optional operand is left out.
inline std::vector<const ValueInfo*> inputs_of(const Node* node) {
  return list<const ValueInfo*>(entry::Node_GetNumInputs, entry::Node_GetInputs, node);
}
inline std::vector<const ValueInfo*> outputs_of(const Node* node) {
  return list<const ValueInfo*>(entry::Node_GetNumOutputs, entry::Node_GetOutputs, node);
}
/// Values that subgraphs of the node read.
inline std::vector<const ValueInfo*> implicit_inputs_of(const Node* node) {
  return list<const ValueInfo*>(entry::Node_GetNumImplicitInputs, entry::Node_GetImplicitInputs, node);
}
inline std::string name_of(const ValueInfo* value) {
  return value ? get<const char*>(entry::GetValueInfoName, value) : std::string();
}
inline std::string text_of(Entry<Status*(const Node*, const char**)> entry, const Node* node) {
  const char* text = get<const char*>(entry, node);
  return text ? text : "";
}

Status* guarded(const char* what, const auto& step) {
  try {
    step();
    return nullptr;
  } catch (const std::exception& error) {
    return status_of(what, error);
  }
}

}  // namespace opfuse::ort
