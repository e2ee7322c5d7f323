//     x -- softmax over axes 1.. of [2, 3, 4]       =       x -- Reshape [2, 12] -- Softmax -- Reshape [2, 3, 4]
//
// Until opset 13 Softmax, LogSoftmax and Hardmax saw a matrix; since then they work along one axis.
#include <algorithm>

#include "onnx/graph_writer.hpp"
#include "ops/is_a.hpp"
#include "ops/softmax.hpp"

namespace opfuse::onnx {
namespace {

constexpr int64_t kOpsetOfAxis = 13;

const SoftmaxAttrs* softmax_of(const Node& node) {
  if (is_a<Softmax>(node)) return &node.as<Softmax>();
  if (is_a<LogSoftmax>(node)) return &node.as<LogSoftmax>();
  return is_a<Hardmax>(node) ? &node.as<Hardmax>() : nullptr;
}

int64_t first_flattened(const SoftmaxAttrs& attrs, const Shape& x) {
  return attrs.axis < 0 ? attrs.axis + static_cast<int64_t>(x.rank()) : attrs.axis;
}

/// Sizes for a Reshape, where 0 keeps the size of that axis and -1 is what is left.
Tensor target(int64_t kept, const std::vector<Dim>& others) {
  std::vector<int64_t> sizes(static_cast<size_t>(kept), 0);
  for (const Dim& d : others) sizes.push_back(d.is_constant() ? d.value() : -1);
  return Tensor::from_i64(sizes);
}

}  // namespace

bool GraphWriter::is_flattened(const Node& node) const {
  const SoftmaxAttrs* attrs = softmax_of(node);
  const Shape* x = attrs ? &node.input(0)->type.shape : nullptr;
  if (!attrs || !attrs->flatten || opset_ < kOpsetOfAxis || scope_->function || !x->ranked) return false;
  const int64_t axis = first_flattened(*attrs, *x), rank = static_cast<int64_t>(x->rank());
  const auto open = [](const Dim& d) { return !d.is_constant(); };
  const auto empty = [](const Dim& d) { return d.is_constant() && d.value() == 0; };  // a Reshape reads 0 otherwise
  const auto from = x->dims.begin() + axis, to = x->dims.end();
  return axis != rank - 1 && std::count_if(from, to, open) <= 1 && std::none_of(from, to, empty);
}

void GraphWriter::write_flattened(const Node& node, const Bindings& bindings) {
  const Shape& x = node.input(0)->type.shape;
  const int64_t axis = first_flattened(*softmax_of(node), x);
  const std::vector<Dim> others(x.dims.begin() + axis, x.dims.end());
  Dim all(1);
  for (const Dim& d : others) all = all * d;
  const std::string result = name(resolve(node.output(), bindings));
  const std::string rows = unique(result + "_rows"), softmax = unique(result + "_softmax");
  const auto reshape = [&](const std::string& from, const Tensor& sizes, const std::string& to) {
    encode_node("Reshape", "", to + "_reshape", {from, add_constant(sizes, to + "_sizes")}, {to}, {});
  };
  reshape(name(resolve(node.input(0), bindings)), target(axis, {all}), rows);
  const char* op = is_a<Softmax>(node) ? "Softmax" : is_a<LogSoftmax>(node) ? "LogSoftmax" : "Hardmax";
  encode_node(op, "", node.name(), {rows}, {softmax}, {});
  reshape(softmax, target(axis, others), result);
}

}  // namespace opfuse::onnx
