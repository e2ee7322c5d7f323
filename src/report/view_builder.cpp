// Edges of a view: from the node that has a value among its results to every node that reads it.
#include "report/view_builder.hpp"

namespace opfuse::report {

int ViewBuilder::add_value(ViewValue value) {
  view_.values.push_back(std::move(value));
  return static_cast<int>(view_.values.size()) - 1;
}

void ViewBuilder::add_input(int value) {
  const ViewValue& v = view_.values[static_cast<size_t>(value)];
  view_.nodes.push_back({v.name, "input", v.type, Kind::input, -1, {}, {value}});
}

void ViewBuilder::add_node(ViewNode node) { view_.nodes.push_back(std::move(node)); }

void ViewBuilder::add_output(int value) {
  const ViewValue& v = view_.values[static_cast<size_t>(value)];
  view_.nodes.push_back({v.name, "output", v.type, Kind::output, -1, {value}, {}});
}

View ViewBuilder::finish() {
  std::vector<int> producer(view_.values.size(), -1);
  for (size_t n = 0; n < view_.nodes.size(); ++n)
    for (int value : view_.nodes[n].results) producer[static_cast<size_t>(value)] = static_cast<int>(n);
  for (size_t n = 0; n < view_.nodes.size(); ++n)
    for (int value : view_.nodes[n].reads)
      if (const int from = producer[static_cast<size_t>(value)]; from >= 0)
        view_.edges.push_back({from, static_cast<int>(n), value});
  return std::move(view_);
}

}  // namespace opfuse::report
