// The values become outputs beside the graph's own. Sizes of the first sample are compiled in; when another sample has
// others, the model is compiled once for all sizes.
#include "quantize/observed_model.hpp"

#include <algorithm>
#include <optional>

#include "base/fail.hpp"
#include "base/free_memory.hpp"
#include "driver/compilation.hpp"
#include "interp/interpreter.hpp"

namespace opfuse::quantization {

struct ObservedModel::Running {
  SymbolValues sizes;
  bool any_size = false;
  Executable executable;
  Context context;

  static std::unique_ptr<Running> compiled(const Graph& graph, const SymbolValues& sizes, const RunOptions& options) {
    CompilationOptions with;
    with.dims = sizes;
    with.artifact.cache = options.cache;
    with.artifact.brief = true;
    with.artifact.progress = options.progress;
    with.algorithms.threads = options.threads;
    Executable executable = Executable::from_artifact(compile_graph(graph, parse_target("host"), with).artifact);
    return_free_memory();
    release_file_pages();  // its weights are packed now
    Context context = executable.create_context({.threads = options.threads});
    return std::unique_ptr<Running>(new Running{sizes, sizes.empty(), std::move(executable), std::move(context)});
  }
};

ObservedModel::ObservedModel(const Graph& graph, const std::vector<std::string>& values, RunOptions options)
    : graph_(graph.clone()), own_outputs_(graph.outputs().size()), options_(std::move(options)) {
  std::vector<Value*> outputs = graph_.outputs();
  for (const std::string& name : values) {
    Value* value = graph_.find_value(name);
    OPFUSE_CHECK(value, "no value '{}'", name);
    const bool input = std::find(graph_.inputs().begin(), graph_.inputs().end(), value) != graph_.inputs().end();
    if (!input && std::find(outputs.begin(), outputs.end(), value) == outputs.end()) outputs.push_back(value);
  }
  graph_.set_outputs(outputs);
}

ObservedModel::~ObservedModel() = default;

void ObservedModel::run(const std::vector<Tensor>& inputs) {
  const SymbolValues sizes = bind_symbols(graph_, inputs);
  if (!running_)
    running_ = Running::compiled(graph_, sizes, options_);
  else if (!running_->any_size && running_->sizes != sizes)
    running_ = Running::compiled(graph_, {}, options_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArrayView array{inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()};
    const std::string& name = graph_.inputs()[i]->name;
    running_->context.bind(name, array);
    inputs_[name] = array;
  }
  running_->context.run();
}

ArrayView ObservedModel::value(const std::string& name) const {
  const auto input = inputs_.find(name);
  return input != inputs_.end() ? input->second : running_->context.output(name);
}

std::vector<std::string> ObservedModel::outputs() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < own_outputs_; ++i) names.push_back(graph_.outputs()[i]->name);
  return names;
}

}  // namespace opfuse::quantization
