// The catalogue, and what its patterns share.
#include "fusion/patterns.hpp"

#include <fmt/format.h>

#include "ops/gemm.hpp"

namespace opfuse {

const std::vector<FusionPattern>& fusion_patterns() {
  static const std::vector<FusionPattern> kAll{
      stem_conv_bn_relu_max_pool(),
      conv_bn_add_relu(),
      conv_bn_relu(),
      conv_bn(),
      linear_relu(),
      linear(),
      layer_norm(),
      mha_in_projection(),
      scaled_dot_product_attention(),
      adaptive_avg_pool(),
  };
  return kAll;
}

Pattern conv_block() { return op("conv", "conv") >> maybe(op("batch_norm", "bn")); }

static std::optional<Decline> plain_gemm(const Node& node) {
  if (!node.is("gemm") || !node.as<Gemm>().transA) return std::nullopt;
  return Decline{"gemm_attributes", describe(node) + " transposes its data operand", {}};
}

static std::optional<Decline> weight_matrix(const Node& node) {
  const Shape& w = node.input(1)->type.shape;
  if (w.ranked && w.rank() == 2) return std::nullopt;
  return Decline{"weight_rank", fmt::format("the weight of {} is {}, not a matrix", describe(node), w.text()), {}};
}

Pattern linear_block() {
  return one_of({tensor() >> op("gemm", "linear").with(constant("w"), maybe(constant("b"))).where({"", plain_gemm}),
                 tensor() >> op("matmul", "linear").with(constant("w")).where({"", weight_matrix}) >>
                     maybe(op("add", "bias").with(constant("b")))});
}

MatchPredicate one_float_dtype(std::vector<std::string> bindings) {
  return {"one real type", [bindings = std::move(bindings)](const Match& m) -> std::optional<Decline> {
            const DType first = m.value(bindings.front())->type.dtype;
            for (const std::string& b : bindings) {
              const Value* v = m.value(b);
              if (!v || (is_float(v->type.dtype) && v->type.dtype == first)) continue;
              return Decline{"dtype",
                             fmt::format("\"{}\" is {}, \"{}\" is {}", bindings.front(), name_of(first), b,
                                         name_of(v->type.dtype)),
                             {}};
            }
            return std::nullopt;
          }};
}

MatchPredicate bias_along_last_axis() {
  return {"bias along the last axis", [](const Match& m) -> std::optional<Decline> {
            const Node* add = m.node("bias");
            if (!add) return std::nullopt;
            const Shape &y = add->output()->type.shape, &b = m.value("b")->type.shape;
            const bool row = b.rank() == 0 || (b.elements() == b.dims.back());
            if (row && add->output()->type == m.value("linear")->type) return std::nullopt;
            return Decline{"bias_shape", fmt::format("the bias is {}, the result {}", b.text(), y.text()), {}};
          }};
}

}  // namespace opfuse
