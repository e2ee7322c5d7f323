// opfuse: the command line. stdout is data, stderr is talk; errors end with the command that repeats them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "console.hpp"
#include "foreign_flags.hpp"
#include "opfuse/opfuse.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
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
  fmt::print(stderr, "{}\n", line);
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
  out["plan_schema"] = "opfuse.plan/1";
  print_json(out);
  return kOk;
}

int run_cli(int argc, char** argv) {
  std::vector<std::string> arguments = port_foreign_flags({argv + 1, argv + argc});
  if (!arguments.empty() && arguments[0] == "--version") return print_version(contains(arguments, "--json"));
  CLI::App app("opfuse: decides which operators of an ONNX model become one kernel, says why, compiles and proves it",
               "opfuse");
  app.set_version_flag("--version", version());
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.footer("opfuse VERB --help lists a verb's options. An .opf contains machine code: load only what you would run.");
  std::function<int()> chosen;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    const std::function<int()> run = verb.add(*sub);
    sub->callback([&chosen, run] { chosen = run; });
  }
  if (const std::string hint = unknown_verb_hint(arguments); !hint.empty()) {
    fmt::print(stderr, "error: {}\nopfuse --help lists the verbs\n", hint);
    return kUsage;
  }
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUsage;
  }
  if (!chosen) {
    fmt::print("{}", app.help());
    return kUsage;
  }
  return chosen();
}

}  // namespace
}  // namespace opfuse::cli

int main(int argc, char** argv) {
  using namespace opfuse::cli;
  try {
    const int code = run_cli(argc, argv);
    if (code == kCheckFailed) print_repeat_line(argc, argv);
    return code;
  } catch (const opfuse::Error& e) {
    finish_progress();
    fmt::print(stderr, "{}\n", e.diagnostic().text());
    print_repeat_line(argc, argv);
    return exit_code_of(e.diagnostic());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error[E0603] out_of_memory: memory ran out\n");
    print_repeat_line(argc, argv);
    return kRuntime;
  } catch (const std::exception& e) {
    fmt::print(stderr, "internal error: {}\nplease report it with the command line below\n", e.what());
    print_repeat_line(argc, argv);
    return kInternal;
  }
}
