// One model in one configuration: written, read back, compiled, run and judged.
#pragma once

#include "base/fail.hpp"
#include "fuzz/configuration.hpp"

namespace opfuse::fuzz {

enum class Kind { right, refused, wrong, error, crash, hang };
inline constexpr const char* kKinds[] = {"right", "refused", "wrong", "error", "crash", "hang"};

struct Outcome {
  Kind kind = Kind::right;
  std::string detail;  ///< what was refused, wrong, thrown

  bool failed() const { return kind != Kind::right && kind != Kind::refused; }
};

struct Task {
  Configuration configuration;
  uint64_t seed = 0;
  bool exact = false;                  ///< results equal bit for bit
  std::vector<SymbolValues> sizes;     ///< runs of the one executable; the first has the recorded data
  std::map<std::string, Tensor> data;  ///< by value name: inputs of the first run
};

/// The task of a seed.
Task task_of(uint64_t seed, const DrawOptions& options, const Drawn& drawn);

/// Inputs of run number `run`.
std::vector<Tensor> inputs_of(const Graph& graph, const Task& task, size_t run);

/// What opfuse says it cannot do, which is no finding.
bool is_refusal(const Diagnostic& d);

/// Never throws; may crash or hang.
Outcome check(const Graph& graph, const Task& task);

/// `work` in a process of its own, on one CPU, ended after `seconds`: a crash or a hang is an outcome too.
Outcome isolated(const std::function<Outcome()>& work, int seconds);

}  // namespace opfuse::fuzz
