// RowsToImages.
//     x[B,N,C] -- Transpose -- Reshape[B,C,H,W]  =  x -- Reshape[B,H,W,C] -- Transpose[B,C,H,W]
//     x[B,C,H,W] -- Reshape[B,C,N] -- Transpose  =  x -- Transpose[B,H,W,C] -- Reshape[B,N,C]
//     f(x[B,N,C]) -- Reshape[B,H,W,C] -- Transpose[B,C,H,W]  =  f(x -- Reshape[B,H,W,C]) -- Transpose
// where N = H W: tokens of a vision transformer become an image and rows again. Kernels store and load images whose
// channels are second or last, so such a transpose is part of its neighbour; that of rows is a copy. The reshape goes
// on to where it is between kernels anyway: in front of the Linear, norm and elementwise operators that make x, and
// behind the elementwise ones that read the result.
#include <algorithm>

#include "ir/copy_node.hpp"
#include "ir/outline.hpp"
#include "match/activation.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "ops/registry.hpp"
#include "ops/transpose.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "rows-to-images";
constexpr const char* kRule = "RowsToImages";

/// A transpose of rows and the reshape on its other side.
struct Turn {
  Node *transpose = nullptr, *reshape = nullptr;
  Dim images = 0;
  int64_t channels = 0, height = 0, width = 0;
};

bool turns_rows(const Node* node) {
  return node && node->is("transpose") && node->output()->type.shape.rank() == 3 &&
         Transpose::permutation(node->as<Transpose>(), 3) == std::vector<size_t>{0, 2, 1};
}

/// [B,C,H,W] and [B,C,N] of the same elements, all of them known but B.
std::optional<Turn> as_turn(Node* transpose, Node* reshape, const Shape& image, const Shape& rows) {
  if (image.rank() != 4 || rows.rank() != 3 || !(image[0] == rows[0]) || !(image[1] == rows[1])) return std::nullopt;
  for (const Dim& d : {image[1], image[2], image[3], rows[2]})
    if (!d.is_constant() || d.value() <= 0) return std::nullopt;
  if (image[2].value() * image[3].value() != rows[2].value()) return std::nullopt;
  if (image[0].is_constant() && image[0].value() <= 0) return std::nullopt;
  return Turn{transpose, reshape, image[0], image[1].value(), image[2].value(), image[3].value()};
}

std::optional<Turn> turn_into_image(Node* reshape) {
  if (!reshape->is("reshape") || !reshape->output()->type.shape.ranked) return std::nullopt;
  Node* transpose = reshape->input(0)->producer;
  if (!turns_rows(transpose) || !reshape->input(0)->only_use()) return std::nullopt;
  return as_turn(transpose, reshape, reshape->output()->type.shape, reshape->input(0)->type.shape);
}

std::optional<Turn> turn_into_rows(Node* transpose) {
  if (!turns_rows(transpose)) return std::nullopt;
  Node* reshape = transpose->input(0)->producer;
  if (!reshape || !reshape->is("reshape") || !transpose->input(0)->only_use() || !reshape->input(0)->type.shape.ranked)
    return std::nullopt;
  return as_turn(transpose, reshape, reshape->input(0)->type.shape, reshape->output()->type.shape);
}

/// Rows that are an image, channels last, before they are turned.
std::optional<Turn> image_of_rows(Node* transpose) {
  if (!transpose->is("transpose") || transpose->output()->type.shape.rank() != 4) return std::nullopt;
  if (Transpose::permutation(transpose->as<Transpose>(), 4) != std::vector<size_t>{0, 3, 1, 2}) return std::nullopt;
  Node* reshape = transpose->input(0)->producer;
  if (!reshape || !reshape->is("reshape") || !transpose->input(0)->only_use()) return std::nullopt;
  const Shape& x = reshape->input(0)->type.shape;
  if (!x.ranked || x.rank() != 3) return std::nullopt;
  return as_turn(transpose, reshape, transpose->output()->type.shape, {x[0], x[2], x[1]});
}

/// The operand that varies from row to row, of an operator that reads rows by themselves; nothing for others.
std::optional<size_t> elementwise_operand(const Node& node) {
  if (node.outputs.size() != 1) return std::nullopt;
  if (activation_name(node).empty() && (node.body || node.op->kind != OpKind::elementwise)) return std::nullopt;
  std::optional<size_t> data;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* v = node.inputs[i];
    if (!v || (v->is_constant() && v->type.shape.rank() <= 1)) continue;
    if (v->is_constant() || data) return std::nullopt;
    data = i;
  }
  const bool same = data && node.inputs[*data]->type.shape == node.output()->type.shape;
  return same ? data : std::nullopt;
}

std::optional<size_t> row_operand(const Node& node) {
  const auto constant = [&](size_t i) { return !node.input(i) || node.input(i)->is_constant(); };
  if (node.is("matmul") && constant(1) && !constant(0) && node.input(1)->type.shape.rank() == 2) return 0;
  if (is_a<LayerNorm>(node) && node.outputs.size() == 1 && constant(1) && constant(2) && !constant(0)) {
    const int64_t axis = node.as<LayerNorm>().axis, rank = static_cast<int64_t>(node.output()->type.shape.rank());
    return axis == -1 || axis == rank - 1 ? std::optional<size_t>(0) : std::nullopt;
  }
  return elementwise_operand(node);
}

