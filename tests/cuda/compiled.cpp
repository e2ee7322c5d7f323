#include "cuda/compiled.hpp"

#include "ops/registry.hpp"

namespace opfuse::test {

Compiled lowered(Graph graph, const std::string& target_name) {
  const TargetInfo target = parse_target(target_name);
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  Program program = lower_to_program(fused, target);
  return {std::move(fused), std::move(program), {}};
}

Compiled compiled(Graph graph, const std::string& target_name) {
  Compiled c = lowered(std::move(graph), target_name);
  ArtifactOptions options;
  options.cache = false;
  c.artifact = build_artifact(c.program, parse_target(target_name), options);
  return c;
}

Compiled compiled(const std::string& text) { return compiled(parse_graph(text, ops())); }

}  // namespace opfuse::test
