// ONNX operators without a counterpart: they are read as the function bodies that ONNX gives them, in opfuse's
// operators, and recomposition names them again.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/located.hpp"
#include "onnx/node_import.hpp"

namespace opfuse::onnx {

/// The results of a node, or nullopt when it is none of these operators.
std::optional<std::vector<Value*>> import_spelled(NodeImport& node);

bool is_spelled(std::string_view onnx_op, std::string_view domain = {});

struct SpelledOperator {
  std::string_view onnx;
  int64_t since;  ///< first opset that has it
  std::vector<Value*> (*import)(NodeImport&);
  std::string_view domain = {};
};
std::span<const SpelledOperator> spelled_operators();

/// Writes a body down, operator by operator.
class Speller {
 public:
  explicit Speller(NodeImport& node) : node_(node) {}
  const Limits& limits() const { return node_.limits; }

  Value* op(const char* name, std::vector<Value*> operands, const AttrMap& attrs = {}) {
    return node_.emit(name, attrs, std::move(operands))[0];
  }
  Value* integers(const std::vector<int64_t>& values) { return node_.integers_constant(values); }
  Value* number(double value, DType dtype) { return node_.constant(Tensor::scalar(dtype, value)); }
  Value* cast(Value* x, DType to) { return x->type.dtype == to ? x : op("cast", {x}, {{"to", to}}); }
  Value* reshape(Value* x, const std::vector<int64_t>& shape) { return op("reshape", {x, integers(shape)}); }
  Value* transpose(Value* x, const std::vector<int64_t>& perm) { return op("transpose", {x}, {{"perm", perm}}); }
  Value* unsqueeze(Value* x, int64_t axis) { return op("unsqueeze", {x, integers({axis})}); }
  /// x[.., from:to:step, ..] along `axis`
  Value* slice(Value* x, int64_t axis, int64_t from, int64_t to, int64_t step = 1) {
    return op("slice", {x, integers({from}), integers({to}), integers({axis}), integers({step})});
  }
  Value* concat(std::vector<Value*> parts, int64_t axis) { return op("concat", std::move(parts), {{"axis", axis}}); }
  /// The size of `axis` as a vector of one.
  Value* size_of(Value* x, int64_t axis) { return slice(op("shape", {x}), 0, axis, axis + 1); }

