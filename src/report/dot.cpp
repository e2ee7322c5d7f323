// Graphviz: nodes are n0, n1 ... in the order of the view, units with several nodes are clusters.
#include <fmt/format.h>

#include <map>

#include "report/utf8_text.hpp"
#include "report/write_graph.hpp"

namespace opfuse::report {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string node_line(const View& view, int n) {
  const ViewNode& node = view.nodes[static_cast<size_t>(n)];
  const std::string label = node.label.empty()
                                ? quoted(node.name)
                                : quoted(node.label) + " + \"\\n\" + " + quoted(short_name(node.name, node.label, 40));
  const char* style = node.kind != Kind::node ? ", shape=ellipse" : node.unit < 0 ? ", style=dashed" : "";
  return fmt::format("n{} [label={}, tooltip={}{}];\n", n, label, quoted(node.name), style);
}

}  // namespace

std::string to_dot(const View& view, const std::vector<Unit>& units) {
  std::string out = "digraph opfuse {\nnode [shape=box, fontname=\"sans-serif\", fontsize=10];\nedge [fontsize=9];\n";
  std::map<int, std::vector<int>> members;
  for (size_t n = 0; n < view.nodes.size(); ++n)
    if (view.nodes[n].unit >= 0) members[view.nodes[n].unit].push_back(static_cast<int>(n));
  for (size_t n = 0; n < view.nodes.size(); ++n)
    if (const int unit = view.nodes[n].unit; unit < 0 || members[unit].size() < 2)
      out += node_line(view, static_cast<int>(n));
  for (const auto& [unit, nodes] : members) {
    if (nodes.size() < 2) continue;
    const Unit& u = units[static_cast<size_t>(unit)];
    out += fmt::format(
        "subgraph cluster_{} {{ label={}; style=\"rounded,filled\"; fillcolor=\"#e8f0fb\"; color=\"#2b6cb0\";\n", unit,
        quoted(u.pattern.empty() ? u.label : u.pattern));
    for (int n : nodes) out += "  " + node_line(view, n);
    out += "}\n";
  }
  for (const ViewEdge& edge : view.edges) {
    const ViewValue& value = view.values[static_cast<size_t>(edge.value)];
    out += fmt::format("n{} -> n{} [tooltip={}];\n", edge.from, edge.to, quoted(value.name + " " + value.type));
  }
  return utf8_text(out + "}\n");
}

}  // namespace opfuse::report
