// The graph's outputs, and what the file declares of them and of the values between nodes beside what is so.
#include <set>

#include "base/fail.hpp"
#include "onnx/declared_types.hpp"
#include "onnx/metadata.hpp"
#include "onnx/model_reader.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {

void ModelReader::read_output(const ValueInfo& info, std::vector<Value*>& outputs) {
  materialise(info.name);
  Value* value = value_named(info.name);
  if (!value)
    throw fail(E::missing_tensor, "graph output \"{}\" is not the result of any node", info.name)
        .hint("the model was cut or edited wrongly; export it again");
  if (value->name != info.name) {
    value = graph_.add_node(op_named("identity"), AttrMap{}, {value})->output();
    value->name = std::string(info.name);
  }
  outputs.push_back(value);
  check_declared_output(info, *value);
  keep_value_info(kOutputInfo, info, value->type);
}

void ModelReader::check_declared_output(const ValueInfo& info, const Value& value) {
  const auto wrong = contradiction(info, value.type);
  if (wrong && wrong->of_shape) return remark(fmt::format("graph output \"{}\"", info.name), *wrong);
  if (!wrong) return;
  const bool made = value.producer && !value.producer->sources.empty();
  const Source source = made ? value.producer->sources.front() : Source{};
  throw fail(E::dtype_mismatch, "graph output \"{}\" is declared {} and is {}", info.name, wrong->declared,
             wrong->found)
      .node(source.name)
      .op(made ? fmt::format("{}, opset {}", source.op_type, source.opset) : "")
      .hint("declare the type that its node gives, or put a Cast in front of the output");
}

/// Runs do not read what a file declares of values between nodes; who else reads the file may.
void ModelReader::look_at_declared_values() {
  if (!options_.remarks) return;
  for (const ValueInfo& info : model_.graph.values)
    if (const Value* value = value_named(info.name))
      if (const auto wrong = contradiction(info, value->type)) remark(fmt::format("tensor \"{}\"", info.name), *wrong);
}

void ModelReader::remark(const std::string& what, const Contradiction& wrong) {
  if (!options_.remarks) return;
  options_.remarks->push_back(fmt::format("{} is declared {} in the file and is {}, as follows from its node", what,
                                          wrong.declared, wrong.found));
}

void ModelReader::read_outputs() {
  std::vector<Value*> outputs;
  std::set<Bytes> seen;
  if (model_.graph.outputs.empty())
    problems_.attempt([] { throw fail(E::malformed_model, "the graph has no outputs"); });
  for (const ValueInfo& info : model_.graph.outputs)
    problems_.attempt([&] {
      if (!seen.insert(info.name).second)
        throw fail(E::duplicate_name, "graph output \"{}\" is listed twice", info.name);
      read_output(info, outputs);
    });
  graph_.set_outputs(std::move(outputs));
}

}  // namespace opfuse::onnx
