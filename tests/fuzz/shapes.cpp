// The same elements under other dimensions, and the arithmetic on shapes that exporters write for open dimensions.
#include <algorithm>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

const Known* ranked(Drawer& d, size_t least) {
  return d.pick([=](const Known& k) { return k.rank() >= least; });
}

bool reshape(Drawer& d) {
  const Known* x = ranked(d, 1);
  if (!x) return false;
  std::vector<int64_t> target;
  const size_t kept = static_cast<size_t>(d.between(0, static_cast<int64_t>(x->rank()) - 1));
  for (size_t i = 0; i < kept; ++i) target.push_back(0);
  const int64_t last = fixed_extent(*x, x->rank() - 1);
  if (last > 1 && kept + 1 < x->rank() && d.chance(0.5)) {
    target.push_back(-1), target.push_back(last);
  } else if (last > 1 && kept + 1 == x->rank() && last % 2 == 0) {
    target.push_back(d.chance(0.5) ? 2 : last / 2), target.push_back(-1);
  } else {
    target.push_back(-1);
  }
  return d.add("reshape", {}, {x->value, d.integers(target)});
}

/// Shape -> Gather -> Concat -> Reshape, as exporters write it.
bool computed_reshape(Drawer& d) {
  const Known* x = ranked(d, 2);
  if (!x) return false;
  Value* shape = d.add1("shape", {}, {x->value});
  if (!shape) return false;
  Value* first = d.add1("gather", {{"axis", int64_t{0}}}, {shape, d.integers({0})});
  Value* target = first ? d.add1("concat", {{"axis", int64_t{0}}}, {first, d.integers({-1})}) : nullptr;
  return target && d.add("reshape", {}, {x->value, target});
}

bool flatten(Drawer& d) {
  const Known* x = ranked(d, 2);
  return x && d.add("flatten", {{"axis", d.between(0, static_cast<int64_t>(x->rank()))}}, {x->value});
}

bool squeeze(Drawer& d) {
  const Known* x = ranked(d, 1);
  if (!x) return false;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x->rank(); ++i)
    if (fixed_extent(*x, i) == 1 && d.chance(0.7)) axes.push_back(static_cast<int64_t>(i));
  return !axes.empty() && d.add("squeeze", {}, {x->value, d.integers(axes)});
}

bool unsqueeze(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() <= 4; });
  return x && d.add("unsqueeze", {}, {x->value, d.integers({d.between(0, static_cast<int64_t>(x->rank()))})});
}

bool expand(Drawer& d) {
  const Known* x = ranked(d, 1);
  if (!x) return false;
  std::vector<int64_t> target;
  for (size_t i = 0; i < x->rank(); ++i) target.push_back(fixed_extent(*x, i) == 1 ? d.between(1, 5) : 1);
  if (d.chance(0.2) && x->rank() < 5) target.insert(target.begin(), d.between(1, 3));
  return d.add("expand", {}, {x->value, d.integers(target)});
}

/// Expand to another value's shape.
bool expand_like(Drawer& d) {
  const Known* like = d.pick_real(2);
  if (!like) return false;
  Value* shape = d.add1("shape", {}, {like->value});
  std::vector<int64_t> sizes(like->rank(), 1);
  const int64_t last = fixed_extent(*like, like->rank() - 1);
  if (last > 0) sizes.back() = last;
  return shape && d.add("expand", {}, {d.constant(sizes, like->dtype()), shape});
}

bool filled_like(Drawer& d) {
  const Known* like = d.pick_real(1);
  if (!like) return false;
  Value* shape = d.add1("shape", {}, {like->value});
  Value* ones = shape ? d.add1("constant_of_shape", {{"dtype", like->dtype()}, {"value", 1.0}}, {shape}) : nullptr;
  return ones && d.add("add", {}, {like->value, ones});
}

bool eye_like(Drawer& d) {
  const Known* x = d.pick_real(2, 2);
  Value* eye = x ? d.add1("eye_like", {{"dtype", x->dtype()}, {"k", d.between(-1, 1)}}, {x->value}) : nullptr;
  return eye && d.add("add", {}, {x->value, eye});
}

/// Positions along an axis: Range up to an extent.
bool positions(Drawer& d) {
  const Known* x = d.pick_real(2);
  if (!x) return false;
  Value* shape = d.add1("shape", {}, {x->value});
  Value* size = shape ? d.add1("gather", {{"axis", int64_t{0}}}, {shape, d.scalar(DType::i64, -1)}) : nullptr;
  Value* range = size ? d.add1("range", {}, {d.scalar(DType::i64, 0), size, d.scalar(DType::i64, 1)}) : nullptr;
  Value* real = range ? d.add1("cast", {{"to", x->dtype()}}, {range}) : nullptr;
  if (real && !d.options().exact) real = d.add1("tanh", {}, {real});
  return real && d.add("mul", {}, {x->value, real});
}

}  // namespace

const std::vector<Draw>& shape_draws() {
  static const std::vector<Draw> list = {{"reshape", 5, reshape},         {"computed_reshape", 2, computed_reshape},
                                         {"flatten", 1, flatten},         {"squeeze", 2, squeeze},
                                         {"unsqueeze", 2, unsqueeze},     {"expand", 2, expand},
                                         {"expand_like", 1, expand_like}, {"filled_like", 1, filled_like},
                                         {"eye_like", 1, eye_like},       {"positions", 1, positions}};
  return list;
}

}  // namespace opfuse::fuzz
