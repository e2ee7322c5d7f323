// Operators along axes: reductions, normalisations, softmax, sorting, sums that run.
#include <algorithm>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

int64_t axis_of(Drawer& d, const Known& x) {
  const auto rank = static_cast<int64_t>(x.rank());
  return d.between(-rank, rank - 1);
}

bool reduce(Drawer& d) {
  const Known* x = d.pick_real(1);
  if (!x) return false;
  struct Kind {
    const char* op;
    bool exact, positive;
  };
  const Kind kind = d.one_of<Kind>({{"reduce_mean", true, false},
                                    {"reduce_sum", true, false},
                                    {"reduce_sum", true, false},
                                    {"reduce_max", true, false},
                                    {"reduce_min", true, false},
                                    {"reduce_prod", true, false},
                                    {"reduce_l1", true, false},
                                    {"reduce_l2", false, false},
                                    {"reduce_log_sum", false, true},
                                    {"reduce_log_sum_exp", false, false},
                                    {"reduce_sum_square", true, false}});
  if ((d.options().exact && !kind.exact) || (kind.positive && x->low < 0.1)) return false;
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(x->rank()); ++axis)
    if (d.chance(0.45)) axes.push_back(d.chance(0.3) ? axis - static_cast<int64_t>(x->rank()) : axis);
  std::vector<Value*> operands{x->value};
  if (!axes.empty() || d.chance(0.3)) operands.push_back(axes.empty() ? nullptr : d.integers(axes));
  return d.add(kind.op, {{"keepdims", d.chance(0.6)}}, operands);
}

bool softmax(Drawer& d) {
  const Known* x = d.pick_real(1);
  if (!x) return false;
  const char* op = d.options().exact
                       ? "hardmax"
                       : d.one_of<const char*>({"softmax", "softmax", "softmax", "log_softmax", "hardmax"});
  return d.add(op, {{"axis", axis_of(d, *x)}}, {x->value}, 1, std::string(op) == "hardmax");
}

bool arg_reduce(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1 && k.dtype() != DType::boolean; });
  return x && d.add(d.chance(0.5) ? "arg_max" : "arg_min",
                    {{"axis", axis_of(d, *x)}, {"keepdims", d.chance(0.5)}, {"select_last_index", d.chance(0.3)}},
                    {x->value}, 1, true);
}

bool top_k(Drawer& d) {
  const Known* x = d.pick_real(1);
  if (!x) return false;
  const int64_t axis = axis_of(d, *x);
  const int64_t size = fixed_extent(*x, static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x->rank()) : axis));
  if (size < 1) return false;
  return d.add("top_k", {{"axis", axis}, {"largest", d.chance(0.7)}, {"sorted", true}},
               {x->value, d.integers({d.between(1, size)})}, 2, true);
}

bool cum_sum(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.rank() >= 1 && k.dtype() != DType::boolean && k.dtype() != DType::u8; });
  return x && d.add("cum_sum", {{"exclusive", d.chance(0.3)}, {"reverse", d.chance(0.3)}},
                    {x->value, d.scalar(DType::i64, static_cast<double>(axis_of(d, *x)))});
}

bool batch_norm(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 2 && fixed_extent(k, 1) > 0; });
  if (!x || d.options().exact) return false;
  const std::vector<int64_t> c{x->sizes()[1]};
  return d.add("batch_norm", {{"epsilon", 1e-3}},
               {x->value, d.constant(c, x->dtype(), 0.5, 1.5), d.constant(c, x->dtype()), d.constant(c, x->dtype()),
                d.constant(c, x->dtype(), 0.3, 2)});
}

bool instance_norm(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 3 && fixed_extent(k, 1) > 0; });
  if (!x || d.options().exact) return false;
  const std::vector<int64_t> c{x->sizes()[1]};
  return d.add("instance_norm", {{"epsilon", 0.1}}, {x->value, d.constant(c, x->dtype()), d.constant(c, x->dtype())});
}

bool group_norm(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 3 && fixed_extent(k, 1) > 0; });
  if (!x || d.options().exact) return false;
  const std::vector<int64_t> c{x->sizes()[1]};
  const int64_t groups = c[0] % 4 == 0 ? 4 : c[0] % 2 == 0 ? 2 : 1;
  return d.add("group_norm", {{"num_groups", groups}, {"epsilon", 0.1}},
               {x->value, d.constant(c, x->dtype()), d.constant(c, x->dtype())});
}

bool layer_norm(Drawer& d) {
  const Known* x =
      d.pick([](const Known& k) { return k.real() && k.rank() >= 2 && fixed_extent(k, k.rank() - 1) > 0; });
  if (!x || d.options().exact) return false;
  const std::vector<int64_t> c{x->sizes().back()};
  std::vector<Value*> operands{x->value, d.constant(c, x->dtype())};
  if (d.chance(0.7)) operands.push_back(d.constant(c, x->dtype()));
  return d.add("layer_norm", {{"axis", int64_t{-1}}, {"epsilon", 0.05}}, operands);
}

}  // namespace

const std::vector<Draw>& row_draws() {
  static const std::vector<Draw> list = {{"reduce", 7, reduce},
                                         {"softmax", 4, softmax},
                                         {"arg_reduce", 2, arg_reduce},
                                         {"top_k", 1, top_k},
                                         {"cum_sum", 1, cum_sum},
                                         {"batch_norm", 4, batch_norm},
                                         {"instance_norm", 2, instance_norm},
                                         {"group_norm", 1, group_norm},
                                         {"layer_norm", 3, layer_norm}};
  return list;
}

}  // namespace opfuse::fuzz
