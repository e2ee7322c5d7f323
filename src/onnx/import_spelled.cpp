// RMSNormalization (opset 23), and the list of operators that are read as their bodies.
//   y = x / sqrt(mean(x^2) + epsilon) * scale           statistics in at least single precision
#include "onnx/import_spelled.hpp"

#include "base/fail.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr std::string_view kContrib = "com.microsoft";

constexpr std::string_view kLearning = "ai.onnx.ml";

constexpr SpelledOperator kSpelled[] = {
    {"Adagrad", 1, import_adagrad, kTraining},
    {"Adam", 1, import_adam, kTraining},
    {"AffineGrid", 20, import_affine_grid},
    {"Attention", 23, import_attention},
    {"BitCast", 26, import_bit_cast},
    {"BlackmanWindow", 17, import_blackman_window},
    {"CausalConvWithState", 27, import_causal_conv_with_state},
    {"CenterCropPad", 18, import_center_crop_pad},
    {"Col2Im", 18, import_col2im},
    {"Compress", 9, import_compress},
    {"ConvInteger", 10, import_conv_integer},
    {"DFT", 17, import_dft},
    {"DeformConv", 19, import_deform_conv},
    {"Det", 11, import_det},
    {"DynamicQuantizeLinear", 11, import_dynamic_quantize_linear},
    {"HammingWindow", 17, import_hamming_window},
    {"HannWindow", 17, import_hann_window},
    {"LinearAttention", 27, import_linear_attention},
    {"LpNormalization", 1, import_lp_normalization},
    {"MatMulInteger", 10, import_matmul_integer},
    {"MaxUnpool", 9, import_max_unpool},
    {"MeanVarianceNormalization", 9, import_mean_variance_normalization},
    {"MelWeightMatrix", 17, import_mel_weight_matrix},
    {"Momentum", 1, import_momentum, kTraining},
    {"NegativeLogLikelihoodLoss", 12, import_nll_loss},
    {"QLinearConv", 10, import_qlinear_conv},
    {"QLinearMatMul", 10, import_qlinear_matmul},
    {"RMSNormalization", 23, import_rms_normalization},
    {"ReverseSequence", 10, import_reverse_sequence},
    {"RoiAlign", 10, import_roi_align},
    {"RotaryEmbedding", 23, import_rotary_embedding},
    {"STFT", 17, import_stft},
    {"SimplifiedLayerNormalization", 1, import_simplified_layer_norm},
    {"SoftmaxCrossEntropyLoss", 12, import_softmax_cross_entropy},
    {"SwiGLU", 28, import_swiglu},
    {"TensorScatter", 24, import_tensor_scatter},
    {"Unique", 11, import_unique},
    {"Attention", 1, import_contrib_attention, kContrib},
    {"BiasAdd", 1, import_bias_add, kContrib},
    {"BiasGelu", 1, import_bias_gelu, kContrib},
    {"BiasSoftmax", 1, import_bias_softmax, kContrib},
    {"BiasSplitGelu", 1, import_bias_split_gelu, kContrib},
    {"CDist", 1, import_cdist, kContrib},
    {"DequantizeLinear", 1, import_contrib_dequantize, kContrib},
    {"DynamicQuantizeMatMul", 1, import_dynamic_quantize_matmul, kContrib},
    {"EmbedLayerNormalization", 1, import_embed_layer_norm, kContrib},
    {"ExpandDims", 1, import_expand_dims, kContrib},
    {"FastGelu", 1, import_fast_gelu, kContrib},
    {"FusedConv", 1, import_fused_conv, kContrib},
    {"FusedGemm", 1, import_fused_gemm, kContrib},
    {"FusedMatMul", 1, import_fused_matmul, kContrib},
    {"GatherND", 1, import_contrib_gather_nd, kContrib},
    {"Gelu", 1, import_contrib_gelu, kContrib},
    {"GroupNorm", 1, import_contrib_group_norm, kContrib},
    {"GroupQueryAttention", 1, import_group_query_attention, kContrib},
    {"MatMulIntegerToFloat", 1, import_matmul_integer_to_float, kContrib},
    {"MatMulNBits", 1, import_matmul_nbits, kContrib},
    {"MultiHeadAttention", 1, import_multi_head_attention, kContrib},
    {"NhwcMaxPool", 1, import_nhwc_max_pool, kContrib},
    {"Pad", 1, import_contrib_pad, kContrib},
    {"QAttention", 1, import_qattention, kContrib},
    {"QGemm", 1, import_qgemm, kContrib},
    {"QLinearAdd", 1, import_qlinear_add, kContrib},
    {"QLinearAveragePool", 1, import_qlinear_average_pool, kContrib},
    {"QLinearConcat", 1, import_qlinear_concat, kContrib},
    {"QLinearConv", 1, import_contrib_qlinear_conv, kContrib},
    {"QLinearGlobalAveragePool", 1, import_qlinear_global_average_pool, kContrib},
    {"QLinearLeakyRelu", 1, import_qlinear_leaky_relu, kContrib},
    {"QLinearMul", 1, import_qlinear_mul, kContrib},
    {"QLinearReduceMean", 1, import_qlinear_reduce_mean, kContrib},
    {"QLinearSigmoid", 1, import_qlinear_sigmoid, kContrib},
    {"QLinearSoftmax", 1, import_qlinear_softmax, kContrib},
    {"QLinearWhere", 1, import_qlinear_where, kContrib},
    {"QuantizeLinear", 1, import_contrib_quantize, kContrib},
    {"QuickGelu", 1, import_quick_gelu, kContrib},
    {"RotaryEmbedding", 1, import_contrib_rotary_embedding, kContrib},
    {"SkipGroupNorm", 1, import_skip_group_norm, kContrib},
    {"SkipLayerNormalization", 1, import_skip_layer_norm, kContrib},
    {"SkipSimplifiedLayerNormalization", 1, import_skip_rms_norm, kContrib},
    {"TransposeMatMul", 1, import_fused_matmul, kContrib},
    {"Trilu", 1, import_contrib_trilu, kContrib},
    {"ArrayFeatureExtractor", 1, import_array_feature_extractor, kLearning},
    {"Binarizer", 1, import_binarizer, kLearning},
    {"FeatureVectorizer", 1, import_feature_vectorizer, kLearning},
    {"Imputer", 1, import_imputer, kLearning},
    {"LinearClassifier", 1, import_linear_classifier, kLearning},
    {"LinearRegressor", 1, import_linear_regressor, kLearning},
    {"Normalizer", 1, import_normalizer, kLearning},
    {"OneHotEncoder", 1, import_one_hot_encoder, kLearning},
    {"Scaler", 1, import_scaler, kLearning},
};

