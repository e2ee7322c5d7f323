// The first groups of a batch image by image, where the maps of all images together are larger than caches:
//
//     x[B] -- A -- s[B] -- C -- t[B] -- rest                     s holds B maps
//
//     x[B] -- for_parts { x[1] -- A -- s[1] -- C -- t[1] } -- t[B] -- rest
//
// The groups of an image are those of a batch of one, so what follows chooses chains and kernels for that; s holds one
// map, which C reads while it is in a cache. A program runs them in a loop (program/body.hpp); x[1] and t[1] are parts
// of the maps of all images.
#include <algorithm>
#include <map>
#include <set>

#include "fusion/grouping.hpp"
#include "ir/body.hpp"
#include "ir/copy_node.hpp"
#include "ir/for_parts.hpp"
#include "ir/outline.hpp"
#include "ir/placed.hpp"
#include "ops/axes.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/pool.hpp"
#include "ops/reduce.hpp"
#include "ops/transpose.hpp"
#include "shape/shaping_passes.hpp"

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
  if (node.op == placed_op() || (node.body && !stands_for_body(node))) return false;
  if (node.body)
    return std::all_of(node.body->nodes().begin(), node.body->nodes().end(),
                       [](const Node* inner) { return works_by_image(*inner); });
  const auto rank = [&] { return node.input(0)->type.shape.rank(); };
  if (is_a<LayerNorm>(node)) return normalize_axis(node.as<LayerNorm>().axis, rank()) > 0;
  if (is_a<Transpose>(node)) return Transpose::permutation(node.as<Transpose>(), rank())[0] == 0;
  if (is_a<ReduceMean>(node)) return mean_of_image(node);
  if (is_a<MaxPool>(node) && node.outputs.size() > 1) return false;  // its indices count from the first image on
  if (is_a<Conv>(node) && node.input(1)->producer) return false;     // weights that follow from images
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
  if (!node.body) return is_a<Conv>(node) && operand > 0 ? AsWeights::all : AsWeights::none;
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

/// The nodes on one image: maps become inputs of the body, weights and scalars lie in it.
std::unique_ptr<Graph> body_of(const Leading& leading, const std::vector<Value*>& maps,
                               const std::vector<Value*>& results) {
  auto body = std::make_unique<Graph>();
  std::map<int, Value*> inner;  // by id of what it stands for
  for (const Value* map : maps) {
    TensorType image = map->type;
    image.shape[0] = Dim(1);
    inner[map->id] = body->add_input(map->name, image);
  }
  for (const Value* operand : external_reads(leading.nodes))
    if (operand->is_constant()) inner[operand->id] = body->add_constant(*operand->constant, operand->name);
  for (const Node* node : leading.nodes) {
    std::vector<Value*> operands;
    for (const Value* v : node->inputs) operands.push_back(v ? inner.at(v->id) : nullptr);
    const Node* copy = copy_node(*body, *node, operands, nullptr);
    for (size_t i = 0; i < copy->outputs.size(); ++i) {
      copy->outputs[i]->name = node->outputs[i]->name;
      inner[node->outputs[i]->id] = copy->outputs[i];
    }
  }
  std::vector<Value*> outputs;
  for (const Value* result : results) outputs.push_back(inner.at(result->id));
  body->set_outputs(std::move(outputs));
  return body;
}

void rewrite(Graph& graph, const Leading& leading) {
  const std::vector<Value*> results = external_results(graph, leading.nodes);
  std::vector<Value*> maps = external_reads(leading.nodes);
  std::erase_if(maps, [](const Value* v) { return v->is_constant(); });
  ForParts::Attrs attrs{.parts = leading.images, .of = "image"};
  attrs.cuts.assign(maps.size(), 0);
  attrs.joins.assign(results.size(), 0);
  const Node* loop = add_for_parts(graph, std::move(attrs), maps, body_of(leading, maps, results),
                                   united_sources(leading.nodes), leading.nodes.front());
  for (size_t i = 0; i < results.size(); ++i) take_over(graph, results[i], loop->outputs[i]);
  graph.erase(leading.nodes);
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
