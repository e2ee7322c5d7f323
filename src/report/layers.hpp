// Between the stages of the layout: boxes and bends in layers.
#pragma once

#include "report/layout.hpp"

namespace opfuse::report {

/// A box, or a bend of lines that leave one box.
struct Item {
  int box = -1;  ///< -1: a bend
  int layer = 0;
  double width = 0, x = 0;    ///< x: of the centre
  std::vector<int> up, down;  ///< neighbours in the layers before and after, by item
};

struct Layers {
  std::vector<Item> items;               ///< the boxes first, in their order
  std::vector<std::vector<int>> order;   ///< items of a layer, from left to right
  std::vector<std::vector<int>> routes;  ///< by line: items from the upper end to the lower; empty: drawn straight
};

Layers make_layers(const Drawing& drawing);
void order_layers(Layers& layers);
void place_items(Layers& layers, const Spacing& spacing);

}  // namespace opfuse::report
