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

namespace {

std::map<std::string, ChannelBlocks> blocks_of(const Artifact& artifact, const Graph& graph,
                                               const SymbolValues& sizes) {
  std::map<std::string, ChannelBlocks> found;
  for (const ArtifactTensor& output : artifact.outputs) {
    const Layout layout = Layout::parse(artifact.layouts[static_cast<size_t>(output.buffer)].second);
    if (layout.is_dense()) continue;
    const auto axis = static_cast<size_t>(layout.blocks.front().axis);
    OPFUSE_CHECK(layout == Layout::channels_blocked(layout.order.size(), layout.blocks.front().axis,
                                                    layout.blocks.front().factor),
                 "'{}' lies as {}", output.name, layout.text());
    found[output.name] = {axis, graph.find_value(output.name)->type.shape[axis].evaluate(sizes)};
  }
  return found;
}

}  // namespace

struct ObservedModel::Running {
  SymbolValues sizes;
  bool any_size = false;
  std::map<std::string, ChannelBlocks> blocks;
  Executable executable;
  Context context;

  static std::unique_ptr<Running> compiled(const Graph& graph, const SymbolValues& sizes, const RunOptions& options,
                                           const std::set<std::string>& in_blocks) {
    CompilationOptions with;
    with.dims = sizes;
    with.artifact.cache = options.cache;
    with.artifact.brief = true;
    with.artifact.progress = options.progress;
    with.algorithms.threads = options.threads;
    with.outputs_in_blocks = in_blocks;
    Artifact artifact = compile_graph(graph, parse_target("host"), with).artifact;
    std::map<std::string, ChannelBlocks> blocks = blocks_of(artifact, graph, sizes);
    Executable executable = Executable::from_artifact(std::move(artifact));
    return_free_memory();
    release_file_pages();  // its weights are packed now
    Context context = executable.create_context({.threads = options.threads});
    return std::unique_ptr<Running>(
        new Running{sizes, sizes.empty(), std::move(blocks), std::move(executable), std::move(context)});
  }
};

ObservedModel::ObservedModel(const Graph& graph, const std::vector<std::string>& values, RunOptions options,
                             bool in_blocks)
    : graph_(graph.clone()), own_outputs_(graph.outputs().size()), options_(std::move(options)) {
  std::vector<Value*> outputs = graph_.outputs();
  for (const std::string& name : values) {
    Value* value = graph_.find_value(name);
    OPFUSE_CHECK(value, "no value '{}'", name);
    const bool input = std::find(graph_.inputs().begin(), graph_.inputs().end(), value) != graph_.inputs().end();
    if (!input && std::find(outputs.begin(), outputs.end(), value) == outputs.end()) {
      outputs.push_back(value);
      if (in_blocks) in_blocks_.insert(name);
    }
  }
  graph_.set_outputs(outputs);
}

ObservedModel::~ObservedModel() = default;

void ObservedModel::run(const std::vector<Tensor>& inputs) {
  const SymbolValues sizes = bind_symbols(graph_, inputs);
  if (!running_)
    running_ = Running::compiled(graph_, sizes, options_, in_blocks_);
  else if (!running_->any_size && running_->sizes != sizes)
    running_ = Running::compiled(graph_, {}, options_, in_blocks_);
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

std::optional<ChannelBlocks> ObservedModel::blocks(const std::string& name) const {
  const auto at = running_->blocks.find(name);
  return at == running_->blocks.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::string> ObservedModel::outputs() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < own_outputs_; ++i) names.push_back(graph_.outputs()[i]->name);
  return names;
}

}  // namespace opfuse::quantization
