// Operators that move elements: concat, split, slice, pad, tile, transpose, resize, depth and space.
#include <algorithm>
#include <numeric>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

int64_t any_axis(Drawer& d, const Known& x) { return d.between(0, static_cast<int64_t>(x.rank()) - 1); }
int64_t signed_axis(Drawer& d, const Known& x, int64_t axis) {
  return d.chance(0.3) ? axis - static_cast<int64_t>(x.rank()) : axis;
}

bool concat(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1; });
  if (!x) return false;
  const int64_t axis = any_axis(d, *x);
  std::vector<Value*> operands{x->value};
  for (int64_t i = d.between(1, 2); i > 0; --i) {
    const Known* y = d.pick([&](const Known& k) {
      if (k.dtype() != x->dtype() || k.rank() != x->rank()) return false;
      for (size_t a = 0; a < k.rank(); ++a)
        if (static_cast<int64_t>(a) != axis && !(k.value->type.shape[a] == x->value->type.shape[a])) return false;
      return true;
    });
    if (y) operands.push_back(y->value);
  }
  if (operands.size() > 1 && d.chance(0.3)) std::swap(operands[0], operands[1]);
  return d.add("concat", {{"axis", signed_axis(d, *x, axis)}}, operands);
}

bool split(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1; });
  if (!x) return false;
  const int64_t axis = any_axis(d, *x), size = fixed_extent(*x, static_cast<size_t>(axis));
  if (size < 2) return false;
  const int64_t first = d.between(1, size - 1);
  const Node* node = size % 2 == 0 && d.chance(0.5)
                         ? d.add("split", {{"axis", axis}, {"num_outputs", int64_t{2}}}, {x->value}, 2)
                         : d.add("split", {{"axis", axis}}, {x->value, d.integers({first, size - first})}, 2);
  return node != nullptr;
}

bool slice(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1; });
  if (!x) return false;
  std::vector<int64_t> starts, ends, axes, steps;
  for (int64_t axis = 0; axis < static_cast<int64_t>(x->rank()); ++axis) {
    if (d.chance(0.5)) continue;
    const int64_t size = x->sizes()[static_cast<size_t>(axis)];
    const bool backwards = d.chance(0.2);
    const int64_t step = (backwards ? -1 : 1) * d.one_of<int64_t>({1, 1, 1, 2, 3});
    int64_t from = d.between(-2, std::max<int64_t>(0, size / 2)), to = d.one_of<int64_t>({size, 1 << 30, -1, size - 1});
    if (backwards) from = d.one_of<int64_t>({-1, size - 1}), to = d.one_of<int64_t>({-(int64_t{1} << 30), 0});
    axes.push_back(axis), starts.push_back(from), ends.push_back(to), steps.push_back(step);
  }
  if (axes.empty()) return false;
  return d.add("slice", {}, {x->value, d.integers(starts), d.integers(ends), d.integers(axes), d.integers(steps)});
}

bool pad(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1 && k.dtype() != DType::boolean; });
  if (!x) return false;
  const std::string mode = d.one_of<std::string>({"constant", "constant", "reflect", "edge", "wrap"});
  std::vector<int64_t> begin, end;
  for (const int64_t size : x->sizes()) {
    const int64_t most = mode == "reflect" || mode == "wrap" ? std::max<int64_t>(0, std::min<int64_t>(2, size - 1)) : 2;
    const int64_t least = mode == "constant" && size > 4 && d.chance(0.2) ? -1 : 0;
    begin.push_back(d.chance(0.5) ? 0 : d.between(least, most));
    end.push_back(d.chance(0.5) ? 0 : d.between(least, most));
  }
  begin.insert(begin.end(), end.begin(), end.end());
  std::vector<Value*> operands{x->value, d.integers(begin)};
  if (mode == "constant" && d.chance(0.4)) operands.push_back(d.scalar(x->dtype(), 1));
  return d.add("pad", {{"mode", mode}}, operands);
}

