// Every case in a process of its own: compiled where that goes, else interpreted. One line per case on stdout:
//
//   NAME <tab> compiled | interpreted | refused | off | wrong | error | crash | hang <tab> WHY
#include <cstdio>
#include <cstring>

#include "conformance/run_case.hpp"
#include "testing/own_process.hpp"

namespace opfuse::conformance {
namespace {

constexpr int kSeconds = 120;

const Engine& engine(std::string_view name) {
  for (const Engine& engine : engines())
    if (engine.name == name) return engine;
  std::abort();
}

bool cannot_compile(const Error& error) { return is_refusal(error) || error.diagnostic().name == "uncompilable"; }

/// "E0301 unsupported_op: LSTM ..." on one line.
std::string reason(const Diagnostic& d) {
  std::string text = d.code + " " + d.name + ": " + d.message;
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

std::string verdict(const Case& c) {
  std::string why_not_compiled;
  for (const char* name : {"CompiledFused", "Interpreted"}) {
    const bool compiles = std::strcmp(name, "CompiledFused") == 0;
    try {
      const CaseResult result = run_case(c, engine(name));
      if (!result.wrong.empty()) return "wrong\t" + std::string(name) + ": " + result.wrong;
      if (!result.off.empty()) return "off\t" + result.off;
      return compiles ? "compiled\t" : "interpreted\t" + why_not_compiled;
    } catch (const Error& error) {
      if (!cannot_compile(error) && error.diagnostic().name != "unknown_dimension" &&
          error.diagnostic().name != "bad_opset")
        return "error\t" + reason(error.diagnostic());
      if (!compiles) return "refused\t" + reason(error.diagnostic());
      why_not_compiled = reason(error.diagnostic());
    } catch (const std::exception& error) {
      return "error\t" + std::string(error.what());
    }
  }
  return "refused\t";
}

int run() {
  const std::vector<Case> cases = all_cases();
  for (const Case& c : cases) {
    const test::Ended ended = test::in_own_process([&] { return verdict(c); }, kSeconds);
    std::printf("%s\t%s\n", c.name.c_str(),
                ended.hung         ? "hang\t"
                : ended.complete() ? ended.text.c_str()
                                   : (std::string("crash\t") + strsignal(ended.signal)).c_str());
    std::fflush(stdout);
  }
  return cases.empty() ? 2 : 0;
}

}  // namespace
}  // namespace opfuse::conformance

int main() { return opfuse::conformance::run(); }
