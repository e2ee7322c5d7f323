// What the IR knows of an operator: a record that `ops` fills. The IR names no operator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expr/domain.hpp"
#include "ir/attrs.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

struct Node;

/// The fusion vocabulary.
enum class OpKind {
  elementwise,  ///< output element i depends on operand elements i (after broadcasting)
  injective,    ///< moves elements: reshape, transpose, slice, concat, pad, gather, resize
  reduction,    ///< reduces axes: mean, sum, max, softmax (row)
  window,       ///< pooling, depthwise: sliding window
  contraction,  ///< convolution, matrix product
  shape,        ///< computes shapes: Shape, Range, ConstantOfShape; normally folded
  composite,    ///< body graph defines it
  opaque,       ///< kept, not understood
};

/// Whether a result's elements are those of an operand, unchanged. Constants or attributes need not say where: ask
/// moves_elements() (match/movement.hpp) where that matters.
enum class Moves {
  nothing,  ///< elements are computed, or come from operands beside the first
  view,     ///< all elements of operand 0 in their order: reshape, flatten, squeeze, unsqueeze, identity
  places,   ///< elements of operand 0 at places that attributes and further operands say: transpose, slice, gather
  all,      ///< elements of all operands: concat
};

struct PortSpec {
  std::string name;
  bool optional = false;
  bool variadic = false;  ///< last port only: one or more
};

/// Operand types (and constants, for shape-giving inputs) during shape inference.
class Inference {
 public:
  /// Elements of operand `i` as expressions over symbols; see dims().
  using DimValues = std::function<std::optional<std::vector<Dim>>(size_t i)>;
  Inference(std::span<const TensorType> types, std::span<const Tensor* const> constants, size_t outputs,
            DimValues dim_values = {})
      : types_(types), constants_(constants), outputs_(outputs), dim_values_(std::move(dim_values)) {}
  size_t inputs() const { return types_.size(); }
  size_t outputs() const { return outputs_; }
  bool has(size_t i) const { return i < types_.size() && types_[i].dtype != DType::unknown; }
  const TensorType& type(size_t i) const;  ///< E::arity_mismatch when absent
  const Shape& shape(size_t i) const { return type(i).shape; }
  DType dtype(size_t i) const { return type(i).dtype; }
  void require_rank(size_t i, size_t rank) const;  ///< E::rank_mismatch
  /// The operand's constant value, or null when it is not constant.
  const Tensor* constant(size_t i) const { return i < constants_.size() ? constants_[i] : nullptr; }
  /// Integers of a constant operand; E::unknown_dimension (names the operand) when not constant.
  std::vector<int64_t> integers(size_t i, std::string_view what) const;
  /// The elements of an integer or boolean operand, row-major, when they are constant or follow from shapes
  /// (Shape -> Gather -> Mul -> Concat -> Reshape of exported models); nothing otherwise.
  std::optional<std::vector<Dim>> dims(size_t i) const;
  /// The same where they must be known: E::unknown_dimension names the operand.
  std::vector<Dim> require_dims(size_t i, std::string_view what) const;

 private:
  std::span<const TensorType> types_;
  std::span<const Tensor* const> constants_;
  size_t outputs_;
  DimValues dim_values_;
};

/// Work of one node, as expressions over symbols.
struct Cost {
  Dim flops = 0;  ///< multiply and add count one each; taps that fall into padding are not counted
  Dim weight_bytes = 0;
};

struct OpInfo {
  std::string name;  ///< opfuse's own, snake_case: "conv", "batch_norm", "relu"
  OpKind kind = OpKind::opaque;
  Moves moves = Moves::nothing;
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::string doc;
  int flops_per_element = 1;
  bool has_body = false;  ///< fused and composite nodes

  // Attributes: conversions between the typed struct and its map. from_map throws E::bad_attribute.
  std::function<std::shared_ptr<const void>(const AttrMap&)> attrs_from_map;
  std::function<AttrMap(const void*)> attrs_to_map;
  AttrMap default_attrs;

  /// Result types. Throws E02xx. Symbolic dimensions flow through.
  std::function<std::vector<TensorType>(const void* attrs, const Inference&)> infer;
  /// Exact reference on concrete tensors. In `exact` precision the float operands and results are f64
  /// tensors whatever their declared dtype; in `typed` precision they have the declared dtype.
  std::function<std::vector<Tensor>(const void* attrs, std::span<const Tensor* const> inputs, Precision)> reference;
  /// Elementwise law on expressions; null for others. Absent optional operands are empty Exprs.
  std::function<Expr(const void* attrs, std::span<const Expr> operands)> law;
  std::function<Cost(const void* attrs, std::span<const TensorType> in, std::span<const TensorType> out)> cost;
  /// Elements of a (small) integer or boolean result as expressions over symbols, when they follow from the
  /// operands' shapes and dims(). Null for operators that never compute shapes.
  std::function<std::optional<std::vector<Dim>>(const void* attrs, const Inference&)> dims;
};

/// Operators by name. Lookup of an unknown name returns null.
class OpRegistry {
 public:
  void add(OpInfo info);
  /// An operator that only passes make: it prints and parses, but is in no list. `info` outlives the registry.
  void add_internal(const OpInfo* info);
  const OpInfo* find(std::string_view name) const;
  std::vector<const OpInfo*> all() const;  ///< in registration order

 private:
  std::vector<std::unique_ptr<OpInfo>> infos_;
  std::vector<const OpInfo*> internal_;
};

}  // namespace opfuse