const SpelledOperator* find_spelled(std::string_view onnx, std::string_view domain) {
  for (const SpelledOperator& row : kSpelled)
    if (row.onnx == onnx && row.domain == domain) return &row;
  return nullptr;
}

}  // namespace

Value* rms_norm(Speller& s, Value* x, Value* scale, int64_t axis, double epsilon) {
  const auto rank = static_cast<int64_t>(rank_of(x, "x"));
  if (axis < -rank || axis >= rank) throw fail(E::bad_attribute, "axis is {}, x has {} dimensions", axis, rank);
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis + rank : axis; i < rank; ++i) axes.push_back(i);
  const DType dtype = x->type.dtype, wide = byte_size(dtype) < 4 ? DType::f32 : dtype;
  Value* y = s.cast(x, wide);
  Value* mean = s.op("reduce_mean", {s.op("mul", {y, y}), s.integers(axes)});
  Value* root = s.op("sqrt", {s.op("add", {mean, s.number(epsilon, wide)})});
  return s.op("mul", {s.cast(s.op("div", {y, root}), dtype), scale});
}

Results import_rms_normalization(NodeImport& n) {
  n.require_inputs(2, 2);
  if (n.integer("stash_type", 1) != 1) throw fail(E::unsupported_attribute, "stash_type is not 1");
  Speller s(n);
  return {rms_norm(s, n.required(0), n.required(1), n.integer("axis", -1), n.real("epsilon", 1e-5))};
}

std::optional<Results> import_spelled(NodeImport& node) {
  const SpelledOperator* row = find_spelled(node.proto.op_type, node.source.domain);
  if (!row) return std::nullopt;
  return row->import(node);
}

std::span<const SpelledOperator> spelled_operators() { return kSpelled; }

bool is_spelled(std::string_view onnx_op, std::string_view domain) { return find_spelled(onnx_op, domain) != nullptr; }

}  // namespace opfuse::onnx