bool tile(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 1; });
  if (!x) return false;
  std::vector<int64_t> repeats;
  for (size_t i = 0; i < x->rank(); ++i) repeats.push_back(d.chance(0.7) ? 1 : d.between(1, 3));
  return d.add("tile", {}, {x->value, d.integers(repeats)});
}

bool trilu(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 2; });
  return x && d.add("trilu", {{"upper", d.chance(0.5)}},
                    {x->value, d.scalar(DType::i64, static_cast<double>(d.between(-2, 2)))});
}

bool transpose(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.rank() >= 2; });
  if (!x) return false;
  std::vector<int64_t> perm(x->rank());
  std::iota(perm.begin(), perm.end(), 0);
  if (d.chance(0.4) && x->rank() == 4) {
    perm = d.chance(0.5) ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 3, 1, 2};
  } else {
    for (size_t i = perm.size(); i-- > 1;)
      std::swap(perm[i], perm[static_cast<size_t>(d.between(0, static_cast<int64_t>(i)))]);
  }
  return d.add("transpose", {{"perm", perm}}, {x->value});
}

bool depth_space(Drawer& d) {
  const Known* x = d.pick_real(4, 4);
  if (!x) return false;
  const int64_t block = d.one_of<int64_t>({2, 2, 3});
  if (d.chance(0.5))
    return d.add("depth_to_space", {{"blocksize", block}, {"mode", std::string(d.chance(0.5) ? "DCR" : "CRD")}},
                 {x->value});
  return d.add("space_to_depth", {{"blocksize", block}}, {x->value});
}

bool resize(Drawer& d) {
  const Known* x = d.pick_real(3, 5);
  if (!x || (x->open() && d.chance(0.8))) return false;  // refused often: the graph would prove nothing
  const bool nearest = d.chance(0.5), dyadic = d.options().exact && !nearest;  // weights of 1/3 are not exact
  const auto modes = dyadic ? std::vector<std::string>{"half_pixel", "asymmetric"}
                            : std::vector<std::string>{"half_pixel", "asymmetric", "align_corners",
                                                       "pytorch_half_pixel", "half_pixel_symmetric"};
  AttrMap attrs{{"mode", std::string(nearest ? "nearest" : "linear")},
                {"coordinate_transformation_mode", d.one_of<std::string>(modes)}};
  if (nearest)
    attrs.emplace_back("nearest_mode",
                       d.one_of<std::string>({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}));
  std::vector<double> scales{1, 1};
  const auto factors_of = dyadic ? std::vector<double>{2, 2, 1, 0.5} : std::vector<double>{2, 2, 1, 0.5, 1.5, 3};
  for (size_t i = 2; i < x->rank(); ++i) scales.push_back(d.one_of<double>(factors_of));
  Value* factors = d.filled({static_cast<int64_t>(scales.size())}, DType::f32,
                            [&](int64_t i) { return scales[static_cast<size_t>(i)]; });
  if (d.chance(0.7) || x->open() || dyadic) return d.add("resize", attrs, {x->value, nullptr, factors});
  std::vector<int64_t> sizes = x->sizes();
  for (size_t i = 2; i < sizes.size(); ++i)
    sizes[i] = std::max<int64_t>(1, sizes[i] * d.between(1, 3) - d.between(0, 1));
  return d.add("resize", attrs, {x->value, nullptr, nullptr, d.integers(sizes)});
}

}  // namespace

const std::vector<Draw>& movement_draws() {
  static const std::vector<Draw> list = {
      {"concat", 6, concat}, {"split", 3, split}, {"slice", 5, slice},         {"pad", 4, pad},
      {"tile", 1, tile},     {"trilu", 1, trilu}, {"transpose", 5, transpose}, {"depth_space", 2, depth_space},
      {"resize", 3, resize}};
  return list;
}

}  // namespace opfuse::fuzz
