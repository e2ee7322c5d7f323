// Inputs whose value is given before a model is compiled: they become constants. Kept in Graph::metadata, so that every
// copy and every dump of the graph knows them; the names of inputs whose values decide shapes are kept there too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// The input of that name becomes a constant; types are not inferred again. E::unknown_name, or E::bad_binding when the
/// tensor is none of its type.
void fix_input(Graph& graph, const std::string& name, const Tensor& value);
/// What was fixed, in that order.
std::vector<std::pair<std::string, Tensor>> fixed_inputs(const Graph& graph);

/// Says that the values of these inputs decide shapes.
void set_shape_inputs(Graph& graph, const std::vector<std::string>& names);
/// Those of them that are still inputs.
std::vector<std::string> shape_inputs(const Graph& graph);
/// "the value of 'axes' decides shapes: fix it ..."; empty when there is no such input.
std::string shape_input_hint(const Graph& graph);

/// "[1,2]", "3", "i64[100]": the elements of a small tensor, the type of a large one.
std::string text_of_values(const Tensor& tensor);

}  // namespace opfuse
