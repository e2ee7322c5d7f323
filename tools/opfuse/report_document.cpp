// The command is read back from the system, so that the page shows it as the shell was given it.
#include "report_document.hpp"

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "opfuse/runtime.hpp"
#include "profile/probe_machine.hpp"
#include "profile/system_name.hpp"
#include "target/target.hpp"

namespace opfuse::cli {
namespace {

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line, word;
  while (std::getline(file, word, '\0')) {
    const bool plain = word.find_first_of(" '\"\\$`&|;<>()*?[]{}!#~\n") == std::string::npos && !word.empty();
    if (line.empty())
      line = "opfuse";
    else
      line += " " + (plain ? word : "'" + word + "'");
  }
  return line;
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

Json report_of(Json models) {
  Json out = document("opfuse.report/1");
  out["command"] = command_line();
  out["made"] = time_now();
  out["machine"] = {{"processor", processor_name()},
                    {"system", system_name()},
                    {"cpu_features", host_features()},
                    {"threads", default_threads()}};
  out["models"] = std::move(models);
  return out;
}

}  // namespace opfuse::cli
