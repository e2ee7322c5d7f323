// SVG: lines first, then frames' titles and nodes on top. Classes, not colours, so that one style sheet serves both
// themes.
#include <fmt/format.h>

#include "report/utf8_text.hpp"
#include "report/write_graph.hpp"

namespace opfuse::report {
namespace {

constexpr const char* kStyle = R"(
svg { background: #fff; font: 11px system-ui, sans-serif }
.edge { fill: none; stroke: #8a8f98 }
.frame { fill: #e8f0fb; stroke: #2b6cb0 }
.node { fill: #fff; stroke: #4a5160 }
.input, .output { fill: #f3efe4; stroke: #8a6d1f }
.alone { stroke-dasharray: 4 3 }
text { fill: #14181f; text-anchor: middle }
.frame-title { text-anchor: start; fill: #1d4f8c; font-weight: 600 }
.sub { fill: #586070; font-size: 10px }
@media (prefers-color-scheme: dark) {
  svg { background: #14171c } .edge { stroke: #6d7684 } .frame { fill: #1b2a3d; stroke: #6aa7ea }
  .node { fill: #232830; stroke: #97a1b0 } .input, .output { fill: #33301f; stroke: #cdb15e }
  text { fill: #e6e9ee } .frame-title { fill: #9cc7f5 } .sub { fill: #a2abb8 }
}
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  return out;
}

const char* class_of(const ViewNode& node) {
  return node.kind == Kind::input    ? "input"
         : node.kind == Kind::output ? "output"
         : node.unit < 0             ? "node alone"
                                     : "node";
}

std::string box_text(const char* style, const Box& box) {
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>",
                     style, box.x, box.y, box.w, box.h);
}

}  // namespace

std::string path_through(const std::vector<Point>& points) {
  std::string path;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    if (i == 0) {
      path = fmt::format("M{:.1f} {:.1f}", p.x, p.y);
    } else if (points[i - 1].x == p.x) {
      path += fmt::format("V{:.1f}", p.y);
    } else {
      const double middle = (points[i - 1].y + p.y) / 2;
      path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", points[i - 1].x, middle, p.x, middle, p.x, p.y);
    }
  }
  return path;
}

std::string to_svg(const View& view, const Picture& picture) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n"
      "<style>{2}</style>\n",
      picture.width, picture.height, kStyle);
  for (const Frame& frame : picture.frames)
    out +=
        box_text("frame", frame.box) + fmt::format("<text class=\"frame-title\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                                                   frame.box.x + 8, frame.box.y + 14, escaped(frame.title));
  for (size_t e = 0; e < view.edges.size(); ++e) {
    const ViewEdge& edge = view.edges[e];
    const ViewValue& value = view.values[static_cast<size_t>(edge.value)];
    out += fmt::format("<path class=\"edge\" d=\"{}\"><title>{} {}</title></path>\n", path_through(picture.edges[e]),
                       escaped(value.name), escaped(value.type));
  }
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    const ViewNode& node = view.nodes[n];
    const PictureNode& drawn = picture.nodes[n];
    const double x = drawn.box.x + drawn.box.w / 2;
    out += "<g>" + box_text(class_of(node), drawn.box) +
           fmt::format("<title>{}</title><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", escaped(node.name), x,
                       drawn.box.y + (drawn.subtitle.empty() ? 22 : 16), escaped(drawn.title));
    if (!drawn.subtitle.empty())
      out += fmt::format("<text class=\"sub\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, drawn.box.y + 29,
                         escaped(drawn.subtitle));
    out += "</g>\n";
  }
  return utf8_text(out + "</svg>\n");
}

}  // namespace opfuse::report
