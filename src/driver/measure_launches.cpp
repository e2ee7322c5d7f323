#include "driver/measure_launches.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/fail.hpp"
#include "driver/pipeline.hpp"
#include "interp/random_inputs.hpp"
#include "link/interface.hpp"
#include "opfuse/opfuse.hpp"
#include "program/routine_launches.hpp"

namespace opfuse {
namespace {

struct Contestant {
  Executable executable;
  std::vector<Tensor> inputs;
  Context context;
  std::vector<std::vector<double>> samples;  ///< by launch

  Contestant(const Program& program, const TargetInfo& target, int threads)
      : executable(Executable::from_artifact(build_artifact(program, target, {}))),
        context(executable.create_context(options(threads))) {
    const Artifact& artifact = executable.artifact();
    inputs = random_inputs(interface_of(artifact), {.seed = 1});
    for (size_t i = 0; i < inputs.size(); ++i)
      context.bind(artifact.inputs[i].name, {inputs[i].dtype(), inputs[i].mutable_data(), inputs[i].sizes()});
    samples.resize(program.launches.size());
  }

  static ContextOptions options(int threads) {
    ContextOptions o;
    o.threads = threads;
    o.profile = true;
    return o;
  }

  void take_turn() {
    context.run();  // the turn before left other weights in the caches
    context.run();
    const std::vector<int64_t>& ns = context.launch_nanoseconds();
    for (size_t l = 0; l < samples.size(); ++l) samples[l].push_back(static_cast<double>(ns[l]));
  }
};

}  // namespace

std::vector<std::vector<std::vector<double>>> sample_launches(const std::vector<Program>& programs,
                                                              const TargetInfo& target, int threads,
                                                              const LaunchRounds& rounds) {
  for (const Program& program : programs) {
    for (const Launch& launch : program.launches)
      if (is_routine(launch))
        throw fail(E::bad_option, "launches are not measured apart: a run finds the sizes of some values")
            .node(launch.name)
            .hint("compile without measuring; --dim cannot give these sizes");
    if (!program.symbols.empty())
      throw fail(E::bad_option, "--measure with open dimensions: {}", fmt::join(program.symbols, ", "))
          .hint("give them with --dim NAME=SIZE");
    for (const Launch& launch : program.launches)
      if (launch.reference)
        throw fail(E::bad_option, "--measure: an operator without a kernel cannot be timed")
            .node(launch.name)
            .hint("leave out --measure");
  }
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const Program& program : programs) contestants.push_back(std::make_unique<Contestant>(program, target, threads));
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const auto go_on = [&](int round) {
    if (rounds.stop && rounds.stop()) return false;
    return round < rounds.most && (round < rounds.fewest || seconds() < rounds.seconds);
  };
  for (int round = 0; go_on(round); ++round)
    for (const auto& contestant : contestants) contestant->take_turn();
  std::vector<std::vector<std::vector<double>>> samples;
  for (const auto& contestant : contestants) samples.push_back(std::move(contestant->samples));
  return samples;
}

std::vector<std::vector<double>> time_launches(const std::vector<Program>& programs, const TargetInfo& target,
                                               int threads) {
  std::vector<std::vector<double>> medians;
  for (auto& launches : sample_launches(programs, target, threads)) {
    medians.emplace_back();
    for (std::vector<double>& sample : launches) {
      const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
      std::nth_element(sample.begin(), middle, sample.end());
      medians.back().push_back(*middle);
    }
  }
  return medians;
}

}  // namespace opfuse
