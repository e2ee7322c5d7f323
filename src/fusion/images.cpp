#include "fusion/images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fusion/grouping.hpp"
#include "ir/outline.hpp"
#include "ops/concat.hpp"
#include "ops/registry.hpp"
#include "ops/split.hpp"

namespace opfuse {
namespace {

/// Operators whose result for an image follows from that image alone and whose attributes name no extent.
bool works_by_image(const Node& node) {
  static const std::set<std::string_view> kWindows = {"conv",         "batch_norm",          "max_pool",
                                                      "average_pool", "global_average_pool", "global_max_pool"};
  if (node.body)
    return std::all_of(node.body->nodes().begin(), node.body->nodes().end(),
                       [](const Node* inner) { return works_by_image(*inner); });
  return node.op->kind == OpKind::elementwise || kWindows.contains(node.op->name);
}

/// The images of a map, 0: no map of constant size.
int64_t images_of(const Value& value) {
  const Shape& shape = value.type.shape;
  if (!shape.ranked || shape.rank() < 3 || !shape.elements().is_constant()) return 0;
  return shape[0].value();
}

/// Every reader is a convolution that multiplies by it.
bool read_as_weights(const Node& node, size_t operand) {
  if (!node.body) return node.is("conv") && operand > 0;
  const Value* inner = node.body->inputs()[operand];
  return std::all_of(inner->uses.begin(), inner->uses.end(),
                     [](const Use& use) { return read_as_weights(*use.node, use.index); });
}

/// A constant has nothing for a single image: weights, scalars, one value per channel.
bool is_shared(const Node& node, size_t operand, size_t rank, int64_t images) {
  const Shape& shape = node.inputs[operand]->type.shape;
  if (shape.rank() < rank || shape[0] != Dim(images)) return true;
  return read_as_weights(node, operand);
}

// ---- which groups

struct Leading {
  std::vector<Node*> nodes;
  int64_t images = 0;
};

/// All operands and results are maps of `images` images; constants are weights or the same for all of them.
bool takes_maps_of(const Node& node, int64_t images) {
  const auto is_map = [&](const Value* v) { return images_of(*v) == images; };
  if (!works_by_image(node) || !std::all_of(node.outputs.begin(), node.outputs.end(), is_map)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* v = node.inputs[i];
    if (v && !(v->is_constant() ? is_shared(node, i, node.output()->type.shape.rank(), images) : is_map(v)))
      return false;
  }
  return true;
}

/// Groups in order up to the last one that reads or makes a map beyond the caches.
Leading leading_groups(const Graph& graph, const ImageCaches& caches) {
  Leading all;
  size_t last = 0;
  int64_t weights = 0;
  for (Node* node : graph.nodes()) {
    if (all.images == 0 && !node->outputs.empty()) all.images = images_of(*node->output());
    if (all.images < 2 || !takes_maps_of(*node, all.images)) break;
    bool far = false;
    for (const Value* v : node->inputs) {
      if (v && v->is_constant()) weights += value_bytes(*v, {});
      if (v && !v->is_constant()) far |= value_bytes(*v, {}) > caches.maps;
    }
    for (const Value* v : node->outputs) far |= value_bytes(*v, {}) > caches.maps;
    if (weights > caches.weights) break;
    all.nodes.push_back(node);
    if (far) last = all.nodes.size();
  }
  all.nodes.resize(last);
  return all;
}

// ---- rewriting

using Copies = std::map<int, Value*>;  ///< by id of the original

Node* copy_of(Graph& graph, const Node& node, const std::vector<Value*>& operands, Node* before);

std::unique_ptr<Graph> body_of(const Node& node, const std::vector<Value*>& operands) {
  auto body = std::make_unique<Graph>();
  const Graph& from = *node.body;
  Copies copies;
  for (size_t i = 0; i < from.inputs().size(); ++i)
    copies[from.inputs()[i]->id] = body->add_input(from.inputs()[i]->name, operands[i]->type);
  for (const Value* c : from.constants()) copies[c->id] = body->add_constant(*c->constant, c->name);
  for (const Node* inner : from.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : inner->inputs) inputs.push_back(v ? copies.at(v->id) : nullptr);
    const Node* copy = copy_of(*body, *inner, inputs, nullptr);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      copy->outputs[i]->name = inner->outputs[i]->name;
      copies[inner->outputs[i]->id] = copy->outputs[i];
    }
  }
  std::vector<Value*> outputs;
  for (const Value* v : from.outputs()) outputs.push_back(copies.at(v->id));
  body->set_outputs(outputs);
  return body;
}

