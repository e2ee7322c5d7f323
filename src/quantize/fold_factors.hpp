// Factors of channels taken into what makes a tensor.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::quantization {

/// Multiplies channel c of `value` (along `axis`) by factors[c], in the constants of its producers: weights and biases
/// of products, scales of norms; behind Relu, LeakyRelu, max-pools and additions of constants too, factors being
/// positive. False: something stands there that does not take them, or is read elsewhere or one of `kept`; then nothing
/// was changed. What is read of `value` itself is the caller's concern. Changed values lose their names' meaning: they
/// get new ones.
bool fold_factors(Graph& graph, Value* value, size_t axis, const std::vector<double>& factors,
                  const std::set<int>& kept);

/// "x_equalized", or what is not taken yet; nothing stays nothing.
std::string equalized_name(const Graph& graph, const std::string& name);

}  // namespace opfuse::quantization
