//     conv(x, w, b) f = conv(x, w f, b f)       layer_norm(x) f = layer_norm with scale f, bias f      relu(x) f =
//     relu(x f)
//
// Asked first, done then: a chain that ends in something else is left as it was.
#include "quantize/fold_factors.hpp"

#include "ir/free_names.hpp"
#include "ops/add.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/leaky_relu.hpp"
#include "ops/matmul.hpp"
#include "ops/mul.hpp"
#include "ops/norm.hpp"
#include "ops/pool.hpp"
#include "ops/relu.hpp"

namespace opfuse::quantization {

std::string equalized_name(const Graph& graph, const std::string& name) {
  return name.empty() ? name : FreeNames(graph).take(name + "_equalized");
}

namespace {

class Folder {
 public:
  Folder(Graph& graph, size_t axis, size_t rank, const std::vector<double>& factors, const std::set<int>& kept)
      : graph_(graph), axis_(axis), rank_(rank), factors_(factors), kept_(kept) {}

  bool fold(Value* value, bool apply) {
    Node* node = value->producer;
    if (!node || node->body || node->outputs.size() != 1) return false;
    if (is_a<Conv>(*node)) return axis_ == 1 && operands(node, {{1, 0}, {2, 0}}, apply);
    if (is_a<MatMul>(*node)) return last() && matrix(node, 1, apply);
    if (is_a<Gemm>(*node)) return last() && gemm(node, apply);
    if (is_a<LayerNorm>(*node))
      return last() &&
             (node->as<LayerNorm>().axis == -1 || node->as<LayerNorm>().axis == static_cast<int64_t>(axis_)) &&
             operands(node, {{1, 0}, {2, 0}}, apply);
    if (is_a<BatchNorm>(*node)) return axis_ == 1 && operands(node, {{1, 0}, {2, 0}}, apply);
    if (is_a<Relu>(*node) || is_a<LeakyRelu>(*node) || (is_a<MaxPool>(*node) && axis_ == 1))
      return through(node->input(0), apply);
    if (is_a<Mul>(*node)) return with_constant(node, false, apply);
    return is_a<Add>(*node) && with_constant(node, true, apply);
  }

 private:
  struct Operand {
    size_t index, axis;  ///< of channels
  };

  bool last() const { return axis_ + 1 == rank_; }

  bool through(Value* value, bool apply) {
    if (graph_.read_count(value) != 1 || graph_.is_output(value) || kept_.contains(value->id) ||
        value->type.shape.rank() != rank_)
      return false;
    if (!fold(value, apply)) return false;
    if (apply) value->name = equalized_name(graph_, value->name);
    return true;
  }

  bool fits(const Value* value, size_t axis) const {
    return value && value->is_constant() && value->constant->dtype() == DType::f32 && axis < value->constant->rank() &&
           value->constant->dim(axis) == static_cast<int64_t>(factors_.size());
  }

  /// Operands that are there.
  bool operands(Node* node, const std::vector<Operand>& list, bool apply) {
    for (const Operand& o : list)
      if (node->input(o.index) && !fits(node->input(o.index), o.axis)) return false;
    for (const Operand& o : list)
      if (apply && node->input(o.index)) scale(node, o.index, o.axis);
    return node->input(list.front().index) != nullptr;
  }

  bool matrix(Node* node, size_t index, bool apply) {
    return node->input(index) && node->input(index)->type.shape.rank() == 2 && operands(node, {{index, 1}}, apply);
  }

  bool gemm(Node* node, bool apply) {
    const Gemm::Attrs& a = node->as<Gemm>();
    if (a.alpha != 1 || a.beta != 1) return false;
    const Value* bias = node->input(2);
    const size_t bias_axis = bias ? bias->type.shape.rank() - 1 : 0;
    if (bias && (bias->type.shape.rank() == 0 || !fits(bias, bias_axis))) return false;
    if (!operands(node, {{1, a.transB ? size_t{0} : size_t{1}}}, apply)) return false;
    if (apply && bias) scale(node, 2, bias_axis);
    return true;
  }

  /// A constant that varies along the channels alone; the other operand of an addition takes the factors too.
  bool with_constant(Node* node, bool both, bool apply) {
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Value* constant = node->input(i);
      const size_t rank = constant->type.shape.rank();
      if (!constant->is_constant() || rank > rank_ || axis_ < rank_ - rank) continue;
      const size_t axis = axis_ - (rank_ - rank);
      if (!fits(constant, axis) || constant->constant->elements() != static_cast<int64_t>(factors_.size())) continue;
      if (both && !through(node->input(1 - i), apply)) return false;
      if (apply) scale(node, i, axis);
      return true;
    }
    return false;
  }

  void scale(Node* node, size_t index, size_t axis) {
    const Value* old = node->input(index);
    const Tensor& t = *old->constant;
    int64_t inner = 1;
    for (size_t d = axis + 1; d < t.rank(); ++d) inner *= t.dim(d);
    const auto count = static_cast<int64_t>(factors_.size());
    Tensor scaled(t.dtype(), t.sizes());
    for (int64_t i = 0; i < t.elements(); ++i)
      scaled.set_real(i, t.real(i) * factors_[static_cast<size_t>(i / inner % count)]);
    graph_.set_input(node, index, graph_.add_constant(std::move(scaled)));
  }

  Graph& graph_;
  const size_t axis_, rank_;
  const std::vector<double>& factors_;
  const std::set<int>& kept_;
};

}  // namespace

bool fold_factors(Graph& graph, Value* value, size_t axis, const std::vector<double>& factors,
                  const std::set<int>& kept) {
  Folder folder(graph, axis, value->type.shape.rank(), factors, kept);
  if (!folder.fold(value, false)) return false;
  folder.fold(value, true);
  value->name = equalized_name(graph, value->name);
  return true;
}

}  // namespace opfuse::quantization
