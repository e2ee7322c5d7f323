// One flag for the whole process: a command has one stderr.
#include "talk.hpp"

#include <fmt/core.h>

namespace opfuse::cli {

static bool g_quiet = false;

void say(const std::string& text) {
  if (!g_quiet) fmt::print(stderr, "{}\n", text);
}

bool is_quiet() { return g_quiet; }

void add_quiet_flag(FlagSet& app) { app.add_flag("-q,--quiet", g_quiet, "only errors and warnings on stderr"); }

}  // namespace opfuse::cli
