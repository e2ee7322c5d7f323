// opfuse::optimize: arrays of the caller or drawn ones, then the search.
#include <algorithm>

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "driver/compilation_options.hpp"
#include "interp/random_inputs.hpp"
#include "optimize/search.hpp"

namespace opfuse {
namespace {

/// Sizes come from `dims` and from the shapes of given arrays.
SymbolValues sizes_of(const Graph& model, const OptimizeOptions& options) {
  SymbolValues sizes = options.compile.dims;
  for (const Value* input : model.inputs())
    if (const auto given = options.inputs.find(input->name); given != options.inputs.end())
      for (size_t d = 0; d < input->type.shape.rank() && d < given->second.shape.size(); ++d)
        if (input->type.shape[d].op() == DimOp::symbol)
          sizes.emplace(input->type.shape[d].symbol_name(), given->second.shape[d]);
  return sizes;
}

Tensor copy_of(const Value& input, const ArrayView& array) {
  if (array.dtype != input.type.dtype)
    throw fail(E::bad_binding, "'{}' is {}, but the given array has elements of type {}", input.name, input.type.text(),
               name_of(array.dtype));
  Tensor tensor(array.dtype, array.shape);
  if (tensor.bytes() > 0 && !array.data) throw fail(E::bad_binding, "the array given for '{}' has no data", input.name);
  copy_bytes(tensor.mutable_data(), array.data, tensor.bytes());
  return tensor;
}

std::vector<Tensor> arrays_for(const Graph& model, const OptimizeOptions& options, const SymbolValues& sizes,
                               uint64_t seed) {
  std::vector<Tensor> arrays = random_inputs(model, {.seed = seed, .symbols = sizes});
  for (size_t i = 0; i < arrays.size(); ++i)
    if (const auto given = options.inputs.find(model.inputs()[i]->name); given != options.inputs.end())
      arrays[i] = copy_of(*model.inputs()[i], given->second);
  return arrays;
}

}  // namespace

Optimized optimize(const Model& model, const Target& target, const OptimizeOptions& options) {
  const Graph graph = with_fixed(model.graph().clone(), options.compile.fixed_inputs);
  for (const auto& [name, array] : options.inputs)
    if (std::none_of(graph.inputs().begin(), graph.inputs().end(),
                     [&name = name](const Value* v) { return v->name == name; }))
      throw fail(E::unknown_name, "the model has no input '{}'", name);
  CompilationOptions with = compilation_options(options.compile);
  with.dims = sizes_of(graph, options);
  SearchRequest request;
  request.inputs = arrays_for(graph, options, with.dims, options.seed);
  if (options.inputs.size() < graph.inputs().size())
    request.other_inputs = arrays_for(graph, options, with.dims, options.seed + 1);
  request.seed = options.seed;
  request.seconds = options.seconds;
  request.prove = options.prove;
  request.stop = options.stop;
  return search(graph, target.info(), with, request).result;
}

}  // namespace opfuse
