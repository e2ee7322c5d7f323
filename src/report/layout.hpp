// Layered drawing of a directed graph (Sugiyama): boxes in rows from top to bottom, lines routed between them.
//
//   layers (layers.cpp)   longest path from the inputs, then pulled towards the readers; lines that cross several
//   layers
//                         get a bend in each, which lines of one box share
//   order (order.cpp)     boxes of a layer where few lines cross: barycentres, down and up
//   place (place.cpp)     coordinates: as near to the neighbours as order and gaps allow
#pragma once

#include <vector>

namespace opfuse::report {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

struct Box {
  double w = 0, h = 0;  ///< given
  double x = 0, y = 0;  ///< top left corner; found
};

struct Line {
  int from = 0, to = 0;         ///< boxes
  double from_x = 0, to_x = 0;  ///< where it leaves and enters, from the box's centre
  std::vector<Point> points;    ///< found; segments leave and enter points vertically
};

struct Drawing {
  std::vector<Box> boxes;
  std::vector<Line> lines;
  double width = 0, height = 0;
};

struct Spacing {
  double between = 18;  ///< boxes of one layer
  double layers = 26;
  double margin = 12;
};

/// Bends of all lines together; what would need more is drawn straight.
inline constexpr int kMostBends = 100'000;

/// Fills in coordinates. Cycles are drawn with lines that go up.
void lay_out(Drawing& drawing, const Spacing& spacing = {});

}  // namespace opfuse::report
