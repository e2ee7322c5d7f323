// The first groups of a batch image by image, where the maps of all images together are larger than caches:
//
//     x[B] -- A -- s[B] -- C -- t[B] -- rest                     s holds B maps
//
//     x[B] -- split -- x[1] -- A -- s[1] -- C -- t[1] -- all_images -- t[B] -- rest
//
// The groups of an image are those of a batch of one, so what follows chooses chains and kernels for that; s holds one
// map, which C reads while it is in a cache. A program runs them in a loop (program/image_loop.hpp); x[1] and t[1] are
// parts of the maps of all images.
#include <algorithm>
#include <map>
#include <set>

#include "fusion/grouping.hpp"
#include "ir/copy_node.hpp"
#include "ir/outline.hpp"
#include "ops/all_images.hpp"
#include "ops/axes.hpp"
#include "ops/norm.hpp"
#include "ops/reduce.hpp"
#include "ops/registry.hpp"
#include "ops/split.hpp"
#include "ops/transpose.hpp"
#include "shape/shaping_passes.hpp"
#include "shape/unroll_images.hpp"

namespace opfuse {
namespace {

/// The axes of a mean are known and leave the first.
bool mean_of_image(const Node& node) {
  const Value* operand = node.input(1);
  if (operand && !operand->is_constant()) return false;
  const std::vector<int64_t> given = operand ? operand->constant->to_i64() : std::vector<int64_t>{};
  const std::vector<int64_t> axes =
      reduced_axes(node.as<ReduceMean>(), operand ? &given : nullptr, node.input(0)->type.shape.rank());
  return axes.empty() || axes[0] > 0;
}

/// Operators whose result for an image follows from that image alone and whose attributes name no extent.
bool works_by_image(const Node& node) {
  static const std::set<std::string_view> kAny = {
      "conv", "batch_norm", "max_pool", "average_pool", "global_average_pool", "global_max_pool", "matmul"};
  if (node.body)
    return std::all_of(node.body->nodes().begin(), node.body->nodes().end(),
                       [](const Node* inner) { return works_by_image(*inner); });
  const auto rank = [&] { return node.input(0)->type.shape.rank(); };
  if (node.is("layer_norm")) return normalize_axis(node.as<LayerNorm>().axis, rank()) > 0;
  if (node.is("transpose")) return Transpose::permutation(node.as<Transpose>(), rank())[0] == 0;
  if (node.is("reduce_mean")) return mean_of_image(node);
  if (node.is("max_pool") && node.outputs.size() > 1) return false;  // its indices count from the first image on
  if (node.is("conv") && node.input(1)->producer) return false;      // weights that follow from images
  return node.op->kind == OpKind::elementwise || kAny.contains(node.op->name);
}

/// A map of constant size.
bool is_map(const Value& value) {
  const Shape& shape = value.type.shape;
  return shape.ranked && shape.rank() >= 3 && shape.elements().is_constant();
}

/// Readers, in bodies too, are convolutions that multiply by it.
enum class AsWeights { none, some, all };
AsWeights read_as_weights(const Node& node, size_t operand) {
  if (!node.body) return node.is("conv") && operand > 0 ? AsWeights::all : AsWeights::none;
  bool some = false, all = true;
  for (const Use& use : node.body->inputs()[operand]->uses) {
    const AsWeights read = read_as_weights(*use.node, use.index);
    some |= read != AsWeights::none, all &= read == AsWeights::all;
  }
  return all ? AsWeights::all : some ? AsWeights::some : AsWeights::none;
}

/// A constant has nothing for a single image: weights, scalars, one value per channel.
bool is_shared(const Node& node, size_t operand, size_t rank, int64_t images) {
  const Shape& shape = node.inputs[operand]->type.shape;
  if (shape.rank() < rank || shape[0] != Dim(images)) return true;
  return read_as_weights(node, operand) == AsWeights::all;
}

// ---- which groups

struct Leading {
  std::vector<Node*> nodes;
  int64_t images = 0;
  size_t rank = 0;  ///< of all maps: those of another broadcast along other axes

