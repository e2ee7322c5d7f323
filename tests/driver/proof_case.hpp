// A graph compiled for the host, and the same with a planted error: the oracle keeps the original.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {

struct ProofCase {
  TargetInfo target;
  Graph fused;
  Program program;
  Executable executable;

  explicit ProofCase(const std::string& text, const std::string& target_name = "host", const LowerOptions& options = {})
      : target(parse_target(target_name)),
        fused(planned(text, target)),
        program(lower_to_program(fused, target, options)),
        executable(built(program)) {}

  Executable built(const Program& p) const {
    return Executable::from_artifact(build_artifact(p, target, {.cache = false}));
  }
  /// The program with launch `index` changed.
  Executable with_wrong(size_t index, const std::function<void(Launch&)>& change) const {
    Program wrong = program;
    change(wrong.launches[index]);
    return built(wrong);
  }
  std::vector<GroupComparison> compare_with(const Executable& e, uint64_t seed = 1) const {
    return compare_groups(fused, program, e, random_inputs(fused, {.seed = seed}), {});
  }
  std::vector<GroupComparison> compare(uint64_t seed = 1) const { return compare_with(executable, seed); }

 private:
  static Graph planned(const std::string& text, const TargetInfo& target) {
    Graph graph = parse_graph(text, ops());
    prepare(graph, {}, nullptr);
    Graph fused = apply(graph, plan_graph(graph, target, {}));
    shape_for_target(fused, target);
    return fused;
  }
};

}  // namespace opfuse