 private:
  NodeImport& node_;
};

/// Operators in the form of opset 1 to 6: the results, or nullopt after `node` was brought into the form of opset 7.
std::optional<std::vector<Value*>> import_legacy(NodeImport& node);  // import_legacy.cpp

std::vector<Value*> import_attention(NodeImport& node);          // import_attention.cpp
std::vector<Value*> import_rms_normalization(NodeImport& node);  // import_spelled.cpp
/// x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from `axis` on, in at least single precision.
Value* rms_norm(Speller& s, Value* x, Value* scale, int64_t axis, double epsilon);

std::vector<Value*> import_rotary_embedding(NodeImport& node);  // import_rotary.cpp
std::vector<Value*> import_contrib_rotary_embedding(NodeImport& node);

std::vector<Value*> import_lp_normalization(NodeImport& node);  // import_composed.cpp
std::vector<Value*> import_mean_variance_normalization(NodeImport& node);
std::vector<Value*> import_training_batch_norm(NodeImport& node);
std::vector<Value*> import_nll_loss(NodeImport& node);
std::vector<Value*> import_softmax_cross_entropy(NodeImport& node);

std::vector<Value*> import_qlinear_conv(NodeImport& node);  // import_quantized.cpp
std::vector<Value*> import_qlinear_matmul(NodeImport& node);
std::vector<Value*> import_matmul_integer(NodeImport& node);
std::vector<Value*> import_conv_integer(NodeImport& node);
std::vector<Value*> import_dynamic_quantize_linear(NodeImport& node);
/// Sums of products of (a - a_zero) (b - b_zero) in i32; the zero points may be null.  product_of_codes.cpp
Value* product_of_codes(Speller& s, NodeImport& node, Value* a, Value* b, Value* a_zero, Value* b_zero);
/// Constant codes [K, N] that are i8 once their zero points are subtracted.
bool fits_i8(const Value* b, const Value* b_zero);
struct DynamicCodes {
  Value *codes, *scale, *zero;
};
/// The product of codes as real numbers, plus a bias; zero points and the bias may be null.
/// import_contrib_quantized.cpp
Value* real_product(NodeImport& n, Speller& s, const DynamicCodes& a, const DynamicCodes& b, Value* bias);
/// What DynamicQuantizeLinear makes of x.
DynamicCodes dynamic_codes(Speller& s, Value* x);

std::vector<Value*> import_contrib_quantize(NodeImport& node);  // import_contrib_quantized.cpp
std::vector<Value*> import_contrib_dequantize(NodeImport& node);
std::vector<Value*> import_contrib_qlinear_conv(NodeImport& node);
std::vector<Value*> import_qlinear_add(NodeImport& node);
std::vector<Value*> import_qlinear_mul(NodeImport& node);
std::vector<Value*> import_qlinear_sigmoid(NodeImport& node);
std::vector<Value*> import_qlinear_softmax(NodeImport& node);
std::vector<Value*> import_qlinear_leaky_relu(NodeImport& node);
std::vector<Value*> import_qlinear_average_pool(NodeImport& node);
std::vector<Value*> import_qlinear_global_average_pool(NodeImport& node);
std::vector<Value*> import_qlinear_reduce_mean(NodeImport& node);
std::vector<Value*> import_qlinear_concat(NodeImport& node);
std::vector<Value*> import_qlinear_where(NodeImport& node);
std::vector<Value*> import_qgemm(NodeImport& node);
std::vector<Value*> import_matmul_integer_to_float(NodeImport& node);
std::vector<Value*> import_dynamic_quantize_matmul(NodeImport& node);

std::vector<Value*> import_contrib_gelu(NodeImport& node);  // import_contrib_fused.cpp
std::vector<Value*> import_bias_gelu(NodeImport& node);
std::vector<Value*> import_fast_gelu(NodeImport& node);
std::vector<Value*> import_quick_gelu(NodeImport& node);
std::vector<Value*> import_fused_matmul(NodeImport& node);
std::vector<Value*> import_fused_gemm(NodeImport& node);
std::vector<Value*> import_fused_conv(NodeImport& node);
std::vector<Value*> import_skip_layer_norm(NodeImport& node);
std::vector<Value*> import_skip_rms_norm(NodeImport& node);
std::vector<Value*> import_simplified_layer_norm(NodeImport& node);
std::vector<Value*> import_embed_layer_norm(NodeImport& node);

std::vector<Value*> import_contrib_attention(NodeImport& node);  // import_contrib_attention.cpp
std::vector<Value*> import_multi_head_attention(NodeImport& node);
std::vector<Value*> import_qattention(NodeImport& node);
std::vector<Value*> import_group_query_attention(NodeImport& node);  // import_group_query_attention.cpp

std::vector<Value*> import_expand_dims(NodeImport& node);  // import_contrib_shaped.cpp
std::vector<Value*> import_contrib_trilu(NodeImport& node);
std::vector<Value*> import_contrib_gather_nd(NodeImport& node);
std::vector<Value*> import_contrib_pad(NodeImport& node);
std::vector<Value*> import_cdist(NodeImport& node);
std::vector<Value*> import_nhwc_max_pool(NodeImport& node);
std::vector<Value*> import_bias_softmax(NodeImport& node);
std::vector<Value*> import_bias_add(NodeImport& node);
std::vector<Value*> import_bias_split_gelu(NodeImport& node);
std::vector<Value*> import_contrib_group_norm(NodeImport& node);
std::vector<Value*> import_skip_group_norm(NodeImport& node);

std::vector<Value*> import_linear_regressor(NodeImport& node);  // import_linear_models.cpp
std::vector<Value*> import_linear_classifier(NodeImport& node);
std::vector<Value*> import_normalizer(NodeImport& node);
std::vector<Value*> import_imputer(NodeImport& node);
std::vector<Value*> import_one_hot_encoder(NodeImport& node);
std::vector<Value*> import_feature_vectorizer(NodeImport& node);

std::vector<Value*> import_matmul_nbits(NodeImport& node);  // import_packed_weights.cpp

std::vector<Value*> import_dft(NodeImport& node);  // import_signal.cpp
std::vector<Value*> import_stft(NodeImport& node);
std::vector<Value*> import_hann_window(NodeImport& node);
std::vector<Value*> import_hamming_window(NodeImport& node);
std::vector<Value*> import_blackman_window(NodeImport& node);
std::vector<Value*> import_mel_weight_matrix(NodeImport& node);

std::vector<Value*> import_center_crop_pad(NodeImport& node);  // import_arranged.cpp
std::vector<Value*> import_compress(NodeImport& node);
std::vector<Value*> import_reverse_sequence(NodeImport& node);
std::vector<Value*> import_tensor_scatter(NodeImport& node);
std::vector<Value*> import_space_to_depth_crd(NodeImport& node);
std::vector<Value*> import_max_unpool(NodeImport& node);
std::vector<Value*> import_col2im(NodeImport& node);
std::vector<Value*> import_affine_grid(NodeImport& node);
std::vector<Value*> import_unique(NodeImport& node);
/// 0, 1, .. along an axis that may be open.
Value* positions_along(Speller& s, Value* x, size_t axis);

std::vector<Value*> import_roi_align(NodeImport& node);  // import_sampled.cpp
std::vector<Value*> import_deform_conv(NodeImport& node);

std::vector<Value*> import_array_feature_extractor(NodeImport& node);  // import_learning.cpp
std::vector<Value*> import_binarizer(NodeImport& node);
std::vector<Value*> import_scaler(NodeImport& node);

std::vector<Value*> import_linear_attention(NodeImport& node);  // import_linear_attention.cpp
std::vector<Value*> import_causal_conv_with_state(NodeImport& node);
std::vector<Value*> import_swiglu(NodeImport& node);
std::vector<Value*> import_det(NodeImport& node);

std::vector<Value*> import_resize(NodeImport& node);  // import_resize.cpp
std::vector<Value*> import_upsample(NodeImport& node);

std::vector<Value*> import_cast(NodeImport& node);  // import_cast.cpp
std::vector<Value*> import_cast_like(NodeImport& node);
std::vector<Value*> import_bit_cast(NodeImport& node);

std::vector<Value*> import_momentum(NodeImport& node);  // import_training.cpp
std::vector<Value*> import_adagrad(NodeImport& node);
std::vector<Value*> import_adam(NodeImport& node);

}  // namespace opfuse::onnx
