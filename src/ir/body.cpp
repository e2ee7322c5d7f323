// The table of kinds of bodies.
#include "ir/body.hpp"

#include "base/fail.hpp"
#include "ir/for_parts.hpp"
#include "ir/placed.hpp"

namespace opfuse {

const std::vector<BodyLaw>& body_laws() {
  static const std::vector<BodyLaw> kLaws{
      {.op = fused_op()},
      {.op = composite_op()},
      {.op = placed_op()},
      {.op = for_parts_op(), .inputs = part_types, .results = joined_types, .runs_once = false},
  };
  return kLaws;
}

const BodyLaw& body_law(const OpInfo& op) {
  for (const BodyLaw& law : body_laws())
    if (law.op == &op || law.op->name == op.name) return law;  // registries hold copies
  OPFUSE_CHECK(false, "{} has no body", op.name);
}

bool stands_for_body(const Node& node) { return node.body && body_law(*node.op).runs_once; }

int64_t times_of(const Node& node) { return node.op == for_parts_op() ? node.as<ForParts>().parts : 1; }

std::vector<TensorType> body_input_types(const OpInfo& op, const void* attrs, const std::vector<TensorType>& operands) {
  const BodyLaw& law = body_law(op);
  return law.inputs ? law.inputs(attrs, operands) : operands;
}

std::vector<TensorType> body_result_types(const OpInfo& op, const void* attrs, const std::vector<TensorType>& yielded) {
  const BodyLaw& law = body_law(op);
  return law.results ? law.results(attrs, yielded) : yielded;
}

std::vector<TensorType> types_of(const std::vector<Value*>& values) {
  std::vector<TensorType> types;
  for (const Value* v : values) types.push_back(v ? v->type : TensorType{});
  return types;
}

}  // namespace opfuse
