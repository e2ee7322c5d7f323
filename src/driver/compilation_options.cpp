// What the API's users say about compiling, field by field, and the arrays that they fix inputs to.
#include "driver/compilation_options.hpp"

#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "ir/fix_input.hpp"

namespace opfuse {

std::map<std::string, Tensor> copies_of(const std::map<std::string, ArrayView>& arrays) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, array] : arrays) {
    Tensor& tensor = tensors[name] = Tensor(array.dtype, array.shape);
    if (tensor.bytes() > 0 && !array.data) throw fail(E::bad_binding, "the array given for '{}' has no data", name);
    copy_bytes(tensor.mutable_data(), array.data, tensor.bytes());
  }
  return tensors;
}

Graph with_fixed(Graph graph, const std::map<std::string, ArrayView>& arrays) {
  for (const auto& [name, tensor] : copies_of(arrays)) fix_input(graph, name, tensor);
  if (!arrays.empty()) graph.infer_types();
  return graph;
}

/// What the command line's flags refuse too.
static void refuse_negative(const char* field, int64_t value) {
  if (value < 0) throw fail(E::bad_option, "{} is {}", field, value).hint("0 takes all processors, or no bytes");
}

CompilationOptions compilation_options(const CompileOptions& options) {
  refuse_negative("threads", options.threads);
  refuse_negative("compile_threads", options.compile_threads);
  refuse_negative("max_weight_growth", options.max_weight_growth.value_or(0));
  refuse_negative("workspace", options.workspace.value_or(0));
  CompilationOptions with;
  with.dims = options.dims;
  with.dims.insert(options.plan.dims.begin(), options.plan.dims.end());
  with.fused = options.fused;
  with.plan = options.plan;
  with.dump_dir = options.dump_dir;
  with.no_pass = options.no_pass;
  if (!options.chains) with.no_pass.insert(with.no_pass.end(), passes_of_chains().begin(), passes_of_chains().end());
  with.specialize = options.specialize;
  with.allow_reference = options.allow_reference;
  with.limits = limits_with(options.limits);
  with.algorithms = {options.exact,     options.algorithm, options.no_algorithm, options.max_weight_growth,
                     options.workspace, options.threads,   options.measure,      options.least_memory};
  with.timings = options.timings;
  with.artifact = {.threads = options.compile_threads,
                   .cache = options.cache,
                   .emit_dir = options.emit_dir,
                   .emit_llvm = options.emit_llvm,
                   .emit_assembly = options.emit_assembly,
                   .emit_cuda = options.emit_cuda,
                   .progress = options.progress};
  return with;
}

}  // namespace opfuse
