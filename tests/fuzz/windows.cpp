// Pools of one to three axes, with padding, dilation and ceil_mode; global pools.
#include <algorithm>

#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

bool pool(Drawer& d) {
  const Known* x = d.pick([](const Known& k) { return k.real() && k.rank() >= 3 && k.rank() <= 5; });
  if (!x) return false;
  const std::string op = d.one_of<std::string>({"max_pool", "max_pool", "average_pool", "average_pool", "lp_pool"});
  std::vector<int64_t> kernel, strides, begin, end, dilations;
  for (size_t axis = 2; axis < x->rank(); ++axis) {
    const int64_t size = std::max<int64_t>(1, x->sizes()[axis]);
    kernel.push_back(std::min(size, d.one_of<int64_t>({1, 2, 2, 3, 3, 4, 5})));
    strides.push_back(d.one_of<int64_t>({1, 2, 2, 3}));
    begin.push_back(d.chance(0.5) ? 0 : d.between(0, kernel.back() / 2));
    end.push_back(d.chance(0.5) ? begin.back() : d.between(0, kernel.back() / 2));
    dilations.push_back(d.chance(0.1) && 2 * kernel.back() - 1 <= size ? 2 : 1);  // open extents hold a window
  }
  AttrMap attrs{{"kernel_shape", kernel}, {"strides", strides}, {"ceil_mode", d.chance(0.3)}};
  if (d.chance(0.1)) {
    attrs.emplace_back("auto_pad", d.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"}));
  } else {
    begin.insert(begin.end(), end.begin(), end.end());
    attrs.emplace_back("pads", begin);
    if (op != "lp_pool") attrs.emplace_back("dilations", dilations);
  }
  if (op == "average_pool") attrs.emplace_back("count_include_pad", d.chance(0.4));
  if (op == "lp_pool" && d.options().exact) return false;
  if (op == "max_pool" && d.chance(0.1)) return d.add("max_pool", attrs, {x->value}, 2, true);
  return d.add(op.c_str(), attrs, {x->value});
}

bool global_pool(Drawer& d) {
  const Known* x = d.pick_real(3, 5);
  return x && d.add(d.one_of<const char*>(
                        {"global_average_pool", "global_average_pool", "global_max_pool", "global_lp_pool"}),
                    {}, {x->value});
}

bool lrn(Drawer& d) {
  if (d.options().exact) return false;
  const Known* x = d.pick_real(4, 4);
  return x && d.add("lrn", {{"size", d.one_of<int64_t>({1, 3, 5})}, {"alpha", 0.1}}, {x->value});
}

}  // namespace

const std::vector<Draw>& window_draws() {
  static const std::vector<Draw> list = {{"pool", 6, pool}, {"global_pool", 2, global_pool}, {"lrn", 1, lrn}};
  return list;
}

}  // namespace opfuse::fuzz
