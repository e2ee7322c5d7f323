// Views as files of other programs.
#pragma once

#include <string>

#include "report/picture.hpp"

namespace opfuse::report {

/// A drawing by itself, light or dark as the reader's system is.
std::string to_svg(const View& view, const Picture& picture);
/// For Graphviz: units with several nodes are clusters.
std::string to_dot(const View& view, const std::vector<Unit>& units);

/// The `d` of an SVG path through the points: segments leave and enter vertically.
std::string path_through(const std::vector<Point>& points);

}  // namespace opfuse::report
