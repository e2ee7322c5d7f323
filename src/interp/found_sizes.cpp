#include "interp/found_sizes.hpp"

#include "ir/defined_symbols.hpp"
#include "ir/dim_values.hpp"

namespace opfuse {
namespace {

/// Symbols that the value's shape is, and that its elements are.
void read_sizes(const Value& value, const Tensor& tensor, SymbolValues& sizes) {
  const Shape& shape = value.type.shape;
  for (size_t d = 0; shape.ranked && d < shape.rank(); ++d)
    if (shape[d].op() == DimOp::symbol) sizes.emplace(shape[d].symbol_name(), tensor.dim(d));
  const auto elements = value.producer && value.producer->op->dims ? dim_values(value) : std::nullopt;
  for (size_t i = 0; elements && i < elements->size(); ++i)
    if ((*elements)[i].op() == DimOp::symbol)
      sizes.emplace((*elements)[i].symbol_name(), tensor.integer(static_cast<int64_t>(i)));
}

}  // namespace

SymbolValues all_sizes(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& known) {
  SymbolValues sizes = bind_symbols(graph, inputs, known);
  if (defined_symbols(graph).empty()) return sizes;
  InterpretOptions options;
  options.symbols = known;
  options.observe_bodies = true;
  options.observe = [&](const Value* value, const Tensor& tensor) {
    if (value->producer && !defined_symbols(*value->producer).empty()) read_sizes(*value, tensor, sizes);
  };
  interpret(graph, inputs, options);
  return sizes;
}

}  // namespace opfuse
