// One table: what a flag says when it is given.
#include "foreign_flags.hpp"

#include "base/fail.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct NoEffect {
  const char *name, *why;
  bool has_value = true;
};
constexpr NoEffect kNoEffect[] = {
    {"--minShapes", "opfuse compiles for the shape of --shape, or for all with --dim NAME=any"},
    {"--maxShapes", "opfuse compiles for the shape of --shape, or for all with --dim NAME=any"},
    {"--avgRuns", "every run is counted"},
    {"--dumpProfile", "see opfuse profile", false},
    {"--separateProfileRun", "see opfuse profile", false},
    {"--useSpinWait", "waits always spin a bounded time first", false},
    {"--noDataTransfers", "arrays are bound in place", false},
};
constexpr const char* kOfProfile[] = {"--exportProfile", "--exportLayerInfo"};

}  // namespace

std::vector<std::string> with_model_as_argument(const std::vector<std::string>& arguments) {
  std::vector<std::string> ours;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (name != "--onnx" && name != "--loadEngine")
      ours.push_back(arguments[i]);
    else if (name.size() < arguments[i].size())
      ours.push_back(arguments[i].substr(name.size() + 1));
    // else the next argument is the file
  }
  return ours;
}

void add_foreign_flags(FlagSet& app) {
  for (const NoEffect& flag : kNoEffect)
    app.add_hidden(flag.name, flag.has_value,
                   [&flag] { note(std::string(flag.name) + " has no effect: " + flag.why); });
  if (app.verb() == "profile") return;
  for (const char* name : kOfProfile)
    app.add_hidden(name, true, [name] {
      throw fail(E::bad_option, "{} goes with opfuse profile", name)
          .hint("opfuse profile MODEL " + std::string(name) + "=FILE.json");
    });
}

}  // namespace opfuse::cli
