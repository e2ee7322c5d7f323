// One table: what a flag becomes, or why it has no effect.
#include "foreign_flags.hpp"

#include <algorithm>

#include "report.hpp"

namespace opfuse::cli {
namespace {

enum class Becomes {
  flag,      ///< another flag with the same value
  argument,  ///< its value, as MODEL
  nothing,   ///< dropped; `ours` says why
};

struct ForeignFlag {
  const char* name;
  const char* ours;
  Becomes becomes = Becomes::flag;
  bool has_value = true;
};

constexpr ForeignFlag kFlags[] = {
    {"--onnx", "MODEL", Becomes::argument},
    {"--loadEngine", "MODEL", Becomes::argument},
    {"--saveEngine", "-o"},
    {"--loadInputs", "--input"},
    {"--load-inputs", "--input"},
    {"--shapes", "--shape"},
    {"--input-shapes", "--shape"},
    {"--optShapes", "--shape"},
    {"--minShapes", "opfuse compiles for the shape of --shape, or for all with --dim NAME=any", Becomes::nothing},
    {"--maxShapes", "opfuse compiles for the shape of --shape, or for all with --dim NAME=any", Becomes::nothing},
    {"--warmUp", "--warmup"},
    {"--exportTimes", "--export-times"},
    {"--infStreams", "--contexts"},
    {"--avgRuns", "every run is counted", Becomes::nothing},
    {"--dumpProfile", "see opfuse profile", Becomes::nothing, false},
    {"--separateProfileRun", "see opfuse profile", Becomes::nothing, false},
    {"--useSpinWait", "waits always spin a bounded time first", Becomes::nothing, false},
    {"--noDataTransfers", "arrays are bound in place", Becomes::nothing, false},
};

const ForeignFlag* find_flag(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  for (const ForeignFlag& flag : kFlags)
    if (name == flag.name) return &flag;
  return nullptr;
}

/// trtexec separates a name from its file by ':', opfuse by '='.
std::string port_value(const ForeignFlag& flag, std::string value) {
  if (std::string(flag.ours) == "--input" && value.find('=') == std::string::npos)
    if (const size_t colon = value.find(':'); colon != std::string::npos) value[colon] = '=';
  return value;
}

}  // namespace

std::vector<std::string> port_foreign_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> ported;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ForeignFlag* flag = find_flag(arguments[i]);
    if (!flag) {
      ported.push_back(arguments[i]);
      continue;
    }
    const size_t equals = arguments[i].find('=');
    std::string value;
    if (equals != std::string::npos)
      value = arguments[i].substr(equals + 1);
    else if (flag->has_value && i + 1 < arguments.size())
      value = arguments[++i];
    if (flag->becomes == Becomes::nothing) {
      note(std::string(flag->name) + " has no effect: " + flag->ours);
      continue;
    }
    note(std::string(flag->name) + " is accepted as " + flag->ours);
    if (flag->becomes == Becomes::flag) ported.push_back(flag->ours);
    ported.push_back(port_value(*flag, value));
  }
  return ported;
}

}  // namespace opfuse::cli