Node* reshape_of(Graph& graph, Value* x, const std::vector<Dim>& dims, const Turn& turn, Node* before) {
  std::vector<int64_t> target;
  for (const Dim& d : dims) target.push_back(d.constant().value_or(-1));
  return graph.add_node(turn.reshape->op, AttrMap{}, {x, graph.add_constant(Tensor::from_i64(target))}, 1,
                        turn.reshape->sources, before);
}

Node* transpose_of(Graph& graph, Value* x, std::vector<int64_t> perm, const Turn& turn, Node* before) {
  return graph.add_node(turn.transpose->op, AttrMap{{"perm", std::move(perm)}}, {x}, 1, turn.transpose->sources,
                        before);
}

/// A norm's axis counts from the end on any rank.
Node* copy_on(Graph& graph, const Node& node, size_t operand, Value* x, Node* before) {
  std::vector<Value*> operands = node.inputs;
  operands[operand] = x;
  if (!is_a<LayerNorm>(node)) return copy_node(graph, node, operands, before);
  const AttrMap attrs = {{"axis", int64_t{-1}}, {"epsilon", node.as<LayerNorm>().epsilon}};
  return graph.add_node(node.op, attrs, operands, 1, node.sources, before);
}

/// What makes `x` out of rows, from the last on, where nothing else reads what it makes.
std::vector<std::pair<Node*, size_t>> makers_of(Value* x) {
  std::vector<std::pair<Node*, size_t>> found;
  while (x->producer && x->only_use()) {
    const auto operand = row_operand(*x->producer);
    if (!operand || !x->producer->inputs[*operand]->type.shape.dims.back().is_constant()) break;
    found.emplace_back(x->producer, *operand);
    x = x->producer->inputs[*operand];
  }
  return found;
}

/// `x`: the rows; `last`: what becomes the image.
void make_image(Graph& graph, const Turn& turn, Value* x, Node* last) {
  const std::vector<std::pair<Node*, size_t>> above = makers_of(x);
  if (!above.empty()) x = above.back().first->inputs[above.back().second];
  const Dim features = x->type.shape.dims.back();
  Value* y = reshape_of(graph, x, {turn.images, turn.height, turn.width, features}, turn, last)->output();
  for (auto it = above.rbegin(); it != above.rend(); ++it)
    y = copy_on(graph, *it->first, it->second, y, last)->output();
  y = transpose_of(graph, y, {0, 3, 1, 2}, turn, last)->output();
  take_over(graph, last->output(), y);
  graph.erase(last);
  graph.erase(last == turn.reshape ? turn.transpose : turn.reshape);
  for (const auto& [node, operand] : above) graph.erase(node);
}

void make_rows(Graph& graph, const Turn& turn) {
  Value* y = transpose_of(graph, turn.reshape->input(0), {0, 2, 3, 1}, turn, turn.transpose)->output();
  std::vector<Node*> below = {turn.transpose};
  while (Node* reader = below.back()->output()->only_reader()) {
    const auto operand = elementwise_operand(*reader);
    if (!operand) break;
    y = copy_on(graph, *reader, *operand, y, reader)->output();
    below.push_back(reader);
  }
  Value* last = below.back()->output();
  y = reshape_of(graph, y, {turn.images, turn.height * turn.width, turn.channels}, turn, below.back())->output();
  take_over(graph, last, y);
  for (auto it = below.rbegin(); it != below.rend(); ++it) graph.erase(*it);
  graph.erase(turn.reshape);
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  bool changed = false;
  const auto tell = [&](const std::string& where, const char* what) {
    changed = true;
    if (context.report) context.report->applied(kPass, kRule, where, what);
  };
  for (bool again = true; again;) {  // nodes change with each: look anew
    again = false;
    const std::vector<Node*> nodes = graph.nodes();
    for (Node* node : nodes) {
      const std::string where = node->name();
      if (const auto image = turn_into_image(node)) {
        make_image(graph, *image, image->transpose->input(0), image->reshape);
        tell(where, "reshape to [n,h,w,c], then transpose");
        again = true;
        break;
      }
      if (const auto image = image_of_rows(node); image && !makers_of(image->reshape->input(0)).empty()) {
        make_image(graph, *image, image->reshape->input(0), image->transpose);
        tell(where, "reshape before what makes the rows");
        again = true;
        break;
      }
      if (const auto rows = turn_into_rows(node)) {
        make_rows(graph, *rows);
        tell(where, "transpose to [n,h,w,c], then reshape");
        again = true;
        break;
      }
    }
  }
  return changed;
}

Pass rows_to_images() {
  return {"rows-to-images", "Rows that become an image, or an image rows, are turned as an image.", run, {}};
}

}  // namespace opfuse
