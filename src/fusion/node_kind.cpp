// Kinds. BatchNorm is elementwise here: its statistics are operands.
#include "fusion/node_kind.hpp"

#include <algorithm>

#include "ir/body.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/transpose.hpp"

namespace opfuse {

static int rank(OpKind kind) {
  switch (kind) {
    case OpKind::elementwise:
      return 0;
    case OpKind::injective:
      return 1;
    case OpKind::reduction:
      return 2;
    case OpKind::window:
      return 3;
    case OpKind::contraction:
      return 4;
    case OpKind::shape:
      return 5;
    case OpKind::composite:
      return 6;
    case OpKind::opaque:
      return 7;
  }
  return 7;
}

OpKind kind_of(const Node& node) {
  if (!node.body) return is_a<BatchNorm>(node) ? OpKind::elementwise : node.op->kind;
  if (!stands_for_body(node)) return OpKind::composite;
  OpKind kind = OpKind::elementwise;
  for (const Node* inner : node.body->nodes())
    if (rank(kind_of(*inner)) > rank(kind)) kind = kind_of(*inner);
  return kind;
}

bool is_anchor(OpKind kind) {
  return kind == OpKind::contraction || kind == OpKind::window || kind == OpKind::reduction;
}

namespace {

/// The only reader of a node's only result, as its first operand; null when there is none such.
const Node* only_reader(const Node& node) {
  const Use* use = node.outputs.size() == 1 ? node.output()->only_use() : nullptr;
  return use && use->index == 0 ? use->node : nullptr;
}

}  // namespace

bool turns_around_norm(const Node& node) {
  if (!turns_channels(node)) return false;
  const Node* norm = only_reader(node);
  if (!norm || kind_of(*norm) != OpKind::reduction) return false;
  const Node* back = only_reader(*norm);
  if (!back || !turns_channels(*back) || norm->output()->type != node.output()->type) return false;
  return Transpose::permutation(node.as<Transpose>(), 4) != Transpose::permutation(back->as<Transpose>(), 4);
}

bool turns_channels(const Node& node) {
  if (!is_a<Transpose>(node) || node.output()->type.shape.rank() != 4) return false;
  const std::vector<size_t> perm = Transpose::permutation(node.as<Transpose>(), 4);
  return perm == std::vector<size_t>{0, 2, 3, 1} || perm == std::vector<size_t>{0, 3, 1, 2};
}

bool moves_rows(const Node& node) {
  constexpr int64_t kVector = 16;  // elements, of the widest vectors
  if (!is_a<Transpose>(node)) return false;
  const size_t rank = node.output()->type.shape.rank();
  if (rank < 2 || Transpose::permutation(node.as<Transpose>(), rank).back() != rank - 1) return false;
  return node.output()->type.shape[rank - 1].constant().value_or(0) >= kVector;
}

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::elementwise:
      return "elementwise";
    case OpKind::injective:
      return "injective";
    case OpKind::reduction:
      return "a reduction";
    case OpKind::window:
      return "a window";
    case OpKind::contraction:
      return "a contraction";
    case OpKind::shape:
      return "a shape computation";
    case OpKind::composite:
      return "a loop";
    case OpKind::opaque:
      return "an operator that opfuse does not know";
  }
  return "unknown";
}

}  // namespace opfuse
