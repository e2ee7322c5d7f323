// The devices of an artifact. A GPU's pieces are compiled as one program of groups that share nothing but their
// kernels, each between inputs and outputs of its own:
//
//     0.in0, 0.in1 -- [group 0] -- 0.out0        1.in0 -- [group 1] -- 1.out0        ...
//
// Nodes have the number of their piece as their source, and launches keep sources: so each finds its launches again.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "driver/compilation.hpp"
#include "driver/placement.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "link/piece_text.hpp"
#include "runtime/placed_device.hpp"

namespace opfuse {
namespace {

class GpuProgram {
 public:
  /// Returns the number of the piece.
  size_t add(const Node& piece) {
    const size_t number = pieces_.size();
    GpuPiece& made = pieces_.emplace_back();
    made.first_input = static_cast<int>(graph_.inputs().size()), made.inputs = static_cast<int>(piece.inputs.size());
    made.first_output = static_cast<int>(outputs_.size()), made.outputs = static_cast<int>(piece.outputs.size());
    std::vector<Value*> inputs;
    for (const Value* v : piece.body->inputs())
      inputs.push_back(graph_.add_input(fmt::format("{}.in{}", number, inputs.size()), v->type));
    const size_t before = graph_.nodes().size();
    std::vector<Value*> results = inline_body(graph_, *piece.body, inputs, nullptr);
    for (size_t i = 0; i < results.size(); ++i) results[i]->name = fmt::format("{}.out{}", number, i);
    outputs_.insert(outputs_.end(), results.begin(), results.end());
    const std::vector<Node*>& nodes = graph_.nodes();
    groups_.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(before), nodes.end());
    labels_.push_back({fused_op(), piece.label, piece.pattern.substr(piece.pattern.rfind(':') + 1)});
    return number;
  }

  ArtifactDevice build(const TargetInfo& target, const CompilationOptions& with) {
    graph_.set_outputs(outputs_);
    for (size_t p = 0; p < groups_.size(); ++p) {
      mark(groups_[p], std::to_string(p));
      outline(graph_, groups_[p], labels_[p])->sources = {Source{std::to_string(p)}};
    }
    CompilationOptions options;
    options.limits = with.limits;
    options.artifact.threads = with.artifact.threads;
    options.artifact.cache = with.artifact.cache;
    options.artifact.progress = with.artifact.progress;
    Compilation compilation = compile_graph(graph_, target, options);
    ArtifactDevice device{.target = target.name};
    device.program = std::make_shared<const Artifact>(std::move(compilation.artifact));
    for (size_t l = 0; l < device.program->launches.size(); ++l)
      pieces_.at(std::stoul(device.program->launches[l].sources.at(0))).launches.push_back(static_cast<int>(l));
    device.pieces = std::move(pieces_);
    return device;
  }

 private:
  Graph graph_;
  std::vector<Value*> outputs_;
  std::vector<std::vector<Node*>> groups_;
  std::vector<Outline> labels_;
  std::vector<GpuPiece> pieces_;

  static void mark(const std::vector<Node*>& nodes, const std::string& piece) {
    for (Node* node : nodes) {
      node->sources = {Source{piece}};
      if (node->body) mark(node->body->nodes(), piece);
    }
  }
};

}  // namespace

int PlacedDevices::number_of(const std::string& target) const {
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].target == target) return static_cast<int>(i);
  OPFUSE_CHECK(false, "nothing was built for {}", target);
}

PlacedDevices build_devices(const Graph& fused, const Placed& placed, const CompilationOptions& options) {
  PlacedDevices built;
  std::map<std::string, GpuProgram> programs;
  std::set<std::string> used;
  for (const Node* node : fused.nodes()) {
    if (node->op != placed_op() || placed_kind(*node) != PlacedKind::run) continue;
    const std::string device = placed_device(*node);
    used.insert(device);
    const bool plugin = placed.plugins.contains(device);
    built.pieces[node->label] = plugin ? piece_text(*node) : fmt::format("gpu-piece {}", programs[device].add(*node));
  }
  for (const TargetInfo& target : placed.accelerators) {
    if (!used.contains(target.name)) continue;
    const PluginFile file = plugin_file_of(target);
    built.devices.push_back({.target = target.name, .library = file.library, .file = file.file});
    built.devices.back().session = std::make_shared<DeviceSession>(plugin_device(placed.plugins.at(target.name)));
  }
  for (const TargetInfo& gpu : placed.gpus)
    if (used.contains(gpu.name)) built.devices.push_back(programs.at(gpu.name).build(gpu, options));
  return built;
}

}  // namespace opfuse
