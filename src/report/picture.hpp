// A view with coordinates: nodes of a unit inside the unit's frame.
#pragma once

#include <string>
#include <vector>

#include "report/layout.hpp"
#include "report/view.hpp"

namespace opfuse::report {

struct PictureNode {
  Box box;
  std::string title, subtitle;  ///< cut to the box
};

struct Frame {
  int unit = -1;
  std::string title;
  Box box;
};

struct Picture {
  std::vector<PictureNode> nodes;         ///< of the view's nodes
  std::vector<Frame> frames;              ///< of units with several nodes
  std::vector<std::vector<Point>> edges;  ///< of the view's edges
  double width = 0, height = 0;
};

Picture draw(const View& view, const std::vector<Unit>& units);

/// "layer1.0/conv1" of "/layer1/layer1.0/conv1/Conv": the last parts of a name, without the operator, `most`
/// characters.
std::string short_name(const std::string& name, const std::string& op, size_t most);

}  // namespace opfuse::report
