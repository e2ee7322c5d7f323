// The peer gets optimisation level `all`, the same number of threads and bound buffers; Python adds a few microseconds
// per run.
#include "peer.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/temporary_folder.hpp"
#include "onnx/tensor_files.hpp"
#include "report.hpp"

extern char** environ;

namespace opfuse::cli {

const char* const kInstallPeer =
    "python3 -m venv build/peers-venv && build/peers-venv/bin/pip install onnxruntime numpy";

namespace {

constexpr const char* kScript = R"(import json, sys, time
import numpy as np, onnxruntime as ort
model, given, threads, seconds, result, output = sys.argv[1:7]
options = ort.SessionOptions()
options.intra_op_num_threads = int(threads)
options.inter_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.log_severity_level = 3
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
x, names = np.load(given), [o.name for o in session.get_outputs()]
y = session.run(names, {session.get_inputs()[0].name: x})[0]
np.save(output, y)
binding = session.io_binding()
binding.bind_cpu_input(session.get_inputs()[0].name, x)
binding.bind_output(names[0], "cpu", 0, y.dtype, y.shape, y.ctypes.data)
times, end = [], time.perf_counter() + float(seconds)
warm = time.perf_counter() + 0.2
while time.perf_counter() < warm: session.run_with_iobinding(binding)
while time.perf_counter() < end or len(times) < 5:
    start = time.perf_counter()
    session.run_with_iobinding(binding)
    times.append((time.perf_counter() - start) * 1e3)
json.dump({"version": ort.__version__, "median": float(np.median(times)), "min": min(times)}, open(result, "w"))
)";

/// Runs a program with its output in `log`; its exit status, -1 when it could not be started.
int run_program(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string last_line(const std::string& path) {
  std::string text = read_text_file(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

}  // namespace

std::string find_peer_python() {
  std::vector<std::string> candidates;
  if (const char* venv = std::getenv("OPFUSE_PEERS_VENV"); venv && *venv)
    candidates.push_back(std::string(venv) + "/bin/python");
  candidates.push_back("build/peers-venv/bin/python");
  candidates.push_back("python3");
  for (const std::string& python : candidates)
    if (run_program({python, "-c", "import onnxruntime, numpy"}, "/dev/null") == 0) return python;
  return {};
}

std::optional<PeerRun> run_onnxruntime(const std::string& python, const std::string& model, const Tensor& input,
                                       int threads, double seconds, std::string& problem) {
  const TemporaryFolder folder;
  write_text_file(folder.path("peer.py"), kScript);
  write_npy(folder.path("x.npy"), input);
  const int status = run_program({python, folder.path("peer.py"), model, folder.path("x.npy"), std::to_string(threads),
                                  std::to_string(seconds), folder.path("result.json"), folder.path("y.npy")},
                                 folder.path("log"));
  if (status != 0) {
    problem = last_line(folder.path("log"));
    return std::nullopt;
  }
  const Json result = Json::parse(read_text_file(folder.path("result.json")));
  return PeerRun{result.at("version"), result.at("median"), result.at("min"), read_npy(folder.path("y.npy"))};
}

}  // namespace opfuse::cli
