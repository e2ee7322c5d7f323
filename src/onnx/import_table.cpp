// ONNX operators of the default domain. Most are one row: opfuse's operators take ONNX's operands and declare ONNX's
// attributes under their own names, in the newest opset's form and, where an opset moved an attribute to an operand,
// in both. A function beside the row bridges what differs: defaults that changed, enumerations, removed attributes.
#include "onnx/import_table.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "onnx/defined_sizes.hpp"
#include "onnx/import_spelled.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

Results generic(NodeImport& n, const char* op, AttrMap extra = {}) {
  AttrMap attrs = n.declared_attributes(*op_named(op));
  attrs.insert(attrs.end(), extra.begin(), extra.end());
  return n.emit(op, attrs, n.inputs, std::max<size_t>(1, n.output_count()));
}

/// How large the result is only data say.
Results counted(NodeImport& n, const char* op) {
  AttrMap attrs = n.declared_attributes(*op_named(op));
  if (const Node* same = same_node(n, op, attrs)) return {same->output()};
  attrs.emplace_back(kDefines, defines_of(n));
  return n.emit(op, attrs, n.inputs);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Error training() {
  return fail(E::unsupported_attribute, "training mode is not supported")
      .hint("export the model for inference (torch.onnx.export with training=EVAL)");
}

Results batch_norm(NodeImport& n, const char* op) {
  n.require_inputs(5, 5);
  if (n.integer("spatial", 1) == 0)
    throw fail(E::unsupported_attribute,
               "BatchNormalization with spatial = 0 (statistics per element) is not supported");
  if (n.integer("training_mode", 0) != 0) return import_training_batch_norm(n);
  if (n.output_count() > 1) throw training();
  n.ignore("momentum");
  return generic(n, op);
}

/// Nothing is dropped outside of training, nor where the ratio is 0.
Results dropout(NodeImport& n, const char* op) {
  n.ignore("seed");
  n.ignore("ratio");
  const Value *ratio = n.input(1), *mode = n.input(2);
  const bool keeps_all =
      ratio && ratio->is_constant() && ratio->constant->elements() == 1 && ratio->constant->real(0) == 0;
  if (mode && !keeps_all) {
    if (!mode->is_constant())
      throw fail(E::unsupported_attribute, "Dropout whose training mode is computed is not supported");
    if (mode->constant->elements() != 1 || mode->constant->integer(0) != 0) throw training();
  }
  n.inputs.resize(1);
  return generic(n, op);
}

/// Before opset 13 over all axes from `axis` on.
Results softmax(NodeImport& n, const char* op) {
  if (n.opset >= 13) return generic(n, op);
  return generic(n, op, {{"axis", n.integer("axis", 1)}, {"flatten", true}});
}

Results hardmax(NodeImport& n, const char* op) {
  if (n.opset >= 13 || !n.required(0)->type.shape.ranked) return softmax(n, op);
  Speller s(n);
  Value* x = n.required(0);
  Value* row = s.op("hardmax", {s.op("flatten", {x}, {{"axis", n.integer("axis", 1)}})}, {{"axis", int64_t{1}}});
  return {s.op("reshape", {row, s.op("shape", {x})})};
}

Results cast(NodeImport& n, const char*) { return import_cast(n); }
Results cast_like(NodeImport& n, const char*) { return import_cast_like(n); }

Results space_to_depth(NodeImport& n, const char* op) {
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw fail(E::bad_attribute, "mode is \"{}\"", mode);
  return mode == "CRD" ? import_space_to_depth_crd(n) : generic(n, op);
}

/// Of floats the type is told by an attribute too: exact evaluation knows their zero points as doubles.
Results quantize_linear(NodeImport& n, const char* op) {
  const Value* zero = n.input(2);
  AttrMap attrs = n.declared_attributes(*op_named(op));
  if (zero && is_float(zero->type.dtype) && !find(attrs, "output_dtype"))
    attrs.emplace_back("output_dtype", zero->type.dtype);
  return n.emit(op, attrs, n.inputs);
}

Results bit_shift(NodeImport& n, const char* op) {
  return generic(n, op, {{"direction", lower(n.text("direction", ""))}});
}

Results gelu(NodeImport& n, const char* op) {
  const std::string form = n.text("approximate", "none");
  if (form != "none" && form != "tanh") throw fail(E::bad_attribute, "approximate is \"{}\"", form);
  return generic(n, op, {{"form", std::string(form == "tanh" ? "tanh" : "exact")}});
}

Results group_norm(NodeImport& n, const char* op) {
  if (n.integer("stash_type", 1) != 1) throw fail(E::unsupported_attribute, "stash_type is not 1");
  if (n.opset >= 21) return generic(n, op);
  // Opset 18: scale and bias are per group; repeated they are per channel, [groups, channels / groups] as one axis.
  n.require_inputs(3, 3);
  const int64_t groups = n.integer("num_groups", 0);
  if (groups <= 0) throw fail(E::bad_attribute, "num_groups is {}", groups);
  Value* x = n.required(0);
  const Shape& shape = x->type.shape;
  if (!shape.ranked || shape.rank() < 2)
    throw fail(E::unsupported_op, "the operand is {}; opset 18 needs its rank", x->type.text());
  if (shape[1].is_constant() && shape[1].value() % groups != 0)
    throw fail(E::bad_attribute, "num_groups is {}, which does not divide {} channels", groups, shape[1].value());
  Speller s(n);
  Value* each = shape[1].is_constant() ? s.integers({shape[1].value() / groups})
                                       : s.op("div", {s.size_of(x, 1), s.integers({groups})});
  for (size_t i : {size_t{1}, size_t{2}}) {
    Value* columns = s.unsqueeze(n.required(i), 1);
    n.inputs[i] = s.reshape(s.op("expand", {columns, s.concat({s.integers({groups}), each}, 0)}), {-1});
  }
  return n.emit(op, {{"epsilon", n.real("epsilon", 1e-5)}, {"num_groups", groups}}, n.inputs);
}

Results layer_norm(NodeImport& n, const char* op) {
  if (n.integer("stash_type", 1) != 1) throw fail(E::unsupported_attribute, "stash_type is not 1");
  return generic(n, op);
}

/// Opset 16 says bilinear and bicubic, 20 linear and cubic for any number of axes.
Results grid_sample(NodeImport& n, const char* op) {
  n.require_inputs(2, 2);
  std::string mode = n.text("mode", "linear");
  if (mode == "bilinear" || mode == "bicubic") mode = mode.substr(2);
  return generic(n, op, {{"mode", mode}});
}

Results resize(NodeImport& n, const char*) { return import_resize(n); }
Results upsample(NodeImport& n, const char*) { return import_upsample(n); }

/// Before opset 18 parts without sizes are equal to the element: where the axis is open, sizes are written down, which
/// a run checks.
void split_evenly(NodeImport& n, AttrMap& attrs, int64_t parts) {
  Value* const x = n.required(0);
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  const int64_t axis = n.integer("axis", 0), at = axis < 0 ? axis + rank : axis;
  attrs.emplace_back("num_outputs", parts);
  if (!x->type.shape.ranked || at < 0 || at >= rank || parts < 1) return;
  const Dim& extent = x->type.shape[static_cast<size_t>(at)];
  if (mod(extent, Dim(parts)) == Dim(0)) return;
  if (extent.is_constant())
    throw fail(E::shape_mismatch, "{} elements along axis {} are not {} equal parts", extent.text(), at, parts);
  Speller s(n);
  Value* part = s.op("div", {s.size_of(x, at), s.integers({parts})});
  n.inputs = {x, s.concat(std::vector<Value*>(static_cast<size_t>(parts), part), 0)};
}

/// Without sizes the parts are equal; before opset 18 their number is that of the results.
Results split(NodeImport& n, const char* op) {
  const int64_t parts = static_cast<int64_t>(n.proto.outputs.size());
  AttrMap attrs = n.declared_attributes(*op_named(op));
  if (n.opset < 18 && !n.input(1) && !find(attrs, "split")) split_evenly(n, attrs, parts);
  return n.emit(op, attrs, n.inputs, static_cast<size_t>(parts));
}

/// The axis has no default: a file without one was written wrongly.
Results concat(NodeImport& n, const char* op) {
  if (!n.attribute("axis")) throw fail(E::bad_attribute, "attribute \"axis\" is missing");
  return n.emit(op, {{"axis", n.integer("axis", 0)}}, n.inputs);
}

Results constant_of_shape(NodeImport& n, const char* op) {
  const Tensor value = n.tensor("value").value_or(Tensor::scalar(DType::f32, 0));
  if (value.elements() != 1) throw fail(E::bad_attribute, "value has {} elements, one is needed", value.elements());
  const double real = is_float(value.dtype()) ? value.real(0) : static_cast<double>(value.integer(0));
  return generic(n, op, {{"value", real}, {"dtype", value.dtype()}});
}

/// Opset 1 said whether the sequence is a result; its name says it too.
Results recurrent(NodeImport& n, const char* op) {
  n.ignore("output_sequence");
  return generic(n, op);
}

struct Row {
  const char* onnx;
  const char* op;
  int64_t since = 7;     ///< first opset to write it in
  int64_t until = 1000;  ///< first opset that lacks it
  Results (*import)(NodeImport&, const char* op) = nullptr;
  int64_t read_since = 0;  ///< first opset that is read; 0: `since`
};

constexpr Row kRows[] = {
    {"Abs", "abs"},
    {"Acos", "acos"},
    {.onnx = "Acosh", .op = "acosh", .since = 9},
    {"Add", "add"},
    {"And", "and"},
    {"ArgMax", "arg_max"},
    {"ArgMin", "arg_min"},
    {"Asin", "asin"},
    {.onnx = "Asinh", .op = "asinh", .since = 9},
    {"Atan", "atan"},
    {.onnx = "Atanh", .op = "atanh", .since = 9},
    {"AveragePool", "average_pool"},
    {.onnx = "BatchNormalization", .op = "batch_norm", .import = batch_norm},
    {.onnx = "BitCast", .op = "bit_cast", .since = 26},
    {.onnx = "BitShift", .op = "bit_shift", .since = 11, .import = bit_shift},
    {.onnx = "BitwiseAnd", .op = "bitwise_and", .since = 18},
    {.onnx = "BitwiseNot", .op = "bitwise_not", .since = 18},
    {.onnx = "BitwiseOr", .op = "bitwise_or", .since = 18},
    {.onnx = "BitwiseXor", .op = "bitwise_xor", .since = 18},
    {.onnx = "Cast", .op = "cast", .import = cast},
    {.onnx = "CastLike", .op = "cast_like", .since = 15, .import = cast_like},
    {"Ceil", "ceil"},
    {.onnx = "Celu", .op = "celu", .since = 12},
    {"Clip", "clip"},
    {.onnx = "Compress", .op = "compress", .since = 9},
    {.onnx = "Concat", .op = "concat", .import = concat},
    {.onnx = "ConstantOfShape", .op = "constant_of_shape", .since = 9, .import = constant_of_shape},
    {"Conv", "conv"},
    {"ConvTranspose", "conv_transpose"},
    {"Cos", "cos"},
    {.onnx = "Cosh", .op = "cosh", .since = 9},
    {.onnx = "CumProd", .op = "cum_prod", .since = 26},
    {.onnx = "CumSum", .op = "cum_sum", .since = 11},
    {"DepthToSpace", "depth_to_space"},
    {.onnx = "DequantizeLinear", .op = "dequantize_linear", .since = 10},
    {"Div", "div"},
    {.onnx = "Dropout", .op = "dropout", .import = dropout},
    {.onnx = "Einsum", .op = "einsum", .since = 12},
    {"Elu", "elu"},
    {"Equal", "equal"},
    {.onnx = "Erf", .op = "erf", .since = 9},
    {"Exp", "exp"},
    {.onnx = "Expand", .op = "expand", .since = 8},
    {.onnx = "EyeLike", .op = "eye_like", .since = 9},
    {"Flatten", "flatten"},
    {"Floor", "floor"},
    {.onnx = "GRU", .op = "gru", .import = recurrent},
    {"Gather", "gather"},
    {.onnx = "GatherElements", .op = "gather_elements", .since = 11},
    {.onnx = "GatherND", .op = "gather_nd", .since = 11},
    {.onnx = "Gelu", .op = "gelu", .since = 20, .import = gelu},
    {"Gemm", "gemm"},
    {"GlobalAveragePool", "global_average_pool"},
    {"GlobalLpPool", "global_lp_pool"},
    {"GlobalMaxPool", "global_max_pool"},
    {"Greater", "greater"},
    {.onnx = "GreaterOrEqual", .op = "greater_or_equal", .since = 12},
    {.onnx = "GridSample", .op = "grid_sample", .since = 20, .import = grid_sample, .read_since = 16},
    {.onnx = "GroupNormalization", .op = "group_norm", .since = 21, .import = group_norm, .read_since = 18},
    {"HardSigmoid", "hard_sigmoid"},
    {.onnx = "HardSwish", .op = "hard_swish", .since = 14},
    {.onnx = "Hardmax", .op = "hardmax", .import = hardmax},
    {"Identity", "identity"},
    {"InstanceNormalization", "instance_norm"},
    {.onnx = "IsInf", .op = "is_inf", .since = 10},
    {.onnx = "IsNaN", .op = "is_nan", .since = 9},
    {"LRN", "lrn"},
    {.onnx = "LSTM", .op = "lstm", .import = recurrent},
    {.onnx = "LayerNormalization", .op = "layer_norm", .since = 17, .import = layer_norm},
    {"LeakyRelu", "leaky_relu"},
    {"Less", "less"},
    {.onnx = "LessOrEqual", .op = "less_or_equal", .since = 12},
    {"Log", "log"},
    {.onnx = "LogSoftmax", .op = "log_softmax", .import = softmax},
    {"LpPool", "lp_pool"},
    {"MatMul", "matmul"},
    {.onnx = "MatMulInteger", .op = "matmul_integer", .since = 10},
    {"Max", "max"},
    {"MaxPool", "max_pool"},
    {"Mean", "mean"},
    {"Min", "min"},
    {.onnx = "Mish", .op = "mish", .since = 18},
    {.onnx = "Mod", .op = "mod", .since = 10},
    {"Mul", "mul"},
    {"Neg", "neg"},
    {.onnx = "NonMaxSuppression", .op = "non_max_suppression", .since = 10, .import = counted},
    {.onnx = "NonZero", .op = "non_zero", .since = 9, .import = counted},
    {"Not", "not"},
    {.onnx = "OneHot", .op = "one_hot", .since = 9},
    {"Or", "or"},
    {"PRelu", "prelu"},
    {"Pad", "pad"},
    {"Pow", "pow"},
    {.onnx = "QuantizeLinear", .op = "quantize_linear", .since = 10, .import = quantize_linear},
    {.onnx = "RNN", .op = "rnn", .import = recurrent},
    {.onnx = "Range", .op = "range", .since = 11},
    {"Reciprocal", "reciprocal"},
    {"ReduceL1", "reduce_l1"},
    {"ReduceL2", "reduce_l2"},
    {"ReduceLogSum", "reduce_log_sum"},
    {"ReduceLogSumExp", "reduce_log_sum_exp"},
    {"ReduceMax", "reduce_max"},
    {"ReduceMean", "reduce_mean"},
    {"ReduceMin", "reduce_min"},
    {"ReduceProd", "reduce_prod"},
    {"ReduceSum", "reduce_sum"},
    {"ReduceSumSquare", "reduce_sum_square"},
    {"Relu", "relu"},
    {"Reshape", "reshape"},
    {.onnx = "Resize", .op = "resize", .since = 10, .import = resize},
    {.onnx = "Round", .op = "round", .since = 11},
    {.onnx = "Scatter", .op = "scatter_elements", .since = 9, .until = 11},
    {.onnx = "ScatterElements", .op = "scatter_elements", .since = 11},
    {.onnx = "ScatterND", .op = "scatter_nd", .since = 11},
    {"Selu", "selu"},
    {"Shape", "shape"},
    {.onnx = "Shrink", .op = "shrink", .since = 9},
    {"Sigmoid", "sigmoid"},
    {.onnx = "Sign", .op = "sign", .since = 9},
    {"Sin", "sin"},
    {.onnx = "Sinh", .op = "sinh", .since = 9},
    {"Size", "size"},
    {"Slice", "slice"},
    {.onnx = "Softmax", .op = "softmax", .import = softmax},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {.onnx = "SpaceToDepth", .op = "space_to_depth", .import = space_to_depth},
    {.onnx = "Split", .op = "split", .import = split},
    {"Sqrt", "sqrt"},
    {"Squeeze", "squeeze"},
    {"Sub", "sub"},
    {"Sum", "sum"},
    {.onnx = "Swish", .op = "silu", .since = 24},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {.onnx = "ThresholdedRelu", .op = "thresholded_relu", .since = 10},
    {"Tile", "tile"},
    {"TopK", "top_k"},
    {"Transpose", "transpose"},
    {.onnx = "Trilu", .op = "trilu", .since = 14},
    {.onnx = "Unique", .op = "unique", .since = 11},
    {"Unsqueeze", "unsqueeze"},
    {.onnx = "Upsample", .op = "resize", .until = 10, .import = upsample},
    {.onnx = "Where", .op = "where", .since = 9},
    {"Xor", "xor"},
};

static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const Row& a, const Row& b) { return Bytes(a.onnx) < Bytes(b.onnx); }));

