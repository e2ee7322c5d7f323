// An estimate on the graph: every node a launch, results of elementwise readers in their operand's place. The memory
// plan of the program that is built from it is exact. A wrong estimate costs launches, never correctness.
#include "shape/live_bytes.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/integers.hpp"
#include "ir/body.hpp"
#include "region/unroll_parts.hpp"

namespace opfuse {
namespace {

/// The operand is read by elementwise nodes only, and so is what they make of it, at the place of the result.
bool read_in_place(const Node& node, size_t operand) {
  if (!node.body) return node.op->kind == OpKind::elementwise;
  if (!stands_for_body(node)) return false;
  std::vector<const Value*> made{node.body->inputs()[operand]};
  std::unordered_set<const Value*> known{made[0]};  // looked up, never iterated
  for (size_t i = 0; i < made.size(); ++i)
    for (const Use& use : made[i]->uses) {
      if (use.node->op->kind != OpKind::elementwise) return false;
      for (const Value* v : use.node->outputs)
        if (known.insert(v).second) made.push_back(v);
    }
  return true;
}

struct Span {
  size_t first = 0, last = 0;
};

/// Where the result of a node may lie in the memory of an operand that dies there.
int64_t saved_in_place(const Node& node, size_t at, const std::map<int, Span>& spans) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto span = node.inputs[i] ? spans.find(node.inputs[i]->id) : spans.end();
    if (span != spans.end() && span->second.last == at && node.inputs[i]->type == node.output()->type &&
        read_in_place(node, i))
      return constant_bytes(*node.inputs[i]);
  }
  return 0;
}

}  // namespace

int64_t constant_bytes(const Value& value) {
  if (!value.type.shape.ranked) return -1;
  const Dim elements = value.type.shape.elements();
  return elements.is_constant() ? elements.value() * static_cast<int64_t>(byte_size(value.type.dtype)) : -1;
}

/// As it will lie: codes of images have zeros behind their last channel.
static int64_t bytes_in_blocks(const Value& value, int64_t channel_block) {
  constexpr size_t kImageRank = 4;
  constexpr int64_t kWord = 4;  // holds the channels of a first image (cpu/contraction/wish_contraction.cpp)
  const int64_t bytes = constant_bytes(value);
  if (bytes < 0 || value.type.shape.rank() < kImageRank || byte_size(value.type.dtype) != 1) return bytes;
  const int64_t channels = value.type.shape[1].value();
  if (channels == 0) return bytes;
  const int64_t block = channels <= kWord ? std::min(kWord, channel_block) : channel_block;
  return bytes / channels * ceil_of(channels, block) * block;
}

/// By position; empty when a size is not constant.
static std::vector<int64_t> bytes_by_position(const Graph& graph, int64_t channel_block) {
  std::map<int, Span> spans;
  std::vector<int64_t> live(graph.nodes().size(), 0);
  std::unordered_map<const Node*, size_t> position;  // looked up, never iterated
  for (const Node* node : graph.nodes()) position.emplace(node, position.size());
  for (size_t at = 0; at < graph.nodes().size(); ++at)
    for (const Value* v : graph.nodes()[at]->outputs) {
      if (graph.is_output(v)) continue;
      Span span{at, at};
      for (const Use& use : v->uses) span.last = std::max(span.last, position.at(use.node));
      const int64_t bytes = bytes_in_blocks(*v, channel_block);
      if (bytes < 0) return {};
      spans[v->id] = span;
      for (size_t i = span.first; i <= span.last; ++i) live[i] += bytes;
    }
  for (size_t at = 0; at < graph.nodes().size(); ++at) live[at] -= saved_in_place(*graph.nodes()[at], at, spans);
  return live;
}

/// `flat`: the graph with copies for slices. Nodes that are in both have one id. False when a size is not constant.
static bool walk(const Graph& flat, Graph& graph, int64_t around, int64_t channel_block, std::vector<LiveBytes>& live) {
  std::unordered_map<int, Node*> original;  // looked up, never iterated
  for (Node* node : graph.nodes()) original.emplace(node->id, node);
  const std::vector<int64_t> bytes = bytes_by_position(flat, channel_block);
  if (bytes.size() != flat.nodes().size()) return false;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const Node& node = *flat.nodes()[at];
    const auto found = original.find(node.id);
    Node* known = found == original.end() ? nullptr : found->second;
    if (!node.body || stands_for_body(node))
      live.push_back({&graph, known, around + bytes[at]});
    else if (!walk(*node.body, *known->body, around + bytes[at], channel_block, live))
      return false;
  }
  return true;
}

std::vector<LiveBytes> live_bytes(Graph& graph, int64_t channel_block) {
  Graph flat = graph.clone();
  unroll_parts(flat, true);
  std::vector<LiveBytes> live;
  if (!walk(flat, graph, 0, channel_block, live)) live.clear();
  return live;
}

}  // namespace opfuse
