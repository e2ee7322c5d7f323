// Whether a node or a value is what an element asks for. Every refusal is offered to `fail`, which keeps the one that
// came after the most matched nodes: the explanation of a near miss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "match/attempt.hpp"
#include "match/qdq.hpp"

namespace opfuse {
namespace {

/// kScalarTolerance, or what rounding a constant to its type may do to it where that is more.
double tolerance_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : kScalarTolerance;
}

}  // namespace

bool Attempt::bind(const Element& e, Node* node, Value* value) {
  if (e.binding.empty()) return true;
  for (const auto& [name, bound] : bindings) {
    if (name != e.binding) continue;
    if (bound.node == node && bound.value == value) return true;
    ++dependent;
    return fail(&e, node, "binding_mismatch", [&] {
      return Decline{"binding_mismatch",
                     fmt::format("\"{}\" must be the same in all places; it is {} and {}", e.binding,
                                 describe(bound.value), describe(value)),
                     {}};
    });
  }
  bindings.emplace_back(e.binding, Bound{node, value});
  return true;
}

bool Attempt::value(const Element& e, Value* v) {
  if (!v)
    return fail(&e, nullptr, "absent_operand", [&] {
      return Decline{"absent_operand", fmt::format("expected {}, found no operand", e.text()), {}};
    });
  if (e.kind == ElementKind::tensor && v->is_constant())
    return fail(&e, nullptr, "constant_operand", [&] {
      return Decline{"constant_operand", "expected a computed value, found " + describe(v), {value_name(*v)}};
    });
  if (e.kind == ElementKind::constant && !(e.value ? v->is_constant() : is_constant_or_dequantized(v)))
    return fail(&e, v->producer, "not_constant", [&] {
      return Decline{"not_constant", fmt::format("expected constant {}, found {}", e.text(), describe(v)), {}};
    });
  if (e.value && !near(e, v)) return false;
  return bind(e, nullptr, v);
}

bool Attempt::near(const Element& e, Value* v) {
  const auto got = scalar_constant(v);
  const double want = *e.value;
  const double slack = std::isfinite(want) ? tolerance_of(v->type.dtype) * std::max(std::fabs(want), 1e-3) : 0;
  if (got && (std::fabs(*got - want) <= slack || *got == want)) return true;
  return fail(&e, nullptr, "constant_mismatch", [&] {
    const std::string place =
        v->uses.empty() ? "" : fmt::format(" at {} input {}", v->uses.front().node->name(), v->uses.front().index);
    return Decline{"constant_mismatch",
                   fmt::format("expected constant {:.6g} (+-{:.2g}){}, found {}", want, slack, place, describe(v)),
                   {fmt::format("expected {:.9g}", want), got ? fmt::format("found {:.9g}", *got) : "found a tensor"}};
  });
}

bool Attempt::accept(const Element& e, Value* v, Node*& node) {
  ++tried;
  node = v ? v->producer : nullptr;
  if (auto between = unequal_pair(e.ops, node); between && !nodes.empty())
    return fail(&e, {}, node, std::move(*between), 1);
  if (!node || std::find(e.ops.begin(), e.ops.end(), operator_name(*node)) == e.ops.end())
    return fail(&e, node, "op_mismatch", [&] {
      return Decline{"op_mismatch", fmt::format("expected {}, found {}", e.text(), describe(v)), {}};
    });
  if (e.result && (*e.result >= node->outputs.size() || node->outputs[*e.result] != v))
    return fail(&e, node, "op_mismatch", [&] {
      return Decline{"op_mismatch", fmt::format("expected result {} of {}", *e.result, describe(*node)), {}};
    });
  Node* const taken = node;
  for (const Taken& t : nodes)
    if (t.node == taken) {
      ++dependent;
      if (!e.binding.empty() && t.element->binding == e.binding) return true;
      return fail(&e, taken, "already_matched", [&] {
        return Decline{"already_matched", describe(*taken) + " already stands for another element", {}};
      });
    }
  return fits_alone(e, *taken);
}

/// What the element asks of the node itself, whatever stands before it.
bool Attempt::fits_alone(const Element& e, Node& node) {
  for (size_t i = 1; i < node.outputs.size() && !e.shared && !e.result; ++i)
    if (matcher.graph().read_count(node.outputs[i]) > 0)
      return fail(&e, &node, "second_result_read", [&] {
        return Decline{"second_result_read", describe(node) + " has a second result that is read", {}};
      });
  for (const NodePredicate& p : e.predicates)
    if (auto decline = p.test(node)) return fail(&e, {}, &node, std::move(*decline), 0, true);
  return &node == anchor || e.shared || interior(e, node);
}

// Early refusal of values that surely escape: more readers than a join inside the pattern could explain is judged
// at the end, but a graph output can be told at once.
bool Attempt::interior(const Element& e, Node& node) {
  for (const Value* v : node.outputs)
    if (matcher.graph().is_output(v))
      return fail(
          &e, &node, "graph_output",
          [&] {
            return Decline{"graph_output",
                           fmt::format("the result of {} is a graph output, so it must be stored", describe(node)),
                           {value_name(*v)}};
          },
          1);
  return true;
}

// With sides given, every operand must be spoken for.
bool Attempt::fits_operands(const Element& e, Node& node) {
  size_t present = node.inputs.size();
  while (present > 0 && !node.inputs[present - 1]) --present;
  if (e.sides.empty() || present <= e.sides.size() + 1) return true;
  return fail(&e, &node, "operand_count", [&] {
    return Decline{"operand_count",
                   fmt::format("expected {} operands, {} has {}", e.sides.size() + 1, describe(node), present),
                   {}};
  });
}

bool Attempt::take(const Element& e, Node* node) {
  trace.push_back({&e, node});
  if (std::none_of(nodes.begin(), nodes.end(), [&](const Taken& t) { return t.node == node; }))
    nodes.push_back({node, &e});
  return bind(e, node, node->output());
}

}  // namespace opfuse