  bool of_images(const Value& v) const {
    return is_map(v) && v.type.shape.rank() == rank && v.type.shape[0].value() == images;
  }
};

/// All operands and results are maps of the same images; constants are weights or the same for all of them.
bool takes_maps_of(const Node& node, const Leading& leading) {
  if (!works_by_image(node)) return false;
  for (const Value* v : node.outputs)
    if (!leading.of_images(*v)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* v = node.inputs[i];
    if (!v) continue;
    if (v->is_constant() && !is_shared(node, i, leading.rank, leading.images)) return false;
    if (!v->is_constant() && !(leading.of_images(*v) && read_as_weights(node, i) == AsWeights::none)) return false;
  }
  return true;
}

/// Groups in order, as many as save most.
Leading leading_groups(const Graph& graph, const ImageCaches& caches) {
  Leading all;
  std::vector<ImageTraffic> groups;
  std::set<const Value*> weights;
  for (Node* node : graph.nodes()) {
    if (all.images == 0 && !node->outputs.empty() && is_map(*node->output())) {
      const Shape& shape = node->output()->type.shape;
      all.images = shape[0].value(), all.rank = shape.rank();
    }
    if (all.images < 2 || !takes_maps_of(*node, all)) break;
    ImageTraffic& traffic = groups.emplace_back();
    const auto touches = [&](const Value* v) {
      if (!v->is_constant())
        traffic.maps.push_back(value_bytes(*v, {}) / all.images);
      else if (weights.insert(v).second)
        traffic.weights += value_bytes(*v, {});
    };
    for (const Value* v : node->inputs)
      if (v) touches(v);
    for (const Value* v : node->outputs) touches(v);
    all.nodes.push_back(node);
  }
  all.nodes.resize(groups_by_image(groups, all.images, caches));
  return all;
}

// ---- rewriting

/// The image that stands for each of a map.
Value* image_of(Graph& graph, Value* map, int64_t images, Node* before) {
  auto attrs = std::make_shared<Split::Attrs>();
  attrs->split = {1, images - 1};
  return graph.add_node(ops().find("split"), attrs, {map}, 2, {}, before)->output();
}

void rewrite(Graph& graph, const Leading& leading) {
  Node* first = leading.nodes.front();
  const std::vector<Value*> results = external_results(graph, leading.nodes);
  std::map<int, Value*> copies;  // by id of the original
  for (Value* operand : external_reads(leading.nodes))
    copies[operand->id] = operand->is_constant() ? operand : image_of(graph, operand, leading.images, first);
  for (const Node* node : leading.nodes) {
    std::vector<Value*> operands;
    for (const Value* v : node->inputs) operands.push_back(v ? copies.at(v->id) : nullptr);
    const Node* copy = copy_node(graph, *node, operands, first);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      if (!node->outputs[i]->name.empty()) copy->outputs[i]->name = node->outputs[i]->name + std::string(kOfImage);
      copies[node->outputs[i]->id] = copy->outputs[i];
    }
  }
  for (Value* result : results) {
    auto attrs = std::make_shared<AllImages::Attrs>();
    attrs->images = leading.images;
    const Node* whole =
        graph.add_node(all_images_op(), attrs, {copies.at(result->id)}, 1, result->producer->sources, first);
    take_over(graph, result, whole->output());
  }
  for (size_t i = leading.nodes.size(); i-- > 0;) graph.erase(leading.nodes[i]);
}

constexpr const char* kPass = "loop-over-images";

/// As many groups as save most; leaves graphs alone where those are fewer than two.
bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  if (context.switched_off(kPass)) return false;
  const Leading leading = leading_groups(fused, context.caches);
  if (leading.nodes.size() < 2) return false;
  int64_t largest = 0;
  ShapeVerdict verdict{.pass = kPass};
  for (const Node* node : leading.nodes) {
    verdict.nodes.push_back(name_of_group(*node));
    for (const Source& source : node->sources) verdict.sources.push_back(source.name);
    for (const Value* v : node->outputs) largest = std::max(largest, value_bytes(*v, {}));
  }
  verdict.numbers = {{"images", leading.images}, {"bytes", largest}};
  verdicts.push_back(std::move(verdict));
  rewrite(fused, leading);
  return true;
}

}  // namespace

ShapingPass loop_over_images() { return {kPass, "The first groups of a batch run image by image.", run}; }

}  // namespace opfuse
