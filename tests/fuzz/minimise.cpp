// Every part runs in a process of its own. The same way to fail: the same kind; of errors the same code.
#include "fuzz/minimise.hpp"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/fail.hpp"
#include "fuzz/sensitivity.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/write.hpp"
#include "reduce/reduce.hpp"

namespace opfuse::fuzz {
namespace {

std::string error_code(const std::string& text) {
  const size_t at = text.find("error[");
  return at == std::string::npos ? "" : text.substr(at, 12);
}

bool same_way(const Outcome& a, const Outcome& b) {
  return a.kind == b.kind && (a.kind != Kind::error || error_code(a.detail) == error_code(b.detail));
}

}  // namespace

Minimised minimise(const Graph& graph, const Task& task, const Outcome& outcome, int seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  Minimised best{graph.clone(), outcome};
  const auto fails = [&](const Graph& part) {
    const Outcome now = isolated([&] { return check(part, task); }, outcome.kind == Kind::hang ? 10 : 30);
    if (!same_way(now, outcome)) return false;
    best = {part.clone(), now};
    return true;
  };
  ReduceOptions options;
  options.max_tries = 600;
  options.stopped = [&] { return Clock::now() > end; };
  try {
    best.graph = reduce(graph, fails, options).graph;
  } catch (const Error&) {
    // The whole graph does not fail a second time: it is kept as it is, and the report says so.
    best.outcome.detail += " (once only)";
  }
  return best;
}

void save_failure(const std::string& folder, const Minimised& m, const Task& task) {
  std::filesystem::create_directories(folder);
  write_onnx(m.graph, folder + "/model.onnx", {.opset = 21});
  std::string command = "opfuse run model.onnx " + task.configuration.flags();
  for (size_t run = 0; run < task.sizes.size(); ++run) {
    std::string suffix;
    for (const auto& [symbol, size] : task.sizes[run]) suffix += fmt::format("_{}{}", symbol, size);
    try {
      const std::vector<Tensor> inputs = inputs_of(m.graph, task, run);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const std::string name = m.graph.inputs()[i]->name;
        write_npy(folder + "/" + name + suffix + ".npy", inputs[i]);
        if (run == 0) command += fmt::format(" --input {}={}{}.npy", name, name, suffix);
      }
      const Expected expected = expected_of(m.graph, inputs, task.sizes[run], {.samples = 0});
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        const Value* output = m.graph.outputs()[i];
        write_npy(folder + "/" + output->name + suffix + ".npy", expected.outputs[i].cast(output->type.dtype));
        if (run == 0) command += fmt::format(" --expect {}={}{}.npy", output->name, output->name, suffix);
      }
    } catch (const Error&) {
      // These sizes do not fit what is left of the model.
    }
  }
  std::ofstream text(folder + "/command.txt");
  text << m.outcome.detail << "\n\nseed " << task.seed << ": " << task.configuration.name()
       << " threads=" << task.configuration.threads << (task.exact ? ", exact arithmetic" : "") << "\n";
  text << (task.configuration.flags().empty() ? "(no such form on the command line)\n" : command + "\n");
  text << "./dev fuzz --seed " << task.seed << "\n\n" << print(m.graph);
}

}  // namespace opfuse::fuzz
