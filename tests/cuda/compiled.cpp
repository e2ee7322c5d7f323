#include "cuda/compiled.hpp"

#include "ops/registry.hpp"

namespace opfuse::test {

Compiled compiled(Graph graph, const std::string& target_name) {
  const TargetInfo target = parse_target(target_name);
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  Program program = lower_to_program(fused, target);
  ArtifactOptions options;
  options.cache = false;
  Artifact artifact = build_artifact(program, target, options);
  return {std::move(fused), std::move(program), std::move(artifact)};
}

Compiled compiled(const std::string& text) { return compiled(parse_graph(text, ops())); }

}  // namespace opfuse::test
