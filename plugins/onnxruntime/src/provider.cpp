#include "provider.hpp"

#include <algorithm>

#include "compiled_file.hpp"
#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

std::vector<std::string> names_of(const std::vector<const ValueInfo*>& values) {
  std::vector<std::string> names;
  for (const ValueInfo* value : values) names.push_back(name_of(value));
  return names;
}

void fuse(SupportInfo* found, const std::vector<const Node*>& nodes, bool drop_constants) {
  FusionOptions options;
  options.drop_constant_initializers = drop_constants;
  check(tables.ep(entry::EpGraphSupportInfo_AddNodesToFuse, found, nodes.data(), nodes.size(), &options));
}

}  // namespace

Provider::Provider(Options options, const Logger* logger) : options_(std::move(options)), logger_(logger) {
  GetName = [](const Ep*) { return kProviderName; };
  GetCapability = [](Ep* self, const Graph* graph, SupportInfo* found) {
    return guarded("choosing nodes", [&] { static_cast<Provider*>(self)->claim(graph, found); });
  };
  Compile = [](Ep* self, const Graph** graphs, const Node** fused, size_t count, NodeComputeInfo** runners,
               Node** contexts) {
    return guarded("compiling",
                   [&] { static_cast<Provider*>(self)->compile(graphs, fused, count, runners, contexts); });
  };
  ReleaseNodeComputeInfos = [](Ep*, NodeComputeInfo** runners, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<PartRunner*>(runners[i]);
  };
}

void Provider::log(int level, const std::string& text) const {
  if (Status* status = tables.api(entry::Logger_LogMessage, logger_, level, ("opfuse: " + text).c_str(), __FILE__,
                                  __LINE__, "opfuse"))
    tables.api(entry::ReleaseStatus, status);
}

void Provider::claim(const Graph* graph, SupportInfo* found) {
  const std::vector<const Node*> nodes = nodes_of(graph);
  bool compiled_before = false;
  for (const Node* node : nodes)
    if (is_context_node(node)) fuse(found, {node}, false), compiled_before = true;
  if (compiled_before || nodes.empty()) return;
  size_t taken = 0;
  std::vector<Part> parts = parts_of(graph, options_, [&](const std::string& text) { log(kWarning, text); });
  for (Part& part : parts) {
    fuse(found, part.nodes, true);
    taken += part.nodes.size();
    parts_.push_back(std::move(part));
  }
  log(kInfo, std::to_string(taken) + " of " + std::to_string(nodes.size()) + " nodes in " +
                 std::to_string(parts.size()) + " parts");
}

std::unique_ptr<PartRunner> Provider::runner_of(const Graph* graph, const Node* fused, Node** context) {
  const std::vector<const Node*> nodes = nodes_of(graph);
  const auto inputs = names_of(inputs_of(fused)), outputs = names_of(outputs_of(fused));
  const int threads = options_.compile.threads;
  if (nodes.size() == 1 && is_context_node(nodes.front()))
    return std::make_unique<PartRunner>(load_context(graph, nodes.front()), inputs, outputs, threads);
  const std::string key = key_of(nodes);
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.key == key; });
  const Executable executable = known != parts_.end() ? known->executable : compile_nodes(graph, nodes, options_);
  if (options_.write_context)
    *context = make_context_node(graph, text_of(entry::Node_GetName, fused), executable, options_);
  return std::make_unique<PartRunner>(executable, inputs, outputs, threads);
}

void Provider::compile(const Graph** graphs, const Node** fused, size_t count, NodeComputeInfo** runners,
                       Node** contexts) {
  std::vector<std::unique_ptr<PartRunner>> made;
  for (size_t i = 0; i < count; ++i) made.push_back(runner_of(graphs[i], fused[i], contexts ? contexts + i : nullptr));
  for (size_t i = 0; i < count; ++i) runners[i] = made[i].release();
  parts_.clear();
}

}  // namespace opfuse::ort
