// Attribute access, and the folding of shape arithmetic: a node whose operands are all constant and whose result is a
// handful of numbers is evaluated on the spot, because shapes that depend on it are needed by inference right away.
#include "onnx/node_import.hpp"

#include <charconv>
#include <cmath>

#include "base/fail.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

/// What weights go through on their way into a product is told by Q/DQ nodes, however small they are.
bool keeps_its_node(const OpInfo& op) { return op.name == "quantize_linear" || op.name == "dequantize_linear"; }

/// Index tables of window attention, positions that Range counts up to, scale factors; weights are left to the
/// fold-constants pass. Range's shape follows from its operands' values, whatever their type.
bool is_shape_arithmetic(const OpInfo& op, const TensorType& type, const Limits& limits) {
  if (!type.shape.ranked || !type.shape.is_static()) return false;
  const int64_t limit = is_float(type.dtype) && op.name != "range" ? limits.folded_reals : limits.folded_integers;
  return type.dtype != DType::unknown && byte_size(type.dtype) > 0 && type.shape.elements().value() <= limit;
}

/// The number the file's author wrote: 1e-5f means 1e-05, not 9.99999974737875e-06. It rounds to the same float.
double decimal(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char text[32];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  double result = 0;
  std::from_chars(text, end, result);
  return result;
}

std::vector<double> decimals(const std::vector<float>& values) {
  std::vector<double> result;
  for (float value : values) result.push_back(decimal(value));
  return result;
}

AttrValue converted(const Attribute& a, const AttrValue& like, const Error& wrong) {
  if (std::holds_alternative<bool>(like) && a.type == AttributeType::i) return a.i != 0;
  if (std::holds_alternative<int64_t>(like) && a.type == AttributeType::i) return a.i;
  if (std::holds_alternative<double>(like) && a.type == AttributeType::f) return decimal(a.f);
  if (std::holds_alternative<double>(like) && a.type == AttributeType::i) return static_cast<double>(a.i);
  if (std::holds_alternative<std::string>(like) && a.type == AttributeType::s) return std::string(a.s);
  if (std::holds_alternative<std::vector<int64_t>>(like) && (a.type == AttributeType::ints)) return a.ints;
  if (std::holds_alternative<std::vector<double>>(like) && a.type == AttributeType::floats) return decimals(a.floats);
  if (std::holds_alternative<std::vector<std::string>>(like) && a.type == AttributeType::strings)
    return std::vector<std::string>(a.strings.begin(), a.strings.end());
  if (std::holds_alternative<DType>(like) && a.type == AttributeType::i) {
    if (a.i == 0) return like;  // UNDEFINED: as if it were absent
    const DType dtype = dtype_of(a.i);
    if (dtype == DType::unknown || dtype == DType::string)
      throw fail(E::unsupported_dtype, "attribute {} asks for element type {}", a.name, onnx_type_name(a.i));
    return dtype;
  }
  throw wrong;
}

}  // namespace

Error NodeImport::bad_attribute(std::string_view name, const char* wanted) const {
  return fail(E::bad_attribute, "attribute \"{}\" is not {}", name, wanted);
}

Value* NodeImport::required(size_t i) const {
  if (Value* value = input(i)) return value;
  throw fail(E::arity_mismatch, "input {} is missing", i);
}

void NodeImport::require_inputs(size_t least, size_t most) const {
  if (inputs.size() < least || inputs.size() > most)
    throw fail(E::arity_mismatch, "{} inputs where {} to {} are expected", inputs.size(), least, most);
}

