// Views with their drawing. Coordinates are rounded to tenths of a pixel.
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/picture.hpp"

namespace opfuse::report {
namespace {

double tenth(double x) { return std::round(x * 10) / 10; }

Json box_json(const Box& box) { return {tenth(box.x), tenth(box.y), tenth(box.w), tenth(box.h)}; }

const char* name_of(Kind kind) { return kind == Kind::input ? "input" : kind == Kind::output ? "output" : "node"; }

}  // namespace

Json graph_json(const View& view, const std::vector<Unit>& units) {
  const Picture picture = draw(view, units);
  Json out{{"width", tenth(picture.width)}, {"height", tenth(picture.height)}};
  Json nodes = Json::array(), frames = Json::array(), edges = Json::array(), values = Json::array();
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    const ViewNode& node = view.nodes[n];
    nodes.push_back({{"name", node.name},
                     {"operator", node.label},
                     {"text", node.text},
                     {"kind", name_of(node.kind)},
                     {"unit", node.unit},
                     {"title", picture.nodes[n].title},
                     {"subtitle", picture.nodes[n].subtitle},
                     {"reads", node.reads},
                     {"results", node.results},
                     {"box", box_json(picture.nodes[n].box)}});
  }
  for (const Frame& frame : picture.frames)
    frames.push_back({{"unit", frame.unit}, {"title", frame.title}, {"box", box_json(frame.box)}});
  for (size_t e = 0; e < view.edges.size(); ++e) {
    Json points = Json::array();
    for (const Point& p : picture.edges[e]) points.push_back(tenth(p.x)), points.push_back(tenth(p.y));
    edges.push_back(
        {{"from", view.edges[e].from}, {"to", view.edges[e].to}, {"value", view.edges[e].value}, {"points", points}});
  }
  for (const ViewValue& value : view.values)
    values.push_back({{"name", value.name},
                      {"type", value.type},
                      {"bytes", value.bytes < 0 ? Json() : Json(value.bytes)},
                      {"constant", value.constant}});
  out["nodes"] = std::move(nodes);
  out["frames"] = std::move(frames);
  out["edges"] = std::move(edges);
  out["values"] = std::move(values);
  return out;
}

}  // namespace opfuse::report
