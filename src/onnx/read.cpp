// ONNX -> Graph, in the order of the functions below: what needs no types (file_checks.hpp), functions inlined,
// initializers, inputs, nodes in topological order, outputs. Inference runs with every node; problems of initializers
// and nodes are collected. What opfuse does not know stays as an opaque node, and so does what it knows in another
// variant only (E03xx): the reason is kept and told when someone wants to compile it.
#include "onnx/read.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "ir/fix_input.hpp"
#include "onnx/defined_sizes.hpp"
#include "onnx/expression_operator.hpp"
#include "onnx/file_checks.hpp"
#include "onnx/file_kind.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/import_table.hpp"
#include "onnx/metadata.hpp"
#include "onnx/model_reader.hpp"
#include "onnx/node_order.hpp"
#include "onnx/opaque.hpp"
#include "onnx/refused_operators.hpp"
#include "onnx/settle.hpp"
#include "onnx/shape_inputs.hpp"
#include "ops/is_a.hpp"
#include "ops/read_sizes.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

TensorType unknown_type() { return {DType::unknown, Shape::unknown()}; }

constexpr const char* kGivenSizes = " (the sizes of open dimensions decide: --dim NAME=SIZE)";

bool is_unsupported(const Error& error) { return error.diagnostic().code.starts_with("E03"); }

}  // namespace

ModelReader::ModelReader(Bytes bytes, std::shared_ptr<const void> owner, const std::string& folder,
                         const std::string& path, const ReadOptions& options)
    : options_(options), tensors_(std::move(owner), folder, path) {
  if (bytes.empty())
    throw fail(E::malformed_model, "the file is empty").hint("the download or copy did not finish: fetch it again");
  try {
    model_ = parse_model(bytes);
  } catch (const Error&) {
    if (const auto kind = other_kind_of_file(bytes)) throw *kind;
    throw;
  }
  graph_.model_file = path;
  if (options_.operators.empty()) return;
  const LimitScope scope(options_.limits);
  operators_ = expression_operators(options_.operators, model_);
  for (FunctionProto& function : parse_model(operators_).functions) model_.functions.push_back(std::move(function));
}

Graph ModelReader::read() {
  const LimitScope scope(options_.limits);
  check_file(model_, problems_);
  if (!options_.problems || problems_.full()) problems_.report(options_.problems);
  flat_ = flatten_functions(model_, options_.limits, &problems_);
  graph_.name = std::string(model_.graph.name);
  const NodeOrder sorted = node_order(flat_.nodes, model_.graph, problems_);
  if (!options_.problems || problems_.full()) problems_.report(options_.problems);
  broken_ = sorted.broken;
  for (const ValueInfo& info : model_.graph.values) infos_.emplace(info.name, &info);
  for (const ValueInfo& info : model_.graph.outputs) infos_.emplace(info.name, &info);
  for (const auto* list : {&model_.graph.inputs, &model_.graph.outputs, &model_.graph.values})
    for (const ValueInfo& info : *list)
      for (const Dimension& dim : info.type.dims) symbols_.emplace(dim.param);
  set_shape_inputs(graph_, shape_inputs(flat_.nodes, model_.graph));
  read_initializers();
  read_inputs();
  bool all = true;
  for (size_t i = 0; i < sorted.order.size() && all; ++i) {
    const FlatNode& node = flat_.nodes[sorted.order[i]];
    const bool readable = !node.unreadable && !sorted.unreadable.contains(sorted.order[i]);
    all = (readable && problems_.attempt([&] { read_node(node); })) || stand_in_for(node);
  }
  if (problems_.none() || (options_.problems && all)) read_outputs();
  look_at_declared_values();
  if (!problems_.none() && options_.rest) *options_.rest = std::move(graph_);
  problems_.report(options_.problems);
  read_metadata();
  return std::move(graph_);
}

void ModelReader::define(Bytes name, Value* value) {
  if (name.empty() || (broken_.contains(name) && value_named(name))) return;  // the first of two definitions stays
  values_[name] = value;
  if (value->name.empty()) value->name = prefix_ + std::string(name);
}

