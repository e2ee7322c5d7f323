// Plans of random graphs, without generating code: whatever is grouped, the groups are kernels, the fused graph has no
// cycle, its program computes what the graph does, and is predicted no slower than one launch for each operator.
//
//   drawn_plans [--first S] [--graphs N] [--target cpu:avx512] [--show]
//
// Graphs are those of fuzz_models (broadcasts, several outputs, open dimensions, extents of 0, 1 and primes). Programs
// run in the interpreter of regions, where a few rounding steps are all that may differ; results outside are judged by
// the graph's own sensitivity. The exit status is 1 when a property does not hold.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>

#include "driver/compilation.hpp"
#include "driver/predict_launches.hpp"
#include "fuzz/check.hpp"
#include "fuzz/sensitivity.hpp"
#include "interp/interpreter.hpp"
#include "ir/dim_constraints.hpp"

namespace opfuse::fuzz {
namespace {

constexpr double kSame = 1e-5;      ///< relative: operators in another order, functions by parts
constexpr double kRounding = 1e-6;  ///< of predicted times, which are sums

struct Flags {
  uint64_t first = 0;
  size_t graphs = 100;
  std::string target = "cpu:avx512";
  bool show = false;
};

Compilation lowered(const Graph& graph, const std::string& target, bool fused, const SymbolValues& dims = {}) {
  CompilationOptions options;
  options.fused = fused;
  options.dims = dims;
  Compilation c(graph, parse_target(target), options);
  c.run_to(Milestone::lowered);
  return c;
}

double predicted(const Compilation& c) {
  double sum = 0;
  for (const LaunchPrediction& launch : predict_launches(c.program, c.target)) sum += launch.microseconds;
  return sum;
}

/// Groups that a plan calls one kernel are.
std::string illegal_group(const Compilation& c) {
  const Graph fused = apply(c.prepared, c.plan, false, nullptr);
  verify(fused);
  for (const Candidate* candidate : c.plan.applied()) {
    const bool several = std::any_of(candidate->notes.begin(), candidate->notes.end(), [](const std::string& note) {
      return note.starts_with("runs as several kernels");
    });
    if (several) continue;
    for (const Node* node : fused.nodes())
      if (node->body && node->label == candidate->label)
        if (const auto why = illegal_on(*node, c.target)) return candidate->id + ": " + why->message;
  }
  return "";
}

std::string wrong_value(const Graph& graph, const Drawn& drawn, const Task& task, const Compilation& c) {
  const std::vector<Tensor> inputs = inputs_of(graph, task, 0);
  const std::vector<Tensor> want = interpret(graph, inputs, {.symbols = drawn.symbols});
  const std::vector<Tensor> got = interpret(c.program, inputs);
  bool same = want.size() == got.size();
  for (size_t i = 0; same && i < want.size(); ++i) same = difference(got[i], want[i]).relative() <= kSame;
  return same ? "" : judge(expected_of(graph, inputs, drawn.symbols, {.scale = 4}), got, graph);
}

/// Sizes at which an open dimension of 1 stretches run a program of their own; none: that of all sizes runs.
SymbolValues sizes_of_program(const Drawn& drawn) {
  SymbolValues sizes;
  if (!stretches(dim_constraints(drawn.graph), drawn.symbols, {})) return sizes;
  for (const std::string& name : drawn.graph.symbols()) sizes[name] = drawn.symbols.at(name);
  return sizes;
}

Outcome judge_plan(const Drawn& drawn, const Task& task, const std::string& target) {
  try {
    const SymbolValues sizes = sizes_of_program(drawn);
    const Compilation fused = lowered(drawn.graph, target, true, sizes);
    if (std::string why = illegal_group(fused); !why.empty()) return {Kind::wrong, "not one kernel: " + why};
    if (std::string why = wrong_value(drawn.graph, drawn, task, fused); !why.empty()) return {Kind::wrong, why};
    const double joined = predicted(fused), apart = predicted(lowered(drawn.graph, target, false, sizes));
    if (joined > apart * (1 + kRounding))
      return {Kind::wrong, fmt::format("predicted {:.2f} us, one launch for each operator {:.2f} us", joined, apart)};
    return {};
  } catch (const Error& error) {  // operators without a kernel: no program to look at
    return {is_refusal(error.diagnostic()) ? Kind::refused : Kind::error, error.diagnostic().text()};
  } catch (const std::exception& error) {
    return {Kind::error, error.what()};
  }
}

int run(const Flags& flags) {
  std::map<std::string, size_t> kinds;
  size_t failed = 0;
  for (uint64_t seed = flags.first; seed < flags.first + flags.graphs; ++seed) {
    const DrawOptions options = options_of(seed);
    const Outcome outcome = isolated(
        [&] {
          const Drawn drawn = draw_graph(seed, options);
          if (flags.show) fmt::print("{}\n", print(drawn.graph, {.sources = false})), std::fflush(stdout);
          return judge_plan(drawn, task_of(seed, options, drawn), flags.target);
        },
        120);
    ++kinds[kKinds[static_cast<size_t>(outcome.kind)]];
    if (!outcome.failed()) continue;
    ++failed;
    fmt::print("seed {}: {}: {}\n", seed, kKinds[static_cast<size_t>(outcome.kind)], outcome.detail);
    std::fflush(stdout);
  }
  fmt::print("{} plans of drawn graphs for {}:", flags.graphs, flags.target);
  for (const auto& [kind, count] : kinds) fmt::print(" {} {}", count, kind);
  fmt::print("\n");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace opfuse::fuzz

int main(int argc, char** argv) {
  opfuse::fuzz::Flags flags;
  CLI::App app("plans of random graphs: legal, without cycles, equal, never predicted slower than unfused");
  app.add_option("--first", flags.first, "first seed");
  app.add_option("--graphs", flags.graphs, "how many seeds");
  app.add_option("--target", flags.target, "what is planned for");
  app.add_flag("--show", flags.show, "print the graphs");
  CLI11_PARSE(app, argc, argv);
  return opfuse::fuzz::run(flags);
}
