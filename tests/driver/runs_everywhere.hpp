// A graph through the whole compiler on every CPU target this machine runs, against the interpreter; the same bits on
// one thread and on two.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "target/missing_features.hpp"

namespace opfuse::test {

inline std::vector<TargetInfo> cpu_targets() {
  std::vector<TargetInfo> targets;
  for (const char* name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"})
    if (TargetInfo target = parse_target(name); missing_features(target.features).empty())
      targets.push_back(std::move(target));
  return targets;
}

/// `text` prepared, planned and lowered for `target`.
inline Program program_for(const std::string& text, const TargetInfo& target) {
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(fused, target);
  return lower_to_program(fused, target);
}

/// Runs `text` on every target of cpu_targets(). Returns the program for cpu:avx512 whatever this machine is: plans
/// follow the costs of a target, so what a test says about launches must not depend on the host. `inputs` replaces
/// drawn ones by name.
inline Program expect_runs(const std::string& text, const std::map<std::string, Tensor>& inputs = {},
                           const SymbolValues& symbols = {}, double tolerance = 1e-5) {
  const Graph before = parse_graph(text, ops());
  for (const TargetInfo& target : cpu_targets()) {
    const Program program = program_for(text, target);
    ArtifactOptions options;
    options.cache = false;
    options.threads = 2;
    const Executable executable = Executable::from_artifact(build_artifact(program, target, options));
    std::vector<Tensor> values = random_inputs(before, {.seed = 1, .symbols = symbols});
    for (size_t i = 0; i < values.size(); ++i)
      if (const auto given = inputs.find(before.inputs()[i]->name); given != inputs.end()) values[i] = given->second;
    const std::vector<Tensor> want = interpret(before, values);
    const std::vector<Tensor> got = run_executable(executable, values, {.threads = 2});
    const std::vector<Tensor> alone = run_executable(executable, values, {.threads = 1});
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].sizes(), want[i].sizes()) << target.name;
      EXPECT_LE(difference(got[i], want[i]).relative(), tolerance) << target.name << "\n" << print(program);
      EXPECT_TRUE(got[i].same_bits(alone[i])) << target.name;
    }
  }
  return program_for(text, parse_target("cpu:avx512"));
}

}  // namespace opfuse::test
