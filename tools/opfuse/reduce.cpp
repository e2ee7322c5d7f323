// opfuse reduce: the smallest part of a model for which a command still fails in the same way. The command is any shell
// command; {} in it stands for the model's path. What counts as the same way is told in the help below.
#include "reduce/reduce.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "base/fail.hpp"
#include "base/temporary_folder.hpp"
#include "command_status.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

/// Larger weights lie in a file beside the model.
constexpr size_t kMaxModelBytes = size_t{16} << 20;
/// What a shell ends with when it cannot start a command.
constexpr int kNotExecutable = 126, kNotFound = 127;
constexpr double kLongestTimeout = 1e9;  ///< seconds

struct Flags {
  std::string model, command, says, output = "reduced.onnx";
  double timeout = 60;
  size_t max_tries = 5000;
  bool force = false;
};

std::string quoted(const std::string& path) {
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_on(const std::string& command, const std::string& path) {
  std::string text = command;
  bool named = false;
  for (size_t at = 0; (at = text.find("{}", at)) != std::string::npos; named = true) {
    text.replace(at, 2, quoted(path));
    at += quoted(path).size();
  }
  return named ? text : text + " " + quoted(path);
}

bool has(const CommandStatus& status, const std::string& words) {
  return words.empty() || status.output.find(words) != std::string::npos;
}

CommandStatus first_failure(const Flags& flags) {
  const CommandStatus status = run_command(command_on(flags.command, flags.model), flags.timeout);
  if (status.exit == kNotExecutable || status.exit == kNotFound)
    throw fail(E::bad_option, "the command cannot be run: {}", status.output.substr(0, status.output.find('\n')))
        .hint("--fails takes a shell command, with {} for the model's path");
  if (!has(status, flags.says))
    throw fail(E::bad_option, "the command does not print \"{}\" for {}", flags.says, flags.model);
  if (flags.says.empty() && !status.failed())
    throw fail(E::bad_option, "the command does not fail for {}: {}", flags.model, status.text())
        .hint("it has to end with an exit code above 0, a signal or no end; or pass --says TEXT that it prints");
  return status;
}

void write_result(const Graph& graph, const std::string& path) {
  write_onnx(graph, path, {.max_file_bytes = kMaxModelBytes});
}

int run(const Flags& flags) {
  if (!(flags.timeout > 0 && flags.timeout <= kLongestTimeout))
    throw fail(E::bad_option, "--timeout {}: a run of the command needs a time above 0", flags.timeout);
  const GivenModel model = open_graph(flags.model, "reduce");
  check_output("-o", flags.output, {".onnx"}, flags.force);
  const CommandStatus wanted = first_failure(flags);
  say(fmt::format("{}: {} nodes; {}", flags.model, model.graph->nodes().size(), wanted.text()));
  catch_interrupts();
  const TemporaryFolder folder;
  const std::string candidate = folder.path("candidate.onnx");
  const auto fails = [&](const Graph& graph) {
    write_onnx(graph, candidate, {.max_file_bytes = kMaxModelBytes});
    const CommandStatus status = run_command(command_on(flags.command, candidate), flags.timeout);
    return has(status, flags.says) && (!flags.says.empty() || status.same_failure(wanted));
  };
  ReduceOptions options;
  options.max_tries = flags.max_tries;
  options.stopped = [] { return interrupted(); };
  options.progress = [&](const ReduceProgress& p) { show_progress(p.step, p.tried, flags.max_tries); };
  options.improved = [&](const Graph& better) { write_result(better, flags.output); };
  const Reduced reduced = reduce(*model.graph, fails, options);
  finish_progress();
  write_result(reduced.graph, flags.output);
  fmt::print("{}: {} of {} nodes after {} runs of the command{}\n", flags.output, reduced.graph.nodes().size(),
             model.graph->nodes().size(), reduced.tried,
             reduced.complete ? ""
             : interrupted()  ? "; interrupted, it may be smaller yet"
                              : "; --max-tries ended it, it may be smaller yet");
  fmt::print("{}\n", command_on(flags.command, flags.output));
  return exit_code(kOk);
}

}  // namespace

std::function<int()> add_reduce(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option(
         "--fails", flags->command,
         "shell command that fails for the model; {} stands for its path, which is appended where there is none. "
         "A part counts when it ends with the same exit code, signal or timeout and the same error[E....]")
      ->type_name("COMMAND")
      ->required();
  app.add_option("--says", flags->says, "a part counts when the command prints this, however it ends")
      ->type_name("TEXT");
  app.add_option("-o,--output", flags->output, "the smallest model so far, after every step")->capture_default_str();
  app.add_option("--timeout", flags->timeout, "seconds for a run of the command")->capture_default_str();
  app.add_option("--max-tries", flags->max_tries, "runs of the command")->capture_default_str();
  add_force_flag(app, flags->force);
  return [flags] { return run(*flags); };
}

}  // namespace opfuse::cli
