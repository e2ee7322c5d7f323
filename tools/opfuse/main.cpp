// opfuse: the command line. stdout is data, stderr is talk; errors end with the command that repeats them.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/read_files.hpp"
#include "console.hpp"
#include "foreign_flags.hpp"
#include "fusion/plan.hpp"
#include "interrupt.hpp"
#include "limits_flag.hpp"
#include "operator_flag.hpp"
#include "opfuse/opfuse.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-+=./:,@%") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void print_repeat_line(int argc, char** argv) {
  std::string line = "repeat: opfuse";
  for (int i = 1; i < argc; ++i) line += " " + shell_quoted(argv[i]);
  tell(line + "\n");
}

std::string unknown_verb_hint(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].empty() || arguments[0][0] == '-') return {};
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  for (const std::string& name : names)
    if (name == arguments[0]) return {};
  const std::string near = closest_name(arguments[0], names);
  return fmt::format("unknown verb '{}'{}", arguments[0], near.empty() ? "" : "; did you mean '" + near + "'?");
}

/// What the parser refuses, in our form; for a flag that a verb does not have, with the nearest that it has.
Error refusal(const CLI::App& app, const CLI::ParseError& e) {
  std::string message = e.what(), hint = "opfuse --help lists the verbs";
  for (const CLI::App* sub : app.get_subcommands()) {
    hint = fmt::format("opfuse {} --help lists the flags", sub->get_name());
    std::vector<std::string> names;
    for (const CLI::Option* option : sub->get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& word : sub->remaining()) {
      const std::string name = word.substr(0, word.find('='));
      if (!name.starts_with("-")) continue;
      const std::string near = closest_name(name, names);
      message = fmt::format("{} has no flag {}", sub->get_name(), name);
      if (!near.empty()) hint = fmt::format("did you mean {}? {}", near, hint);
      break;
    }
  }
  if (const std::string conversion = "Could not convert: "; message.starts_with(conversion)) {
    const size_t equals = message.find(" = ");
    message = fmt::format("{}: '{}' is not a number, or too large for one",
                          message.substr(conversion.size(), equals - conversion.size()), message.substr(equals + 3));
  }
  return fail(E::bad_option, "{}", message).hint(hint);
}

/// An empty value is a variable of a script that was not set; it never means "as without the flag".
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands())
    for (const CLI::Option* option : sub->get_options([](const CLI::Option* o) { return o->get_expected_max() > 0; }))
      for (const std::string& value : option->results())
        if (value.empty()) throw fail(E::bad_option, "{}: the value is empty", option->get_name(false, false));
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int print_version(bool json) {
  if (!json) {
    fmt::print("opfuse {} (artifact {}, codegen {})\n", version(), kArtifactFormat, kCodegenVersion);
    return kOk;
  }
  Json out = document("opfuse.version/1");
  out["artifact_format"] = kArtifactFormat;
  out["codegen"] = kCodegenVersion;
  out["plan_schema"] = kPlanSchema;
  print_json(out);
  return kOk;
}

int run_cli(int argc, char** argv) {
  std::vector<std::string> arguments = with_model_as_argument({argv + 1, argv + argc});
  if (!arguments.empty() && (arguments[0] == "--version" || arguments[0] == "-V"))
    return print_version(contains(arguments, "--json"));
  if (!arguments.empty() && arguments[0] == "help") {  // help, help VERB
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  CLI::App app("opfuse: decides which operators of an ONNX model become one kernel, says why, compiles and proves it",
               "opfuse");
  app.set_version_flag("--version", version());
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.footer("opfuse VERB --help lists a verb's options. An .opf contains machine code: load only what you would run.");
  std::function<int()> chosen;
  std::deque<FlagSet> flags;  // verbs keep references to theirs
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    const std::function<int()> run = verb.add(flags.emplace_back(sub));
    add_limit_flag(flags.back());
    add_operator_flag(flags.back());
    add_foreign_flags(flags.back());
    add_quiet_flag(flags.back());
    sub->callback([&chosen, run] { chosen = run; });
  }
  if (const std::string hint = unknown_verb_hint(arguments); !hint.empty()) {
    throw fail(E::bad_option, "{}", hint).hint("opfuse --help lists the verbs");
  }
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e) == 0 ? kOk : kUsage;  // help was asked for
    throw refusal(app, e);
  }
  refuse_empty_values(app);
  if (!chosen) {
    fmt::print("{}", app.help());
    return kUsage;
  }
  const Limits limits = given_limits();
  const LimitScope scope(limits);
  return chosen();
}

/// A closed standard stream would be given to the next file that is opened. Here it stays one that cannot be written.
void keep_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDONLY) < 0) std::abort();

  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(),
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that grew beyond `ulimit -f`
}

/// Flushes what was printed. A reader that has enough (`| head`) needs no message.
int finish_output(int code) {
  if (code == kFiles && std::ferror(stdout)) return code;  // said already
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  finish_progress();
  if (errno != EPIPE && errno != 0)
    tell(fmt::format("error[E0702] file_write_failed: cannot write to stdout: {}\n", std::strerror(errno)));
  return kFiles;
}

/// A reader of documents gets one of a failure, too.
Json document_of(const Diagnostic& d) {
  Json out = document("opfuse.error/1");
  out.update({{"code", d.code},
              {"name", d.name},
              {"message", d.message},
              {"file", d.file},
              {"node", d.node},
              {"op", d.op},
              {"operands", d.operands},
              {"during", d.during},
              {"hint", d.hint}});
  return out;
}

int guarded(int argc, char** argv) {
  try {
    const int code = run_cli(argc, argv);
    if (code == kCheckFailed) print_repeat_line(argc, argv);
    return code;
  } catch (const Error& e) {
    finish_progress();
    if (contains({argv + 1, argv + argc}, "--json")) print_json(document_of(e.diagnostic()));
    tell(e.diagnostic().text() + "\n");
    print_repeat_line(argc, argv);
    return exit_code_of(e.diagnostic());
  } catch (const Stopped&) {
    finish_progress();
    warn("interrupted: nothing was measured");
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    tell("error[E0603] out_of_memory: memory ran out\n");
    print_repeat_line(argc, argv);
    return kRuntime;
  } catch (const std::filesystem::filesystem_error& e) {
    tell(fmt::format("error[E0702] file_write_failed: cannot use '{}': {}\n", e.path1().string(), e.code().message()));
    print_repeat_line(argc, argv);
    return kFiles;
  } catch (const std::system_error& e) {
    if (!std::ferror(stdout) && !std::ferror(stderr)) throw;
    if (e.code().value() != EPIPE)
      tell(fmt::format("error[E0702] file_write_failed: cannot write to {}: {}\n",
                       std::ferror(stdout) ? "stdout" : "stderr", std::strerror(e.code().value())));
    return kFiles;
  }
}

}  // namespace
}  // namespace opfuse::cli

int main(int argc, char** argv) {
  using namespace opfuse::cli;
  keep_standard_streams();
  name_interrupts();
  opfuse::remember_read_files();
  try {
    return finish_output(guarded(argc, argv));
  } catch (const std::exception& e) {
    tell(fmt::format("internal error: {}\nplease report it with the command line below\n", e.what()));
    print_repeat_line(argc, argv);
    return kInternal;
  }
}
