#include "onnx/file_checks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "onnx/flatten_functions.hpp"
#include "onnx/node_order.hpp"
#include "onnx/read.hpp"
#include "onnx/tensor_proto.hpp"

namespace opfuse::onnx {
namespace {

constexpr const char* kExportAgain = "the file was edited or written by a broken exporter; export it again";

struct AttributeRow {
  AttributeType type;
  const char* name;
  uint32_t field;  ///< of AttributeProto, which holds its value
};

constexpr AttributeRow kAttributes[] = {
    {AttributeType::f, "FLOAT", 2},
    {AttributeType::i, "INT", 3},
    {AttributeType::s, "STRING", 4},
    {AttributeType::tensor, "TENSOR", 5},
    {AttributeType::graph, "GRAPH", 6},
    {AttributeType::floats, "FLOATS", 7},
    {AttributeType::ints, "INTS", 8},
    {AttributeType::strings, "STRINGS", 9},
    {AttributeType::tensors, "TENSORS", 10},
    {AttributeType::graphs, "GRAPHS", 11},
    {AttributeType::type_proto, "TYPE_PROTO", 14},
    {AttributeType::type_protos, "TYPE_PROTOS", 15},
    {AttributeType::sparse_tensor, "SPARSE_TENSOR", 22},
    {AttributeType::sparse_tensors, "SPARSE_TENSORS", 23},
};

/// A value that is the default of its field may be absent; one in another field is never meant.
void check_value(const Attribute& a) {
  std::string held;
  size_t count = 0;
  bool other = false;
  for (const AttributeRow& row : kAttributes) {
    if ((a.fields >> row.field & 1) == 0) continue;
    held += (count++ > 0 ? " and " : "") + std::string(row.name);
    other = other || row.type != a.type;
  }
  if (other)
    throw fail(E::bad_attribute, "attribute \"{}\" is of type {} and holds {}", a.name, attribute_type_name(a.type),
               held)
        .hint(kExportAgain);
}

void check_attribute(const Attribute& a, bool in_function) {
  if (a.name.empty()) throw fail(E::bad_attribute, "an attribute has no name").hint(kExportAgain);
  if (!a.reference.empty() && !in_function)
    throw fail(E::bad_attribute, "attribute \"{}\" refers to attribute \"{}\" of a function, and the node is in none",
               a.name, a.reference)
        .hint("the node was taken out of its function; export the model again");
  check_value(a);
}

void check_node(const NodeProto& node, bool in_function, Problems& problems) {
  const auto attempt = [&](auto&& step) {
    problems.attempt([&] {
      try {
        step();
      } catch (Error& error) {
        throw error.node(display_name(node)).op(std::string(node.op_type));
      }
    });
  };
  if (node.op_type.empty())
    attempt([] { throw fail(E::malformed_model, "a node has no operator").hint(kExportAgain); });
  std::set<Bytes> names;
  for (const Attribute& a : node.attributes) {
    attempt([&] { check_attribute(a, in_function); });
    if (!a.name.empty() && !names.insert(a.name).second)
      attempt([&] { throw fail(E::bad_attribute, "attribute \"{}\" is given twice", a.name).hint(kExportAgain); });
  }
}

void check_ir_version(const ModelProto& model, Problems& problems) {
  if (model.ir_version >= kOldestIr && model.ir_version <= kNewestIr) return;
  problems.attempt([&] {
    throw fail(E::bad_opset, "the file has {}; {} to {} can be read",
               model.ir_version == 0 ? "no ONNX IR version" : fmt::format("ONNX IR version {}", model.ir_version),
               kOldestIr, kNewestIr)
        .hint("export the model with another version of the onnx package");
  });
}

void check_opset(const ModelProto& model, Problems& problems) {
  const int64_t opset = opset_version(model.opsets, "");
  if (opset == 0 && !model.opsets.empty() &&
      std::none_of(model.opsets.begin(), model.opsets.end(), [](auto& o) { return is_default_domain(o.domain); }))
    return;  // a model of other domains only
  if (opset >= kOldestOpset && opset <= kNewestOpset) return;
  problems.attempt([&] {
    throw fail(E::bad_opset, "the model uses opset {}; {} to {} can be read", opset, kOldestOpset, kNewestOpset)
        .hint("export with another opset_version, or use onnx.version_converter");
  });
}

void check_opset_versions(const ModelProto& model, Problems& problems) {
  std::map<Bytes, int64_t> versions;
  for (const OperatorSet& set : model.opsets) {
    const Bytes domain = is_default_domain(set.domain) ? Bytes() : set.domain;
    const auto [entry, fresh] = versions.emplace(domain, set.version);
    if (fresh || entry->second == set.version) continue;
    problems.attempt([&] {
      throw fail(E::bad_opset, "the model imports opset {} and opset {} of domain \"{}\"", entry->second, set.version,
                 domain.empty() ? "ai.onnx" : domain)
          .hint("one version decides what its operators mean; export the model again");
    });
  }
}

/// Before IR version 4 every initializer is an input too.
void check_defaults(const ModelProto& model, Problems& problems) {
  std::map<Bytes, const TensorProto*> initializers;
  for (const TensorProto& tensor : model.graph.initializers) initializers.emplace(tensor.name, &tensor);
  for (const ValueInfo& info : model.graph.inputs) {
    const auto found = initializers.find(info.name);
    if (found == initializers.end() || info.type.kind != TypeKind::tensor) continue;
    const TensorProto& tensor = *found->second;
    const auto refuse = [&](E code, const std::string& declared, const std::string& has) {
      problems.attempt([&] {
        throw fail(code, "input \"{}\" is declared {} and its initializer is {}", info.name, declared, has)
            .hint(kExportAgain);
      });
    };
    if (info.type.elem_type != tensor.data_type && info.type.elem_type != 0)
      refuse(E::dtype_mismatch, onnx_type_name(info.type.elem_type), onnx_type_name(tensor.data_type));
    bool fits = !info.type.has_shape || info.type.dims.size() == tensor.dims.size();
    std::vector<std::string> declared;
    for (size_t i = 0; i < info.type.dims.size(); ++i) {
      const Dimension& dim = info.type.dims[i];
      declared.push_back(dim.value ? std::to_string(*dim.value) : std::string(dim.param.empty() ? "?" : dim.param));
      fits = fits && i < tensor.dims.size() && (!dim.value || *dim.value < 0 || *dim.value == tensor.dims[i]);
    }
    if (!fits)
      refuse(E::shape_mismatch, fmt::format("[{}]", fmt::join(declared, ",")),
             fmt::format("[{}]", fmt::join(tensor.dims, ",")));
  }
}

void check_all_nodes(const ModelProto& model, Problems& problems) {
  check_nodes(model.graph.nodes, false, problems);
  for (const FunctionProto& function : model.functions) check_nodes(function.nodes, true, problems);
}

constexpr void (*kChecks[])(const ModelProto&, Problems&) = {check_ir_version, check_opset, check_opset_versions,
                                                             check_defaults, check_all_nodes};

}  // namespace

const char* attribute_type_name(AttributeType type) {
  for (const AttributeRow& row : kAttributes)
    if (row.type == type) return row.name;
  return "UNDEFINED";
}

void check_nodes(const std::vector<NodeProto>& nodes, bool in_function, Problems& problems) {
  for (const NodeProto& node : nodes) {
    if (problems.full()) return;
    check_node(node, in_function, problems);
  }
}

void check_file(const ModelProto& model, Problems& problems) {
  for (const auto check : kChecks)
    if (!problems.full()) check(model, problems);
}

}  // namespace opfuse::onnx