Value* ModelReader::value_named(Bytes name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

void ModelReader::read_initializers() {
  for (Bytes name : model_.graph.sparse_initializers) {
    problems_.attempt([&] {
      throw fail(E::unsupported_op, "initializer \"{}\" is sparse", name).hint("export the model with dense weights");
    });
    if (options_.problems && !value_named(name)) define(name, graph_.add_input(std::string(name), unknown_type()));
  }
  for (const TensorProto& proto : model_.graph.initializers) {
    if (options_.fixed_inputs.contains(std::string(proto.name))) continue;  // a default that the caller replaces
    const bool right = problems_.attempt([&] {
      define(proto.name, graph_.add_constant(tensors_.read(proto, fmt::format("initializer \"{}\"", proto.name))));
    });
    if (problems_.full()) break;
    if (!right && options_.problems && !value_named(proto.name))
      define(proto.name, graph_.add_input(std::string(proto.name), unknown_type()));
  }
  if (!options_.problems) problems_.report(nullptr);  // nodes without their weights would only repeat it
}

/// What exporters write for "open, and nothing is known of it": no name that two axes could share.
static bool is_unnamed(const Dimension& dim) {
  static constexpr std::array<Bytes, 4> kNoNames = {"", "?", "-1", "None"};
  return dim.value || std::find(kNoNames.begin(), kNoNames.end(), dim.param) != kNoNames.end();
}

Dim ModelReader::dimension(const Dimension& dim, const std::string& what) {
  constexpr int64_t kOpen = -1;  // Paddle's
  if (dim.value && *dim.value < 0 && *dim.value != kOpen)
    throw fail(E::bad_dimension, "{} has a negative dimension ({})", what, *dim.value);
  if (dim.value && *dim.value != kOpen) return *dim.value;
  std::string name(dim.param);
  if (is_unnamed(dim)) do
      name = fmt::format("unk__{}", unnamed_++);
    while (!symbols_.insert(name).second);
  const auto bound = options_.dimensions.find(name);
  return bound == options_.dimensions.end() ? Dim::symbol(name) : Dim(bound->second);
}

TensorType ModelReader::declared_type(const ValueInfo& info) {
  const std::string what = fmt::format("tensor \"{}\"", info.name);
  TensorType type{dtype_of(info.type.elem_type), Shape::unknown()};
  if (!info.type.has_shape) return type;
  std::vector<Dim> dims;
  for (const Dimension& dim : info.type.dims) dims.push_back(dimension(dim, what));
  type.shape = Shape(std::move(dims));
  if (type.shape.is_static()) type.shape.elements();  // E::bad_dimension when the product overflows
  return type;
}

void ModelReader::read_input(const ValueInfo& info) {
  if (info.type.kind == TypeKind::none) throw fail(E::malformed_model, "graph input \"{}\" has no type", info.name);
  const TensorType type = info.type.kind == TypeKind::tensor ? declared_type(info) : unknown_type();
  if (type.dtype == DType::unknown)
    throw fail(E::unsupported_dtype, "graph input \"{}\" is {}", info.name,
               info.type.kind == TypeKind::tensor ? "of element type " + onnx_type_name(info.type.elem_type)
                                                  : "a sequence, map, optional or sparse tensor");
  define(info.name, graph_.add_input(std::string(info.name), type));
  if (const auto fixed = options_.fixed_inputs.find(std::string(info.name)); fixed != options_.fixed_inputs.end())
    fix_input(graph_, fixed->first, fixed->second);
  else
    keep_value_info(kInputInfo, info, type);
}

void ModelReader::read_inputs() {
  for (const ValueInfo& info : model_.graph.inputs) {
    if (value_named(info.name) || info.name.empty()) continue;  // has an initializer: a constant
    if (!options_.problems)
      read_input(info);
    else if (!problems_.attempt([&] { read_input(info); }) && !value_named(info.name))
      define(info.name, graph_.add_input(std::string(info.name), unknown_type()));
  }
  if (fixed_inputs(graph_).size() == options_.fixed_inputs.size()) return;
  std::vector<std::string> names;
  for (const ValueInfo& info : model_.graph.inputs) names.emplace_back(info.name);
  for (const auto& [name, tensor] : options_.fixed_inputs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw fail(E::unknown_name, "the model has no input \"{}\" to fix", name).hint(did_you_mean(name, names));
}

std::vector<ModelInput> ModelReader::inputs() {
  const LimitScope scope(options_.limits);
  flat_ = flatten_functions(model_, options_.limits);
  const std::vector<std::string> deciding = shape_inputs(flat_.nodes, model_.graph);
  for (const ValueInfo& info : model_.graph.inputs)
    for (const Dimension& dim : info.type.dims) symbols_.emplace(dim.param);
  std::vector<ModelInput> inputs;
  for (const ValueInfo& info : model_.graph.inputs)
    if (info.type.kind == TypeKind::tensor)
      inputs.push_back({std::string(info.name), declared_type(info),
                        std::find(deciding.begin(), deciding.end(), info.name) != deciding.end()});
  return inputs;
}

Source ModelReader::source_of(const FlatNode& node) const {
  return {display_name(node.proto), std::string(node.proto.op_type),
          is_default_domain(node.proto.domain) ? std::string() : std::string(node.proto.domain), node.opset};
}

std::vector<Value*> ModelReader::operands(const NodeProto& node) {
  std::vector<Value*> values;
  for (Bytes name : node.inputs) {
    values.push_back(operand(name));
    Value*& value = values.back();
    if (options_.fold_shapes && value && !value->is_constant() && decides_shape(node, values.size() - 1))
      value = settled(graph_, value, options_.limits, limited_);
  }
  return values;
}

void ModelReader::read_constant(const NodeProto& node) {
  if (node.outputs.size() != 1 || node.attributes.size() != 1)
    throw fail(E::bad_attribute, "a Constant has one output and one attribute, here {} and {}", node.outputs.size(),
               node.attributes.size());
  const Attribute& a = node.attributes.front();
  Tensor value;
  if (a.name == "value" && a.type == AttributeType::tensor)
    value = tensors_.read(parse_tensor(a.tensor), fmt::format("constant \"{}\"", node.outputs[0]));
  else if (a.name == "value_float" && a.type == AttributeType::f)
    value = Tensor::scalar(DType::f32, static_cast<double>(a.f));
  else if (a.name == "value_int" && a.type == AttributeType::i)
    value = Tensor::from_i64({a.i}).reshaped({});
  else if (a.name == "value_floats" && a.type == AttributeType::floats)
    value = Tensor::of(DType::f32, {static_cast<int64_t>(a.floats.size())}, a.floats);
  else if (a.name == "value_ints" && a.type == AttributeType::ints)
    value = Tensor::from_i64(a.ints);
  else
    throw fail(E::unsupported_attribute, "a Constant by attribute \"{}\" is not supported", a.name);
  define(node.outputs[0], graph_.add_constant(std::move(value)));
}

namespace {

bool is_unknown_dimension(const Error& error) { return error.diagnostic().name == "unknown_dimension"; }

/// Of operands whose shapes are known, computed by an operator that is: operands' values decide.
bool lacks_shape(const NodeImport& import, const std::optional<std::vector<Value*>>& results) {
  const auto ranked = [](const Value* v) { return !v || v->type.shape.ranked; };
  return results && !results->empty() && !ranked(results->front()) &&
         std::all_of(import.inputs.begin(), import.inputs.end(), ranked);
}

}  // namespace

/// Where a shape needs values that data decide, these are read as sizes (onnx/defined_sizes.hpp).
std::optional<std::vector<Value*>> ModelReader::import_node(const FlatNode& node, const Source& source) {
  const size_t before = appended();
  NodeImport import(graph_, node.proto, node.opset, operands(node.proto), source, tensors_, options_.fold_shapes,
                    options_.limits);
  NodeImport again = import;
  std::optional<std::vector<Value*>> results;
  std::exception_ptr why;
  try {
    results = import_known(import);
    if (!lacks_shape(import, results)) return results;
  } catch (const Error& error) {
    if (!is_unknown_dimension(error)) throw;
    why = std::current_exception();
  }
  if (sizes_to_read(again)) {
    give_up(before);
    sizes_read_ += read_sizes_of_operands(again);
    return import_known(again);
  }
  if (why) std::rethrow_exception(why);
  return results;
}

std::optional<std::vector<Value*>> ModelReader::try_known(const FlatNode& node, const Source& source,
                                                          std::string& reason) {
  if (!source.domain.empty() && !is_spelled(source.op_type, source.domain)) {
    const std::string_view why = why_refused(source.op_type);
    reason = why.empty() ? fmt::format("operator {} of domain {} is not known", source.op_type, source.domain)
                         : fmt::format("{} {}", source.op_type, why);
    return std::nullopt;
  }
  if (node.opset == 0) throw fail(E::bad_opset, "the model does not import the operator set of {}", source.op_type);
  const size_t before = appended();
  limited_.clear();
  try {
    for (const Value* operand : operands(node.proto))
      if (operand && operand->type.dtype == DType::string && is_declared(source.op_type))
        throw fail(E::unsupported_dtype, "operator {} on strings is not supported", source.op_type);
    auto results = import_node(node, source);
    if (!results && source.op_type == "If") reason = "its condition is computed by the run";
    if (const auto why = why_refused(source.op_type); !results && reason.empty() && !why.empty())
      reason = fmt::format("{} {}", source.op_type, why);
    if (!results && reason.empty()) reason = fmt::format("operator {} is not known", source.op_type);
    return results;
  } catch (const Error& error) {
    const bool sized = needs_sizes(error);
    if (!is_unsupported(error) && !sized) throw;
    give_up(before);
    reason = error.diagnostic().message + (sized ? kGivenSizes : "");
    if (!sized && !error.diagnostic().hint.empty()) reason += ": " + error.diagnostic().hint;
    if (!limited_.empty()) reason += "; " + limited_;
    return std::nullopt;
  }
}

/// Nodes but for read_sizes, which may be put before nodes that were there already.
size_t ModelReader::appended() const { return graph_.nodes().size() - sizes_read_; }

/// Removes what was begun and given up.
void ModelReader::give_up(size_t before) {
  while (appended() > before) {
    Node* last = graph_.nodes().back();
    if (is_a<ReadSizes>(*last)) --sizes_read_;
    graph_.erase(last);
  }
}

/// What the sizes of open dimensions may settle (read_again.hpp), and no input's value.
bool ModelReader::needs_sizes(const Error& error) const {
  return error.diagnostic().name == "unknown_dimension" && !graph_.model_file.empty() && !graph_.symbols().empty() &&
         shape_input_hint(graph_).empty();
}

std::vector<Value*> ModelReader::make_opaque(const FlatNode& node, const Source& source, std::string reason) {
  const std::vector<Bytes> captured = captured_names(node.proto);
  std::vector<Value*> inputs = operands(node.proto);
  for (Bytes name : captured) inputs.push_back(operand(name));
  OpaqueAttrs attrs{source.domain, source.op_type, encode_opaque(node.proto, captured), std::move(reason)};
  std::vector<TensorType> types;
  for (Bytes name : node.proto.outputs) {
    const auto info = infos_.find(name);
    const bool typed = info != infos_.end() && info->second->type.kind == TypeKind::tensor;
    types.push_back(typed ? declared_type(*info->second) : unknown_type());
  }
  const size_t outputs = types.size();
  return graph_
      .add_node(opaque_op(), std::make_shared<const OpaqueAttrs>(std::move(attrs)), std::move(inputs), outputs,
                {source}, nullptr, std::move(types))
      ->outputs;
}

void ModelReader::read_node(const FlatNode& node) {
  const Source source = source_of(node);
  try {
    if (source.domain.empty() && source.op_type == "Constant") return read_constant(node.proto);
    if (read_branch(node, source) || read_bodies(node, source) || read_sequence(node, source)) return;
    std::string reason;
    auto results = try_known(node, source, reason);
    if (!results) results = make_opaque(node, source, std::move(reason));
    for (size_t i = 0; i < node.proto.outputs.size() && i < results->size(); ++i)
      define(node.proto.outputs[i], (*results)[i]);
    if (!node.proto.unknown.empty() && !results->empty() && !(*results)[0]->is_constant() &&
        (*results)[0]->producer->op != opaque_op())
      graph_.metadata.emplace_back(std::string(kNodeFields) + source.name, to_hex(node.proto.unknown));
  } catch (Error& error) {
    error.node(source.name).op(fmt::format("{}, opset {}", source.op_type, source.opset)).during("import");
    const std::string hint = shape_input_hint(graph_);
    if (error.diagnostic().name != "unknown_dimension" || hint.empty()) throw;
    Diagnostic better = error.diagnostic();
    better.hint = hint;
    throw Error(std::move(better));
  }
}

/// After a problem: results that the nodes behind it can be checked with. False when reading has to end.
bool ModelReader::stand_in_for(const FlatNode& node) {
  if (problems_.full()) return false;
  try {
    const std::vector<Value*> results = make_opaque(node, source_of(node), kUnreadable);
    for (size_t i = 0; i < results.size(); ++i)
      if (!value_named(node.proto.outputs[i])) define(node.proto.outputs[i], results[i]);
    return true;
  } catch (const Error&) {  // too damaged to be kept; its problem is recorded
    for (Bytes name : node.proto.outputs)
      if (!name.empty() && !value_named(name)) define(name, graph_.add_input(std::string(name), unknown_type()));
    return true;
  }
}

}  // namespace opfuse::onnx

namespace opfuse {
namespace {

Graph read_model(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& folder,
                 const std::string& path, const ReadOptions& options) {
  try {
    return onnx::ModelReader(bytes, std::move(owner), folder, path, options).read();
  } catch (Error& error) {
    error.file(path);
    throw;
  }
}

}  // namespace

Graph read_onnx(const std::string& path, const ReadOptions& options) {
  const auto file = MappedFile::open(path);
  return read_model(file->bytes(), file, std::filesystem::path(path).parent_path().string(), path, options);
}

std::vector<ModelInput> onnx_inputs(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    return onnx::ModelReader(file->bytes(), file, {}, path, {}).inputs();
  } catch (Error& error) {
    error.file(path);
    throw;
  }
}

Graph read_onnx_bytes(std::string bytes, const std::string& folder, const ReadOptions& options) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return read_model(*owner, owner, folder, {}, options);
}

}  // namespace opfuse