Node* copy_of(Graph& graph, const Node& node, const std::vector<Value*>& operands, Node* before) {
  std::unique_ptr<Graph> body = node.body ? body_of(node, operands) : nullptr;
  std::vector<TensorType> types;
  if (body)
    for (const Value* v : body->outputs()) types.push_back(v->type);
  Node* copy = graph.add_node(node.op, node.attrs_, operands, node.outputs.size(), node.sources, before, types);
  copy->body = std::move(body);
  copy->pattern = node.pattern;
  copy->label = node.label;
  return copy;
}

/// The maps of an operand, one per image.
std::vector<Value*> split_images(Graph& graph, Value* map, int64_t images, Node* before) {
  auto attrs = std::make_shared<Split::Attrs>();
  attrs->split.assign(static_cast<size_t>(images), 1);
  const Node* split = graph.add_node(ops().find("split"), attrs, {map}, static_cast<size_t>(images), {}, before);
  return split->outputs;
}

void copy_image(Graph& graph, const Leading& leading, int64_t image, Copies& copies, Node* before) {
  const std::string suffix = fmt::format("[image {}]", image);
  for (const Node* node : leading.nodes) {
    std::vector<Value*> operands;
    for (Value* v : node->inputs) operands.push_back(!v || v->is_constant() ? v : copies.at(v->id));
    Node* copy = copy_of(graph, *node, operands, before);
    if (!node->label.empty()) copy->label = node->label + suffix;
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      if (!node->outputs[i]->name.empty()) copy->outputs[i]->name = node->outputs[i]->name + suffix;
      copies[node->outputs[i]->id] = copy->outputs[i];
    }
  }
}

void rewrite(Graph& graph, const Leading& leading) {
  Node* first = leading.nodes.front();
  const std::vector<Value*> results = external_results(graph, leading.nodes);
  std::vector<Copies> copies(static_cast<size_t>(leading.images));
  for (Value* operand : external_reads(leading.nodes)) {
    if (operand->is_constant()) continue;
    const std::vector<Value*> maps = split_images(graph, operand, leading.images, first);
    for (size_t i = 0; i < maps.size(); ++i) copies[i][operand->id] = maps[i];
  }
  for (int64_t i = 0; i < leading.images; ++i) copy_image(graph, leading, i, copies[static_cast<size_t>(i)], first);
  for (Value* result : results) {
    std::vector<Value*> maps;
    for (const Copies& of_image : copies) maps.push_back(of_image.at(result->id));
    auto attrs = std::make_shared<Concat::Attrs>();
    attrs->axis = 0;
    const Node* whole = graph.add_node(ops().find("concat"), attrs, maps, 1, result->producer->sources, first);
    take_over(graph, result, whole->output());
  }
  for (size_t i = leading.nodes.size(); i-- > 0;) graph.erase(leading.nodes[i]);
}

}  // namespace

std::vector<std::string> run_by_images(Graph& fused, const ImageCaches& caches) {
  const Leading leading = leading_groups(fused, caches);
  if (leading.nodes.size() < 2) return {};
  int64_t largest = 0;
  for (const Node* node : leading.nodes)
    for (const Value* v : node->outputs) largest = std::max(largest, value_bytes(*v, {}));
  rewrite(fused, leading);
  return {fmt::format("{} groups run image by image: maps of at most {:.2f} MB between them instead of {:.2f}",
                      leading.nodes.size(), 1e-6 * static_cast<double>(largest) / static_cast<double>(leading.images),
                      1e-6 * static_cast<double>(largest))};
}

}  // namespace opfuse
