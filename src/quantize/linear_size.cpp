// Weights of a convolution are [O, C/group, ...], of a MatMul [K, N], of a Gemm either way round.
#include "quantize/linear_size.hpp"

#include <fmt/format.h>

#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "match/attention.hpp"
#include "match/pattern.hpp"
#include "match/qdq.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {
namespace {

bool is_projections(const Node& node) { return node.body && operator_name(node) == kInProjection; }

/// Calls take(product, weights as the graph around `node` has them).
template <class F>
void each_product(const Node& node, F&& take) {
  if (!is_projections(node)) return take(node, node.input(1));
  for (const Node* inner : node.body->nodes())
    if (is_matrix_product(*inner)) take(*inner, outside_of(node, inner->input(1)));
}

std::optional<Decline> unfit(const Node& product, const Value* weights) {
  const auto no = [&](const char* code, std::string message) {
    return Decline{code, std::move(message), {product.name()}};
  };
  if (!weights || !is_constant_or_dequantized(weights))
    return no("variable_weights", fmt::format("the weights of {} are computed", describe(product)));
  if (weights->is_constant() && weights->constant->dtype() != DType::f32)
    return no("not_f32", fmt::format("the weights of {} are {}", describe(product), weights->type.text()));
  const Value* bias = product.input(2);
  for (const Value* constant : {weights, bias})
    if (constant && constant->is_constant() && !all_finite(*constant->constant))
      return no("not_finite",
                fmt::format("'{}' of {} holds NaN or infinities", value_name(*constant), describe(product)));
  if (is_matrix_product(product) && weights->type.shape.rank() != 2)
    return no("rank", fmt::format("the weights of {} are {}, not a matrix", describe(product), weights->type.text()));
  if (is_matrix_product(product) && product.input(0)->type.shape.rank() < 2)  // OpenVINO gives codes two axes
    return no("rank",
              fmt::format("the data of {} are {}, not a matrix", describe(product), product.input(0)->type.text()));
  if (!is_a<Gemm>(product)) return std::nullopt;
  const Gemm::Attrs& a = product.as<Gemm>();
  if (a.alpha == 1 && a.beta == 1 && !a.transA) return std::nullopt;
  return no("gemm_attributes",
            fmt::format("{} has alpha {:g}, beta {:g}, transA {}", describe(product), a.alpha, a.beta, a.transA));
}

}  // namespace

bool holds_product(const Node& node) { return is_a<Conv>(node) || is_matrix_product(node) || is_projections(node); }

std::vector<LinearSize> linear_sizes(const Node& node) {
  std::vector<LinearSize> sizes;
  if (is_a<Conv>(node)) return sizes;
  each_product(node, [&](const Node& product, const Value* weights) {
    const Shape& w = weights->type.shape;
    const size_t out = output_axis(product);
    sizes.push_back({w[1 - out].value(), w[out].value()});
  });
  return sizes;
}

std::optional<Decline> unfit_weights(const Node& node) {
  std::optional<Decline> why;
  each_product(node, [&](const Node& product, const Value* weights) {
    if (!why) why = unfit(product, weights);
  });
  return why;
}

size_t output_axis(const Node& product) {
  if (is_a<Conv>(product) || (is_a<Gemm>(product) && product.as<Gemm>().transB)) return 0;
  return 1;
}

}  // namespace opfuse::quantization
