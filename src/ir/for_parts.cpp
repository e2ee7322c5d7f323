#include "ir/for_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/fail.hpp"
#include "ir/body.hpp"

namespace opfuse {
namespace {

using Attrs = ForParts::Attrs;

const Attrs& attrs_of(const void* attrs) { return *static_cast<const Attrs*>(attrs); }

template <class T>
void read_field(const AttrMap& map, std::string_view name, T& field, size_t& used) {
  const AttrValue* value = find(map, name);
  if (!value) return;
  const T* given = std::get_if<T>(value);
  if (!given) throw fail(E::bad_attribute, "attribute \"{}\" of for_parts is of another type", name);
  field = *given;
  ++used;
}

std::shared_ptr<const void> from_map(const AttrMap& map) {
  auto attrs = std::make_shared<Attrs>();
  size_t used = 0;
  read_field(map, "parts", attrs->parts, used);
  read_field(map, "of", attrs->of, used);
  read_field(map, "cuts", attrs->cuts, used);
  read_field(map, "joins", attrs->joins, used);
  if (used != map.size()) throw fail(E::bad_attribute, "for_parts has the attributes parts, of, cuts and joins");
  return attrs;
}

AttrMap to_map(const void* given) {
  const Attrs& attrs = attrs_of(given);
  return {{"parts", attrs.parts}, {"of", attrs.of}, {"cuts", attrs.cuts}, {"joins", attrs.joins}};
}

OpInfo make_op() {
  OpInfo info;
  info.name = "for_parts";
  info.kind = OpKind::composite;
  info.inputs = {{"inputs", true, true}};
  info.outputs = {{"outputs", true, true}};
  info.doc = "The same nodes for one part of their operands after the other.";
  info.has_body = true;
  info.attrs_from_map = from_map;
  info.attrs_to_map = to_map;
  const Attrs defaults;
  info.default_attrs = to_map(&defaults);
  return info;
}

/// The axis of a type; E::shape_mismatch where it has none such.
Dim& extent_of(TensorType& type, int64_t axis) {
  if (!type.shape.ranked || axis < 0 || axis >= static_cast<int64_t>(type.shape.rank()))
    throw fail(E::shape_mismatch, "{} has no axis {} that for_parts could go along", type.text(), axis);
  return type.shape[static_cast<size_t>(axis)];
}

void check_count(std::string_view what, size_t axes, size_t values) {
  if (axes != values) throw fail(E::bad_attribute, "for_parts names {} {} for {} values", axes, what, values);
}

/// A tensor as rows along an axis: so many of them, and bytes of one step along it.
struct Rows {
  int64_t count = 1;
  size_t step = 0;
  Rows(const Tensor& tensor, int64_t axis) {
    for (int64_t d = 0; d < axis; ++d) count *= tensor.dim(static_cast<size_t>(d));
    step = byte_size(tensor.dtype());
    for (size_t d = static_cast<size_t>(axis) + 1; d < tensor.rank(); ++d) step *= static_cast<size_t>(tensor.dim(d));
  }
};

}  // namespace

const OpInfo* for_parts_op() {
  static const OpInfo info = make_op();
  return &info;
}

std::vector<TensorType> part_types(const void* given, const std::vector<TensorType>& operands) {
  const Attrs& attrs = attrs_of(given);
  if (attrs.parts < 1) throw fail(E::bad_attribute, "for_parts cannot run for {} parts", attrs.parts);
  check_count("cuts", attrs.cuts.size(), operands.size());
  std::vector<TensorType> types = operands;
  for (size_t i = 0; i < types.size(); ++i) {
    if (attrs.cuts[i] == ForParts::kWhole) continue;
    Dim& extent = extent_of(types[i], attrs.cuts[i]);
    if (!extent.is_constant() || extent.value() % attrs.parts != 0)
      throw fail(E::shape_mismatch, "axis {} of {} cannot be cut into {} equal parts", attrs.cuts[i],
                 operands[i].text(), attrs.parts);
    extent = Dim(extent.value() / attrs.parts);
  }
  return types;
}

std::vector<TensorType> joined_types(const void* given, const std::vector<TensorType>& parts) {
  const Attrs& attrs = attrs_of(given);
  check_count("joins", attrs.joins.size(), parts.size());
  std::vector<TensorType> types = parts;
  for (size_t i = 0; i < types.size(); ++i) {
    Dim& extent = extent_of(types[i], attrs.joins[i]);
    extent = extent * Dim(attrs.parts);
  }
  return types;
}

Tensor part_of(const Tensor& whole, int64_t axis, int64_t parts, int64_t i) {
  const auto at = static_cast<size_t>(axis);
  OPFUSE_CHECK(at < whole.rank() && whole.dim(at) % parts == 0, "a tensor without {} parts along axis {}", parts, axis);
  std::vector<int64_t> sizes = whole.sizes();
  sizes[at] /= parts;
  const Rows rows(whole, axis);
  const size_t bytes = rows.step * static_cast<size_t>(sizes[at]), pitch = bytes * static_cast<size_t>(parts);
  if (rows.count == 1) {
    const auto owner = std::make_shared<Tensor>(whole);
    const char* from = static_cast<const char*>(owner->data()) + bytes * static_cast<size_t>(i);
    return Tensor::wrap(whole.dtype(), std::move(sizes), from, owner);
  }
  Tensor part(whole.dtype(), std::move(sizes));
  const char* from = static_cast<const char*>(whole.data()) + bytes * static_cast<size_t>(i);
  char* to = static_cast<char*>(part.mutable_data());
  for (int64_t row = 0; row < rows.count && bytes > 0; ++row, from += pitch, to += bytes) std::memcpy(to, from, bytes);
  return part;
}

Tensor join_parts(const std::vector<Tensor>& parts, int64_t axis) {
  OPFUSE_CHECK(!parts.empty() && static_cast<size_t>(axis) < parts[0].rank(), "parts without axis {}", axis);
  std::vector<int64_t> sizes = parts[0].sizes();
  sizes[static_cast<size_t>(axis)] *= static_cast<int64_t>(parts.size());
  Tensor whole(parts[0].dtype(), std::move(sizes));
  const Rows rows(whole, axis);
  const size_t bytes = rows.step * static_cast<size_t>(parts[0].dim(static_cast<size_t>(axis)));
  char* to = static_cast<char*>(whole.mutable_data());
  for (int64_t row = 0; row < rows.count && bytes > 0; ++row)
    for (const Tensor& part : parts) {
      OPFUSE_CHECK(part.sizes() == parts[0].sizes() && part.dtype() == parts[0].dtype(), "parts differ");
      std::memcpy(to, static_cast<const char*>(part.data()) + bytes * static_cast<size_t>(row), bytes);
      to += bytes;
    }
  return whole;
}

Node* add_for_parts(Graph& graph, ForParts::Attrs attrs, std::vector<Value*> operands, std::unique_ptr<Graph> body,
                    std::vector<Source> sources, Node* before) {
  const auto held = std::make_shared<const Attrs>(std::move(attrs));
  std::vector<TensorType> types = joined_types(held.get(), types_of(body->outputs()));
  const size_t results = types.size();
  Node* node =
      graph.add_node(for_parts_op(), held, std::move(operands), results, std::move(sources), before, std::move(types));
  node->body = std::move(body);
  return node;
}

std::string part_name(std::string_view name, std::string_view of, int64_t part) {
  const std::string any = fmt::format("[{}]", of);
  if (name.ends_with(any)) name.remove_suffix(any.size());
  return fmt::format("{}[{} {}]", name, of, part);
}

/// Parts of inner axes are known by their range where they have no name.
static bool by_range(const Node& loop) {
  const Attrs& attrs = loop.as<ForParts>();
  if (!attrs.of.empty() || attrs.joins.empty() || attrs.joins.front() == 0) return false;
  return loop.output()->type.shape[static_cast<size_t>(attrs.joins.front())].is_constant();
}

std::string name_in_part(const Node& loop, std::string_view name, int64_t part) {
  const Attrs& attrs = loop.as<ForParts>();
  const std::string_view of = attrs.of.empty() ? "part" : std::string_view(attrs.of);
  if (part < 0) return fmt::format("{}[{}]", name, of);
  if (!by_range(loop)) return part_name(name, of, part);
  const int64_t size = loop.output()->type.shape[static_cast<size_t>(attrs.joins.front())].value() / attrs.parts;
  return fmt::format("{}[{}:{}]", name, part * size, (part + 1) * size);
}

int64_t unrolled_nodes(const Graph& graph) {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  int64_t sum = 0;
  for (const Node* node : graph.nodes()) {
    if (node->op != for_parts_op()) continue;
    int64_t inside = 0, copies = 0;
    const auto own = static_cast<int64_t>(node->body->nodes().size());
    if (__builtin_add_overflow(own, unrolled_nodes(*node->body), &inside) ||
        __builtin_mul_overflow(inside, node->as<ForParts>().parts, &copies) ||
        __builtin_add_overflow(sum, copies, &sum))
      return kMany;
  }
  return sum;
}

static void name_apart(Graph& graph, std::set<std::string>& taken) {
  for (Node* node : graph.nodes()) {
    if (node->op != for_parts_op()) continue;
    for (Value* v : node->body->values()) {
      if (v->name.empty()) continue;
      const std::string name = v->name;
      for (int n = 2; !taken.insert(v->name).second; ++n) v->name = fmt::format("{}.{}", name, n);
    }
    name_apart(*node->body, taken);
  }
}

void name_bodies_apart(Graph& graph) {
  std::set<std::string> taken;
  name_apart(graph, taken);
}

std::string body_value_name(const Node& loop, const Value& inner) {
  return inner.name.empty() ? fmt::format("%{}.{}", loop.id, inner.id) : inner.name;
}

}  // namespace opfuse
