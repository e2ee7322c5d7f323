// Symbol values from the dimensions of given inputs. Bare symbols bind first; then every dimension, expressions
// included, must evaluate to what was given.
#include "base/fail.hpp"
#include "interp/interpreter.hpp"

namespace opfuse {
namespace {

[[noreturn]] void misfit(const Value& value, const Tensor& tensor, std::string_view why) {
  Error error = fail(E::bad_binding, "input \"{}\" is {}, but {} was given{}", value.name, value.type.text(),
                     tensor.type().text(), why);
  if (value.type.dtype != DType::unknown && value.type.dtype != tensor.dtype())
    error.hint(fmt::format("convert the array to {} (NumPy: astype)", name_of(value.type.dtype)));
  throw error;
}

/// f64 stands for any float: results of an exact run may be fed to another one.
bool dtype_fits(DType declared, DType given) {
  return declared == given || declared == DType::unknown || (is_float(declared) && given == DType::f64);
}

}  // namespace

SymbolValues bind_symbols(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& known) {
  const auto& values = graph.inputs();
  if (inputs.size() != values.size())
    throw fail(E::bad_binding, "the graph has {} inputs, {} were given", values.size(), inputs.size());
  SymbolValues symbols = known;
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i]->type.shape;
    if (!dtype_fits(values[i]->type.dtype, inputs[i].dtype())) misfit(*values[i], inputs[i], "");
    if (!shape.ranked) continue;
    if (shape.rank() != inputs[i].rank()) misfit(*values[i], inputs[i], "");
    for (size_t d = 0; d < shape.rank(); ++d)
      if (shape[d].op() == DimOp::symbol) symbols.emplace(shape[d].symbol_name(), inputs[i].dim(d));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i]->type.shape;
    for (size_t d = 0; shape.ranked && d < shape.rank(); ++d) {
      const int64_t expected = shape[d].evaluate(symbols);
      if (expected != inputs[i].dim(d))
        misfit(*values[i], inputs[i], fmt::format(": dimension {} ({}) must be {}", d, shape[d].text(), expected));
    }
  }
  return symbols;
}

}  // namespace opfuse