const Attribute* NodeImport::attribute(std::string_view name) {
  seen_.insert(std::string(name));
  for (const Attribute& a : proto.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

int64_t NodeImport::integer(std::string_view name, int64_t otherwise) {
  const Attribute* a = attribute(name);
  if (!a) return otherwise;
  if (a->type != AttributeType::i) throw bad_attribute(name, "an integer");
  return a->i;
}

double NodeImport::real(std::string_view name, double otherwise) {
  const Attribute* a = attribute(name);
  if (!a) return otherwise;
  if (a->type != AttributeType::f) throw bad_attribute(name, "a float");
  return decimal(a->f);
}

std::string NodeImport::text(std::string_view name, std::string otherwise) {
  const Attribute* a = attribute(name);
  if (!a) return otherwise;
  if (a->type != AttributeType::s) throw bad_attribute(name, "a string");
  return std::string(a->s);
}

std::optional<std::vector<int64_t>> NodeImport::integers(std::string_view name) {
  const Attribute* a = attribute(name);
  if (!a) return std::nullopt;
  if (a->type != AttributeType::ints) throw bad_attribute(name, "a list of integers");
  return a->ints;
}

std::optional<std::vector<double>> NodeImport::reals(std::string_view name) {
  const Attribute* a = attribute(name);
  if (!a) return std::nullopt;
  if (a->type != AttributeType::floats) throw bad_attribute(name, "a list of floats");
  return decimals(a->floats);
}

std::optional<Tensor> NodeImport::tensor(std::string_view name) {
  const Attribute* a = attribute(name);
  if (!a) return std::nullopt;
  if (a->type != AttributeType::tensor) throw bad_attribute(name, "a tensor");
  return tensors.read(parse_tensor(a->tensor), fmt::format("attribute \"{}\"", name));
}

AttrMap NodeImport::declared_attributes(const OpInfo& op) {
  AttrMap attrs;
  for (const Attribute& a : proto.attributes) {
    if (seen_.contains(a.name)) continue;
    const AttrValue* like = find(op.default_attrs, a.name);
    if (!like) continue;
    seen_.insert(std::string(a.name));
    attrs.emplace_back(a.name, converted(a, *like, bad_attribute(a.name, "of the type that ONNX gives it")));
  }
  return attrs;
}

void NodeImport::check_all_seen() const {
  for (const Attribute& a : proto.attributes)
    if (!seen_.contains(a.name))
      throw fail(E::unsupported_attribute, "attribute \"{}\" of {} is not supported", a.name, proto.op_type);
}

size_t NodeImport::output_count() const {
  size_t count = proto.outputs.size();
  while (count > 0 && proto.outputs[count - 1].empty()) --count;
  return count;
}

std::optional<std::vector<Value*>> NodeImport::folded(const OpInfo& op, const AttrMap& attrs,
                                                      const std::vector<Value*>& operands, size_t outputs) {
  if (!fold_ || !op.reference || !op.infer || op.kind == OpKind::contraction || keeps_its_node(op)) return std::nullopt;
  // The shape of a value is known without its contents.
  const bool reads_type_only = op.name == "shape" || op.name == "size";
  std::vector<const Tensor*> tensors_in;
  std::vector<Tensor> stand_ins;
  stand_ins.reserve(operands.size());
  for (Value* operand : operands) {
    if (operand && reads_type_only && !operand->is_constant()) {
      if (!operand->type.shape.ranked || !operand->type.shape.is_static()) return std::nullopt;
      static const char kNothing = 0;  // never read: the operator looks at the sizes
      stand_ins.push_back(Tensor::wrap(DType::u8, operand->type.shape.sizes(), &kNothing, nullptr));
      tensors_in.push_back(&stand_ins.back());
      continue;
    }
    if (operand && !operand->is_constant()) return std::nullopt;
    tensors_in.push_back(operand ? &*operand->constant : nullptr);
  }
  const auto typed_attrs = op.attrs_from_map ? op.attrs_from_map(attrs) : nullptr;
  for (const TensorType& type : infer_node(op, typed_attrs.get(), operands, outputs))
    if (!is_shape_arithmetic(op, type, limits)) return std::nullopt;
  std::vector<Value*> results;
  for (Tensor& tensor : op.reference(typed_attrs.get(), tensors_in, Precision::typed))
    results.push_back(graph.add_constant(std::move(tensor)));
  return results;
}

std::vector<Value*> NodeImport::emit(std::string_view op, const AttrMap& attrs, std::vector<Value*> operands,
                                     size_t outputs) {
  const OpInfo* info = op_named(op);
  while (!operands.empty() && operands.back() == nullptr) operands.pop_back();
  bool known = true;
  for (const Value* operand : operands)
    known = known && (!operand || (operand->type.dtype != DType::unknown && operand->type.shape.ranked));
  if (known)
    if (auto results = folded(*info, attrs, operands, outputs)) return *results;
  Node* node = graph.add_node(info, attrs, std::move(operands), outputs, {source});
  return node->outputs;
}

}  // namespace opfuse::onnx
