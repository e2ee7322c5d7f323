// Walks backwards from the operands in the table below. Shape and Size end a walk: what they give follows from sizes.
// An input of more dimensions is data (the mask behind a NonZero), which no user would fix.
#include "onnx/shape_inputs.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.hpp"
#include "base/limits.hpp"

namespace opfuse::onnx {
namespace {

struct Row {
  Bytes op;
  size_t first, last;  ///< operands that decide the result's shape, or how it is computed
};

constexpr Row kRows[] = {
    {"AffineGrid", 1, 1},
    {"BlackmanWindow", 0, 0},
    {"CenterCropPad", 1, 1},
    {"Col2Im", 1, 2},
    {"Compress", 1, 1},
    {"ConstantOfShape", 0, 0},
    {"CumProd", 1, 1},
    {"CumSum", 1, 1},
    {"DFT", 1, 2},
    {"Dropout", 1, 2},
    {"Expand", 1, 1},
    {"HammingWindow", 0, 0},
    {"HannWindow", 0, 0},
    {"If", 0, 0},
    {"Loop", 0, 1},
    {"MaxUnpool", 2, 2},
    {"MelWeightMatrix", 0, 4},
    {"NonMaxSuppression", 2, 4},
    {"OneHot", 1, 1},
    {"Pad", 1, 1},
    {"Pad", 3, 3},
    {"Range", 0, 2},
    {"ReduceL1", 1, 1},
    {"ReduceL2", 1, 1},
    {"ReduceLogSum", 1, 1},
    {"ReduceLogSumExp", 1, 1},
    {"ReduceMax", 1, 1},
    {"ReduceMean", 1, 1},
    {"ReduceMin", 1, 1},
    {"ReduceProd", 1, 1},
    {"ReduceSum", 1, 1},
    {"ReduceSumSquare", 1, 1},
    {"Reshape", 1, 1},
    {"Resize", 1, 3},
    {"STFT", 1, 3},
    {"SequenceAt", 1, 1},
    {"SequenceErase", 1, 1},
    {"SequenceInsert", 2, 2},
    {"Slice", 1, 4},
    {"Split", 1, 1},
    {"SplitToSequence", 1, 1},
    {"Squeeze", 1, 1},
    {"Tile", 1, 2},
    {"TopK", 1, 1},
    {"Unsqueeze", 1, 1},
    {"Upsample", 1, 1},
};

bool fixable(const ValueInfo& info) {
  return info.type.kind == TypeKind::tensor && info.type.has_shape && info.type.dims.size() <= 1;
}

}  // namespace

bool decides_shape(const NodeProto& node, size_t operand) {
  return is_default_domain(node.domain) && std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
           return row.op == node.op_type && row.first <= operand && operand <= row.last;
         });
}

namespace {

/// All nodes, those of branches and bodies too: these read names of the graph around them.
class AllNodes {
 public:
  struct Entry {
    const NodeProto* node;
    std::vector<Bytes> results = {};  ///< of its branches and bodies
  };
  void add(const NodeProto& node, int depth = 0) {
    Entry& entry = entries_.emplace_back(Entry{&node});
    for (const Attribute& a : node.attributes) {
      if (a.type != AttributeType::graph || depth >= deepest_) continue;
      GraphProto& body = bodies_.emplace_back();
      try {
        body = parse_graph_proto(a.graph);
      } catch (const Error&) {  // told where the node is read
        continue;
      }
      for (const ValueInfo& result : body.outputs) entry.results.push_back(result.name);
      for (const NodeProto& inner : body.nodes) add(inner, depth + 1);
    }
  }
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  const int64_t deepest_ = limits_in_force().nested_graphs;  // deeper ones are refused where they are read
  std::deque<Entry> entries_;                                // references stay
  std::deque<GraphProto> bodies_;
};

}  // namespace

std::vector<std::string> shape_inputs(const std::vector<FlatNode>& nodes, const GraphProto& graph) {
  AllNodes all;
  for (const FlatNode& node : nodes) all.add(node.proto);
  std::unordered_map<Bytes, const AllNodes::Entry*> producers;
  std::vector<Bytes> reached;
  for (const AllNodes::Entry& entry : all.entries()) {
    for (Bytes output : entry.node->outputs) producers.emplace(output, &entry);
    for (size_t i = 0; i < entry.node->inputs.size(); ++i)
      if (decides_shape(*entry.node, i)) reached.push_back(entry.node->inputs[i]);
  }
  std::unordered_set<Bytes> seen;
  while (!reached.empty()) {
    const Bytes name = reached.back();
    reached.pop_back();
    if (name.empty() || !seen.insert(name).second) continue;
    const auto producer = producers.find(name);
    if (producer == producers.end()) continue;
    const NodeProto& node = *producer->second->node;
    if (node.op_type == "Shape" || node.op_type == "Size") continue;
    reached.insert(reached.end(), node.inputs.begin(), node.inputs.end());
    reached.insert(reached.end(), producer->second->results.begin(), producer->second->results.end());
  }
  std::unordered_set<Bytes> constants;
  for (const TensorProto& tensor : graph.initializers) constants.insert(tensor.name);
  std::vector<std::string> names;
  for (const ValueInfo& info : graph.inputs)
    if (seen.contains(info.name) && !constants.contains(info.name) && fixable(info)) names.emplace_back(info.name);
  return names;
}

}  // namespace opfuse::onnx
