// Nodes up to the last all_images, once per image:
//
//     x[B] -- split -- x[1] -- A -- t[1] -- all_images -- t[B]
//
//     x[B] -- split --+-- x[1] -- A -- t[1] --+-- concat -- t[B]
//                     +-- x[1] -- A -- t[1] --+
#include "shape/unroll_images.hpp"

#include <fmt/format.h>

#include <map>

#include "ir/copy_node.hpp"
#include "ir/outline.hpp"
#include "ir/value_name.hpp"
#include "ops/all_images.hpp"
#include "ops/concat.hpp"
#include "ops/registry.hpp"
#include "ops/split.hpp"

namespace opfuse {
namespace {

using Copies = std::map<int, Value*>;  ///< by id of the original

struct Unrolling {
  Graph& graph;
  std::vector<Node*> nodes;  ///< of an image
  int64_t images = 0;
  Node* before = nullptr;
  std::vector<Copies> copies = {};  ///< of each image

  void split(const Node& node) {
    auto attrs = std::make_shared<Split::Attrs>();
    attrs->split.assign(static_cast<size_t>(images), 1);
    const Node* parts = graph.add_node(ops().find("split"), attrs, {node.input(0)}, copies.size(), {}, before);
    for (size_t i = 0; i < copies.size(); ++i) put(*node.outputs[0], parts->outputs[i], i);
  }
  void put(const Value& original, Value* copy, size_t image) {
    copy->name = name_for_image(value_name(original), static_cast<int64_t>(image));
    copies[image][original.id] = copy;
  }
  void copy(const Node& node, size_t image) {
    const auto renamed = [&](const Value& v) { return name_for_image(value_name(v), static_cast<int64_t>(image)); };
    std::vector<Value*> operands;
    for (Value* v : node.inputs)
      operands.push_back(!v || v->is_constant() || !copies[image].contains(v->id) ? v : copies[image].at(v->id));
    const Node* made = copy_node(graph, node, operands, before, renamed);
    for (size_t i = 0; i < made->outputs.size(); ++i) put(*node.outputs[i], made->outputs[i], image);
  }
  void concat(const Node& node) {
    std::vector<Value*> parts;
    for (const Copies& of_image : copies) parts.push_back(of_image.at(node.input(0)->id));
    auto attrs = std::make_shared<Concat::Attrs>();
    attrs->axis = 0;
    const Node* whole = graph.add_node(ops().find("concat"), attrs, parts, 1, node.sources, before);
    take_over(graph, node.output(), whole->output());
  }
};

/// Cuts the images of an input of the graph; others cut an image, or weights.
bool cuts_batch(const Node& node) {
  return node.is("split") && !node.input(0)->producer && !node.input(0)->is_constant();
}

}  // namespace

std::string name_for_image(std::string_view name, int64_t image) {
  if (name.ends_with(kOfImage)) name.remove_suffix(kOfImage.size());
  return fmt::format("{}[image {}]", name, image);
}

Graph unroll_images(const Graph& fused) {
  Graph graph = fused.clone();
  size_t end = 0;
  Unrolling all{graph, {}};
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    if (const Node* node = graph.nodes()[i]; node->op == all_images_op())
      end = i + 1, all.images = node->as<AllImages>().images;
  if (end == 0) return graph;
  all.nodes.assign(graph.nodes().begin(), graph.nodes().begin() + static_cast<std::ptrdiff_t>(end));
  all.before = all.nodes.front();
  all.copies.resize(static_cast<size_t>(all.images));
  for (const Node* node : all.nodes)
    if (cuts_batch(*node)) all.split(*node);
  for (size_t image = 0; image < all.copies.size(); ++image)
    for (const Node* node : all.nodes)
      if (node->op != all_images_op() && !cuts_batch(*node)) all.copy(*node, image);
  for (const Node* node : all.nodes)
    if (node->op == all_images_op()) all.concat(*node);
  for (size_t i = all.nodes.size(); i-- > 0;) graph.erase(all.nodes[i]);
  return graph;
}

}  // namespace opfuse