const Row* find_row(Bytes onnx) {
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), onnx,
                                    [](const Row& a, Bytes name) { return Bytes(a.onnx) < name; });
  return row != std::end(kRows) && row->onnx == onnx ? row : nullptr;
}

}  // namespace

bool is_declared(std::string_view onnx_op) {
  if (onnx_op == "Constant" || is_spelled(onnx_op)) return true;
  const Row* row = find_row(onnx_op);
  return row && ops().find(row->op);
}

std::optional<std::vector<Value*>> import_known(NodeImport& node) {
  const bool old = node.opset < 7 && node.source.domain.empty();
  std::optional<Results> results = old ? import_legacy(node) : std::nullopt;
  if (!results) results = import_spelled(node);
  const Row* row = results ? nullptr : find_row(node.proto.op_type);
  if (row && ops().find(row->op)) results = row->import ? row->import(node, row->op) : generic(node, row->op);
  if (results) node.check_all_seen();
  return results;
}

std::string onnx_name(std::string_view op, int64_t opset, std::string_view preferred) {
  const Row* found = nullptr;
  for (const Row& row : kRows) {
    if (row.op != op || opset < row.since || opset >= row.until) continue;
    if (!found || row.onnx == preferred) found = &row;
  }
  return found ? found->onnx : "";
}

