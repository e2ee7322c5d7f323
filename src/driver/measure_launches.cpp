#include "driver/measure_launches.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "base/fail.hpp"
#include "driver/pipeline.hpp"
#include "opfuse/opfuse.hpp"

namespace opfuse {
namespace {

constexpr int kRounds = 15;

Tensor drawn(const ArtifactTensor& input) {
  Tensor tensor(input.type.dtype, input.type.shape.evaluate({}));
  std::mt19937 random(1);
  std::uniform_real_distribution<double> real(-1, 1);
  for (int64_t i = 0; is_float(tensor.dtype()) && i < tensor.elements(); ++i) tensor.set_real(i, real(random));
  return tensor;  // integers stay 0: indices into any table
}

struct Contestant {
  Executable executable;
  std::vector<Tensor> inputs;
  Context context;
  std::vector<std::vector<double>> samples;  ///< by launch

  Contestant(const Program& program, const TargetInfo& target, int threads)
      : executable(Executable::from_artifact(build_artifact(program, target, {}))),
        context(executable.create_context(options(threads))) {
    for (const ArtifactTensor& input : executable.artifact().inputs) {
      inputs.push_back(drawn(input));
      Tensor& tensor = inputs.back();
      context.bind(input.name, {tensor.dtype(), tensor.mutable_data(), tensor.sizes()});
    }
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

std::vector<std::vector<double>> time_launches(const std::vector<Program>& programs, const TargetInfo& target,
                                               int threads) {
  for (const Program& program : programs) {
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
  for (int round = 0; round < kRounds; ++round)
    for (const auto& contestant : contestants) contestant->take_turn();
  std::vector<std::vector<double>> medians;
  for (const auto& contestant : contestants) {
    medians.emplace_back();
    for (std::vector<double>& sample : contestant->samples) {
      std::nth_element(sample.begin(), sample.begin() + kRounds / 2, sample.end());
      medians.back().push_back(sample[kRounds / 2]);
    }
  }
  return medians;
}

}  // namespace opfuse
