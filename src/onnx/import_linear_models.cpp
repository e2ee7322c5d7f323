// What sklearn's converters write of ai.onnx.ml besides scalers: a product, a comparison, a norm.
//   LinearRegressor     x W^T + b                    LinearClassifier   the label of the largest score, and all scores
//   Normalizer          x / max(x), sum |x| or sqrt(sum x^2) of its row; as it is where that is 0
//   Imputer             one value, or one for each column, where x is the value that stands for none
//   OneHotEncoder       1 where x is the category         FeatureVectorizer  columns of all operands, one after another
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

Error of_strings(const char* what) {
  return fail(E::unsupported_op, "{} are strings, and kernels compute with numbers alone", what)
      .hint("convert the model with classes and categories as whole numbers");
}

/// What a node gives: `scores` after its attribute post_transform.
Value* transformed(NodeImport& n, Speller& s, Value* scores) {
  const std::string how = n.text("post_transform", "NONE");
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return s.op("sigmoid", {scores});
  if (how == "SOFTMAX") return s.op("softmax", {scores}, {{"axis", int64_t{1}}});
  throw fail(E::unsupported_attribute, "post_transform is \"{}\"", how);
}

Value* rows(Speller& s, Value* x) {
  const size_t rank = rank_of(x, "x");
  if (rank != 1 && rank != 2) throw fail(E::rank_mismatch, "x is {}; rows of numbers are expected", x->type.text());
  return s.cast(rank == 1 ? s.unsqueeze(x, 0) : x, DType::f32);
}

/// x W^T + b with `count` rows of coefficients.
Value* linear(NodeImport& n, Speller& s, int64_t count) {
  const std::vector<double> weights = n.reals("coefficients").value_or(std::vector<double>{});
  const auto all = static_cast<int64_t>(weights.size());
  if (count <= 0 || all == 0 || all % count != 0)
    throw fail(E::bad_attribute, "{} coefficients do not make {} rows", all, count);
  Value* w = n.constant(Tensor::of(DType::f32, {count, all / count}, weights));
  std::vector<Value*> operands{rows(s, n.required(0)), w};
  if (const auto b = n.reals("intercepts"); b && !b->empty()) {
    if (static_cast<int64_t>(b->size()) != count)
      throw fail(E::bad_attribute, "{} intercepts for {} rows of coefficients", b->size(), count);
    operands.push_back(n.constant(Tensor::of(DType::f32, {count}, *b)));
  }
  return s.op("gemm", operands, {{"transB", true}});
}

Value* row_norm(Speller& s, Value* x, const std::string& norm) {
  const AttrMap keep{{"keepdims", true}};
  Value* last = s.integers({-1});
  if (norm == "MAX") return s.op("reduce_max", {x, last}, keep);
  if (norm == "L1") return s.op("reduce_l1", {x, last}, keep);
  if (norm == "L2") return s.op("reduce_l2", {x, last}, keep);
  throw fail(E::bad_attribute, "norm is \"{}\"", norm);
}

}  // namespace

Results import_linear_regressor(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  return {transformed(n, s, linear(n, s, n.integer("targets", 1)))};
}

Results import_linear_classifier(NodeImport& n) {
  n.require_inputs(1, 1);
  if (n.has("classlabels_strings")) throw of_strings("the classes");
  const auto labels = n.integers("classlabels_ints");
  if (!labels || labels->size() < 2) throw fail(E::unsupported_op, "fewer than two classes are listed");
  n.ignore("multi_class");  // how it was trained
  Speller s(n);
  Value* scores = linear(n, s, static_cast<int64_t>(labels->size()));
  Value* best = s.op("arg_max", {scores}, {{"axis", int64_t{1}}, {"keepdims", false}});
  Value* label = s.op("gather", {s.integers(*labels), best}, {{"axis", int64_t{0}}});
  return {label, transformed(n, s, scores)};
}

Results import_normalizer(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = s.cast(n.required(0), DType::f32);
  if (rank_of(x, "x") == 0) throw fail(E::rank_mismatch, "x is {}", x->type.text());
  Value* norm = row_norm(s, x, n.text("norm", "MAX"));
  Value* none = s.op("equal", {norm, s.number(0, DType::f32)});
  return {s.op("div", {x, s.op("where", {none, s.number(1, DType::f32), norm})})};
}

Results import_imputer(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = n.required(0);
  const DType dtype = x->type.dtype;
  Value *values = nullptr, *missing = nullptr;
  if (is_float(dtype)) {
    const auto given = n.reals("imputed_value_floats");
    if (!given || given->empty()) throw fail(E::bad_attribute, "imputed_value_floats is missing");
    const double replaced = n.real("replaced_value_float", 0);
    values = n.constant(Tensor::of(dtype, {static_cast<int64_t>(given->size())}, *given));
    missing = std::isnan(replaced) ? s.op("is_nan", {x}) : s.op("equal", {x, s.number(replaced, dtype)});
    n.ignore("replaced_value_int64");
  } else {
    const auto given = n.integers("imputed_value_int64s");
    if (!given || given->empty()) throw fail(E::bad_attribute, "imputed_value_int64s is missing");
    values = s.cast(s.integers(*given), dtype);
    missing = s.op("equal", {x, s.cast(s.integers({n.integer("replaced_value_int64", 0)}), dtype)});
    n.ignore("replaced_value_float");
  }
  return {s.op("where", {missing, values, x})};
}

Results import_one_hot_encoder(NodeImport& n) {
  n.require_inputs(1, 1);
  if (n.has("cats_strings")) throw of_strings("the categories");
  const auto categories = n.integers("cats_int64s");
  if (!categories || categories->empty()) throw fail(E::bad_attribute, "cats_int64s is missing");
  if (n.integer("zeros", 1) == 0)
    throw fail(E::unsupported_attribute,
               "zeros = 0, which makes a value outside of the categories an error, is not supported")
        .hint("export with zeros = 1 (sklearn: handle_unknown=\"ignore\"): such a value gives a row of zeros");
  Speller s(n);
  Value* x = s.unsqueeze(s.cast(n.required(0), DType::i64), static_cast<int64_t>(rank_of(n.required(0), "x")));
  return {s.cast(s.op("equal", {x, s.integers(*categories)}), DType::f32)};
}

Results import_feature_vectorizer(NodeImport& n) {
  n.require_inputs(1, n.inputs.size());
  const auto widths = n.integers("inputdimensions");
  Speller s(n);
  std::vector<Value*> parts;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    parts.push_back(rows(s, n.required(i)));
    const Dim& width = parts.back()->type.shape[1];
    if (widths && (i >= widths->size() || !(width == Dim((*widths)[i]))))
      throw fail(E::unsupported_attribute, "inputdimensions are not the columns of operand {}, {}", i, width.text());
  }
  return {s.concat(parts, 1)};
}

}  // namespace opfuse::onnx
