// Construction and printing of patterns. A pattern is an immutable chain of elements; modifiers copy the last one.
#include "match/pattern.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.hpp"
#include "ir/located.hpp"

namespace opfuse {

Pattern::Pattern(Element element) { chain_.push_back(std::make_shared<const Element>(std::move(element))); }

Pattern Pattern::edit_last(const std::function<void(Element&)>& change) const {
  OPFUSE_CHECK(!chain_.empty(), "a modifier needs an element before it");
  Pattern result = *this;
  Element copy = *chain_.back();
  change(copy);
  result.chain_.back() = std::make_shared<const Element>(std::move(copy));
  return result;
}

Pattern Pattern::with(Pattern side) const {
  return edit_last([&](Element& e) { e.sides = {std::move(side)}; });
}
Pattern Pattern::with(Pattern first, Pattern second) const {
  return edit_last([&](Element& e) { e.sides = {std::move(first), std::move(second)}; });
}
Pattern Pattern::with(Pattern first, Pattern second, Pattern third) const {
  return edit_last([&](Element& e) { e.sides = {std::move(first), std::move(second), std::move(third)}; });
}
Pattern Pattern::shared() const {
  return edit_last([](Element& e) { e.shared = true; });
}
Pattern Pattern::result(size_t index) const {
  return edit_last([&](Element& e) { e.result = index; });
}
Pattern Pattern::where(NodePredicate predicate) const {
  return edit_last([&](Element& e) { e.predicates.push_back(std::move(predicate)); });
}

Pattern operator>>(Pattern first, const Pattern& second) {
  first.chain_.insert(first.chain_.end(), second.chain_.begin(), second.chain_.end());
  return first;
}

Pattern op(std::string name, std::string binding) { return any_op({std::move(name)}, std::move(binding)); }
Pattern any_op(std::vector<std::string> names, std::string binding) {
  return Pattern(Element{.kind = ElementKind::op, .ops = std::move(names), .binding = std::move(binding)});
}
Pattern any(std::string binding) { return Pattern(Element{.kind = ElementKind::any, .binding = std::move(binding)}); }
Pattern tensor(std::string binding) {
  return Pattern(Element{.kind = ElementKind::tensor, .binding = std::move(binding)});
}
Pattern constant(std::string binding) {
  return Pattern(Element{.kind = ElementKind::constant, .binding = std::move(binding)});
}
Pattern scalar(double value) { return Pattern(Element{.kind = ElementKind::constant, .value = value}); }
Pattern maybe(Pattern part) { return Pattern(Element{.kind = ElementKind::maybe, .parts = {std::move(part)}}); }
Pattern repeat(Pattern part, int lo, int hi) {
  return Pattern(Element{.kind = ElementKind::repeat, .parts = {std::move(part)}, .lo = lo, .hi = hi});
}
Pattern one_of(std::vector<Pattern> parts) {
  return Pattern(Element{.kind = ElementKind::one_of, .parts = std::move(parts)});
}
Pattern fork(std::vector<Pattern> branches) {
  return Pattern(Element{.kind = ElementKind::fork, .parts = std::move(branches)});
}
Pattern join(const Pattern& op) {
  OPFUSE_CHECK(op.chain().size() == 1 && op.chain().front()->kind == ElementKind::op, "join takes one operator");
  Element copy = *op.chain().front();
  copy.join = true;
  return Pattern(std::move(copy));
}
Pattern pass_through() { return Pattern(Element{.kind = ElementKind::pass_through}); }

static std::string joined(const std::vector<Pattern>& parts, const char* separator) {
  std::string text;
  for (const Pattern& p : parts) text += (text.empty() ? "" : separator) + p.text();
  return text;
}

static std::string op_text(const Element& e) {
  std::string text = e.binding.empty() ? "" : e.binding + ":";
  text += e.ops.size() == 1 ? e.ops.front() : fmt::format("{{{}}}", fmt::join(e.ops, "|"));
  for (const NodePredicate& p : e.predicates)
    if (!p.name.empty()) text += "<" + p.name + ">";
  if (!e.sides.empty()) text += "(" + joined(e.sides, ", ") + ")";
  if (e.result) text += fmt::format(".{}", *e.result);
  return e.shared ? text + "*" : text;
}

std::string Element::text() const {
  const std::string prefix = binding.empty() ? "" : binding + ":";
  switch (kind) {
    case ElementKind::op:
      return op_text(*this);
    case ElementKind::any:
      return prefix + "any";
    case ElementKind::tensor:
      return prefix + "tensor";
    case ElementKind::constant:
      return value ? fmt::format("{:.6g}", *value) : prefix + "constant";
    case ElementKind::maybe:
      return "[" + parts.front().text() + "]";
    case ElementKind::repeat:
      return fmt::format("({}){{{},{}}}", parts.front().text(), lo, hi);
    case ElementKind::one_of:
      return "{" + joined(parts, " | ") + "}";
    case ElementKind::fork:
      return "fork(" + joined(parts, ", ") + ")";
    case ElementKind::pass_through:
      return "-";
  }
  return {};
}

std::string Pattern::text() const {
  std::string text;
  for (const auto& e : chain_) text += (text.empty() ? "" : " ") + e->text();
  return text;
}

size_t Pattern::min_nodes() const {
  size_t total = 0;
  for (const auto& e : chain_) {
    if (e->kind == ElementKind::op) ++total;
    for (const Pattern& side : e->sides) total += side.min_nodes();
    if (e->kind == ElementKind::repeat) total += static_cast<size_t>(e->lo) * e->parts.front().min_nodes();
    if (e->kind == ElementKind::fork)
      for (const Pattern& p : e->parts) total += p.min_nodes();
    if (e->kind == ElementKind::one_of) {
      size_t least = SIZE_MAX;
      for (const Pattern& p : e->parts) least = std::min(least, p.min_nodes());
      total += least;
    }
  }
  return total;
}

std::string_view operator_name(const Node& node) {
  return node.op == composite_op() ? std::string_view(node.label) : std::string_view(node.op->name);
}

bool is_commutative(std::string_view op_name) {
  static constexpr std::array<std::string_view, 13> kNames{"add",         "mul",        "max",        "min", "sum",
                                                           "mean",        "equal",      "and",        "or",  "xor",
                                                           "bitwise_and", "bitwise_or", "bitwise_xor"};
  return std::find(kNames.begin(), kNames.end(), op_name) != kNames.end();
}

std::optional<double> scalar_constant(const Value* value) {
  if (!value || !value->is_constant() || value->constant->elements() != 1) return std::nullopt;
  const DType dtype = value->constant->dtype();
  if (!is_float(dtype) && !is_integer(dtype)) return std::nullopt;
  return value->constant->real(0);
}

std::string describe(const Node& node) {
  const std::string name = node.op == opaque_op() ? source_operator(node) : std::string(operator_name(node));
  return fmt::format("{} \"{}\"", name, node.name());
}

std::string describe(const Value* value) {
  if (!value) return "no operand";
  if (const auto scalar = scalar_constant(value)) return fmt::format("constant {:.6g}", *scalar);
  if (value->is_constant()) return fmt::format("constant \"{}\" {}", value_name(*value), value->type.text());
  if (!value->producer) return fmt::format("graph input \"{}\"", value_name(*value));
  return describe(*value->producer);
}

}  // namespace opfuse
