// Drawing in two steps: the nodes of each unit among themselves, then the units, whose boxes have the sizes that gave.
// So a frame never has a foreign node in it. An edge between units starts and ends at its nodes, and runs between the
// units' boxes as the outer layout routed it.
#include "report/picture.hpp"

#include <algorithm>
#include <map>

namespace opfuse::report {
namespace {

constexpr double kCharacter = 6.6, kNodeHeight = 36, kFrame = 8, kFrameTitle = 16;
constexpr size_t kTitle = 30, kSubtitle = 30;

std::string cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t from = text.size() - most + 3;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80)
    ++from;  // UTF-8: whole characters
  return "..." + text.substr(from);
}

PictureNode described(const ViewNode& node) {
  PictureNode drawn;
  drawn.title = cut(node.label.empty() ? short_name(node.name, "", kTitle) : node.label, kTitle);
  drawn.subtitle = node.label.empty() ? "" : short_name(node.name, node.label, kSubtitle);
  const double length = static_cast<double>(std::max(drawn.title.size() + 1, drawn.subtitle.size()));
  drawn.box.w = std::max(64.0, length * kCharacter + 14);
  drawn.box.h = kNodeHeight;
  return drawn;
}

/// The nodes that share a box of the outer layout.
struct Cell {
  int unit = -1;
  std::vector<int> nodes;
  Drawing inner;
  std::vector<int> edges;  ///< of the view, by line of `inner`
  bool framed() const { return nodes.size() > 1; }
};

std::vector<Cell> cells_of(const View& view, std::vector<int>& cell_of) {
  std::vector<Cell> cells;
  std::map<int, int> of_unit;
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    int cell = static_cast<int>(cells.size());
    if (const int unit = view.nodes[n].unit; unit >= 0) cell = of_unit.emplace(unit, cell).first->second;
    if (cell == static_cast<int>(cells.size())) cells.push_back({view.nodes[n].unit, {}, {}, {}});
    cells[static_cast<size_t>(cell)].nodes.push_back(static_cast<int>(n));
    cell_of.push_back(cell);
  }
  return cells;
}

/// Lays out each cell by itself; `place` receives the boxes within their cells.
void lay_out_cells(std::vector<Cell>& cells, const View& view, const std::vector<int>& cell_of, Picture& picture) {
  std::vector<int> place(view.nodes.size(), 0);
  for (Cell& cell : cells)
    for (int n : cell.nodes) {
      place[static_cast<size_t>(n)] = static_cast<int>(cell.inner.boxes.size());
      cell.inner.boxes.push_back(picture.nodes[static_cast<size_t>(n)].box);
    }
  for (size_t e = 0; e < view.edges.size(); ++e) {
    const auto from = static_cast<size_t>(view.edges[e].from), to = static_cast<size_t>(view.edges[e].to);
    if (cell_of[from] != cell_of[to]) continue;
    Cell& cell = cells[static_cast<size_t>(cell_of[from])];
    cell.inner.lines.push_back({place[from], place[to], 0, 0, {}});
    cell.edges.push_back(static_cast<int>(e));
  }
  for (Cell& cell : cells) {
    lay_out(cell.inner, cell.framed() ? Spacing{14, 18, kFrame} : Spacing{0, 0, 0});
    for (size_t i = 0; i < cell.nodes.size(); ++i)
      picture.nodes[static_cast<size_t>(cell.nodes[i])].box = cell.inner.boxes[i];
  }
}

}  // namespace

std::string short_name(const std::string& name, const std::string& op, size_t most) {
  std::string text = name;
  if (!op.empty() && text.size() > op.size() + 1 && text.ends_with("/" + op)) text.resize(text.size() - op.size() - 1);
  if (text.size() > most) {
    const size_t slash = text.find('/', text.size() - most);
    if (slash != std::string::npos && slash + 1 < text.size()) text = text.substr(slash + 1);
  }
  if (text.size() > 1 && text[0] == '/') text = text.substr(1);
  return cut(text, most);
}

Picture draw(const View& view, const std::vector<Unit>& units) {
  Picture picture;
  for (const ViewNode& node : view.nodes) picture.nodes.push_back(described(node));
  std::vector<int> cell_of;
  std::vector<Cell> cells = cells_of(view, cell_of);
  lay_out_cells(cells, view, cell_of, picture);
  Drawing outer;
  for (const Cell& cell : cells) {
    const double title = cell.framed() ? kFrameTitle : 0;
    outer.boxes.push_back({cell.inner.width, cell.inner.height + title, 0, 0});
  }
  std::vector<int> edge_of;
  const auto centre = [&](size_t node) { return picture.nodes[node].box.x + picture.nodes[node].box.w / 2; };
  for (size_t e = 0; e < view.edges.size(); ++e) {
    const auto from = static_cast<size_t>(view.edges[e].from), to = static_cast<size_t>(view.edges[e].to);
    if (cell_of[from] == cell_of[to]) continue;
    const double half_from = outer.boxes[static_cast<size_t>(cell_of[from])].w / 2;
    const double half_to = outer.boxes[static_cast<size_t>(cell_of[to])].w / 2;
    outer.lines.push_back({cell_of[from], cell_of[to], centre(from) - half_from, centre(to) - half_to, {}});
    edge_of.push_back(static_cast<int>(e));
  }
  lay_out(outer);
  picture.edges.resize(view.edges.size());
  for (size_t c = 0; c < cells.size(); ++c) {
    Cell& cell = cells[c];
    const Box& box = outer.boxes[c];
    const double down = box.y + (cell.framed() ? kFrameTitle : 0);
    for (int n : cell.nodes)
      picture.nodes[static_cast<size_t>(n)].box.x += box.x, picture.nodes[static_cast<size_t>(n)].box.y += down;
    for (size_t i = 0; i < cell.edges.size(); ++i) {
      std::vector<Point>& points = picture.edges[static_cast<size_t>(cell.edges[i])];
      points = std::move(cell.inner.lines[i].points);
      for (Point& p : points) p.x += box.x, p.y += down;
    }
    if (!cell.framed()) continue;
    const std::string title = cell.unit < 0 ? "" : units[static_cast<size_t>(cell.unit)].pattern;
    picture.frames.push_back({cell.unit, title, box});
  }
  for (size_t i = 0; i < outer.lines.size(); ++i) {
    const ViewEdge& edge = view.edges[static_cast<size_t>(edge_of[i])];
    const Box &a = picture.nodes[static_cast<size_t>(edge.from)].box,
              &b = picture.nodes[static_cast<size_t>(edge.to)].box;
    std::vector<Point>& points = outer.lines[i].points;
    const bool up = points.front().y > points.back().y;
    const double first = up ? a.y : a.y + a.h, last = up ? b.y + b.h : b.y;
    if (points.front().y != first) points.insert(points.begin(), {points.front().x, first});
    if (points.back().y != last) points.push_back({points.back().x, last});
    picture.edges[static_cast<size_t>(edge_of[i])] = std::move(points);
  }
  picture.width = outer.width, picture.height = outer.height;
  return picture;
}

}  // namespace opfuse::report