int64_t first_opset(std::string_view op) {
  int64_t first = 0;
  for (const Row& row : kRows)
    if (row.op == op && (first == 0 || row.since < first)) first = row.since;
  return first;
}

namespace {

/// How ONNX's own operator of that name is read.
std::optional<OperatorSupport> own_support(std::string_view onnx_op) {
  for (const StructuralOperator& s : structural_operators())
    if (s.onnx == onnx_op && s.domain.empty())
      return OperatorSupport{std::string(s.onnx), "", s.since, 0, std::string(s.how)};
  for (const SpelledOperator& s : spelled_operators())
    if (s.onnx == onnx_op && s.domain.empty()) return OperatorSupport{std::string(s.onnx), "", s.since};
  const Row* row = find_row(onnx_op);
  if (!row || !ops().find(row->op)) return std::nullopt;
  const int64_t since = row->read_since ? row->read_since : row->since == Row{}.since ? 1 : row->since;
  return OperatorSupport{row->onnx, row->op, since, row->until == Row{}.until ? 0 : row->until};
}

}  // namespace

std::vector<OperatorSupport> all_operator_support() {
  std::set<std::string_view> names;
  for (const Row& row : kRows) names.insert(row.onnx);
  for (const SpelledOperator& spelled : spelled_operators()) names.insert(spelled.onnx);
  for (const StructuralOperator& structural : structural_operators()) names.insert(structural.onnx);
  std::vector<OperatorSupport> all;
  for (std::string_view name : names) {
    if (auto support = own_support(name)) all.push_back(std::move(*support));
    for (const StructuralOperator& s : structural_operators())
      if (s.onnx == name && !s.domain.empty())
        all.push_back({std::string(s.onnx), "", s.since, 0, std::string(s.how), std::string(s.domain)});
    for (const SpelledOperator& s : spelled_operators())
      if (s.onnx == name && !s.domain.empty())
        all.push_back({std::string(s.onnx), "", s.since, 0, "", std::string(s.domain)});
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> operator_names() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Row& row : kRows)
    if (is_declared(row.onnx)) names.emplace_back(row.onnx, row.op);
  return names;
}

}  // namespace opfuse::onnx
