// Indexed reads and writes, with constant and computed indices, negative ones too.
#include <algorithm>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

/// Integers in [-size, size) of these sizes, unique along the first axis where `once`.
Value* indices(Drawer& d, const std::vector<int64_t>& sizes, int64_t size) {
  return d.filled(sizes, d.chance(0.8) ? DType::i64 : DType::i32,
                  [&](int64_t) { return static_cast<double>(d.between(d.chance(0.2) ? -size : 0, size - 1)); });
}

bool gather(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1; });
  if (!x) return false;
  const int64_t axis = d.between(0, static_cast<int64_t>(x->rank()) - 1),
                size = fixed_extent(*x, static_cast<size_t>(axis));
  if (size < 1) return false;
  const std::vector<int64_t> sizes = d.one_of<std::vector<int64_t>>({{}, {1}, {2}, {5}, {2, 3}});
  return d.add("gather", {{"axis", axis}}, {x->value, indices(d, sizes, size)});
}

/// Rows of a table, by an integer input: an embedding.
bool embedding(Drawer& d) {
  const Known* x = d.pick([](const Known& k) {
    return (k.dtype() == DType::i64 || k.dtype() == DType::i32) && k.low >= 0 && k.high <= 9 && k.rank() <= 3;
  });
  return x && d.add("gather", {}, {d.constant({10, d.one_of<int64_t>({1, 4, 8, 16})}, d.options().type), x->value});
}

bool gather_elements(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1 && !k.open() && k.data.elements() > 0; });
  if (!x) return false;
  const int64_t axis = d.between(0, static_cast<int64_t>(x->rank()) - 1);
  std::vector<int64_t> sizes = x->sizes();
  const int64_t size = sizes[static_cast<size_t>(axis)];
  sizes[static_cast<size_t>(axis)] = d.between(1, 4);
  return d.add("gather_elements", {{"axis", axis}}, {x->value, indices(d, sizes, size)});
}

bool gather_nd(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1 && fixed_extent(k, 0) > 0; });
  if (!x) return false;
  Value* rows = d.filled({d.between(1, 5), 1}, DType::i64,
                         [&](int64_t) { return static_cast<double>(d.between(0, x->sizes()[0] - 1)); });
  return d.add("gather_nd", {}, {x->value, rows});
}

bool scatter_elements(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.real() && k.rank() >= 1 && !k.open() && k.data.elements() > 0; });
  if (!x) return false;
  const int64_t axis = d.between(0, static_cast<int64_t>(x->rank()) - 1);
  std::vector<int64_t> sizes = x->sizes();
  sizes[static_cast<size_t>(axis)] = 1;  // one write per position: the order of several is not defined
  const std::string reduction = d.one_of<std::string>({"none", "add", "mul", "max", "min"});
  return d.add("scatter_elements", {{"axis", axis}, {"reduction", reduction}},
               {x->value, indices(d, sizes, x->sizes()[static_cast<size_t>(axis)]), d.constant(sizes, x->dtype())});
}

bool scatter_nd(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.real() && k.rank() >= 1 && !k.open() && k.data.elements() > 0; });
  if (!x) return false;
  const int64_t rows = std::min<int64_t>(3, x->sizes()[0]), first = d.between(0, x->sizes()[0] - rows);
  std::vector<int64_t> sizes = x->sizes();
  sizes[0] = rows;
  Value* at = d.filled({rows, 1}, DType::i64, [&](int64_t i) { return static_cast<double>(first + i); });
  return d.add("scatter_nd", {{"reduction", d.one_of<std::string>({"none", "none", "add", "max"})}},
               {x->value, at, d.constant(sizes, x->dtype())});
}

bool one_hot(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return (k.dtype() == DType::i64 || k.dtype() == DType::i32) && k.rank() <= 3; });
  if (!x) return false;
  Value* values = d.filled({2}, d.options().type, [](int64_t i) { return static_cast<double>(i); });
  return d.add("one_hot", {{"axis", d.chance(0.7) ? int64_t{-1} : int64_t{0}}},
               {x->value, d.scalar(DType::i64, 7), values});
}

}  // namespace

const std::vector<Draw>& indexing_draws() {
  static const std::vector<Draw> list = {{"gather", 4, gather},
                                         {"embedding", 2, embedding},
                                         {"gather_elements", 1, gather_elements},
                                         {"gather_nd", 1, gather_nd},
                                         {"scatter_elements", 1, scatter_elements},
                                         {"scatter_nd", 1, scatter_nd},
                                         {"one_hot", 1, one_hot}};
  return list;
}

}  // namespace opfuse::fuzz
