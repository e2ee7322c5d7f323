// Tile: every axis is walked `repeats` times.
#include "ops/tile.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/table_copy.hpp"

namespace opfuse {

OpSpec Tile::spec() {
  return {.name = "tile",
          .inputs = {{"x"}, {"repeats"}},
          .outputs = {{"y"}},
          .kind = OpKind::injective,
          .flops_per_element = 0,
          .doc = "Repeats a tensor along its axes.",
          .moves = Moves::places};
}

std::vector<TensorType> Tile::infer(const Attrs&, const Inference& in) {
  if (!in.shape(0).ranked) return unranked(in, in.dtype(0));
  Shape y = in.shape(0);
  const std::vector<Dim> repeats = in.require_dims(1, "repeats");
  if (repeats.size() != y.rank())
    throw fail(E::shape_mismatch, "{} repeats for a tensor of rank {}", repeats.size(), y.rank());
  for (size_t i = 0; i < y.rank(); ++i) {
    if (repeats[i].is_constant() && repeats[i].value() < 0)
      throw fail(E::bad_dimension, "axis {} is repeated {} times", i, repeats[i].text());
    y[i] = y[i] * repeats[i];
  }
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Tile::reference(const Attrs&, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const std::vector<int64_t> repeats = in[1]->to_i64();
  std::vector<int64_t> sizes = x.sizes();
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = (Dim(sizes[d]) * Dim(repeats[d])).value();  // refuses overflow
  const Tensor check(DType::boolean, sizes);  // refuses impossible sizes before the tables are made
  std::vector<std::vector<int64_t>> table(x.rank());
  for (size_t d = 0; check.elements() > 0 && d < x.rank(); ++d)
    for (int64_t i = 0; i < sizes[d]; ++i) table[d].push_back(i % x.dim(d));
  return {check.elements() == 0 ? Tensor(x.dtype(), sizes) : table_copy(x, table, nullptr)};
}

}  // namespace opfuse
