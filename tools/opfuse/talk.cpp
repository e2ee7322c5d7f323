// One flag for the whole process: a command has one stderr.
#include "talk.hpp"

#include <cstdio>

namespace opfuse::cli {

static bool g_quiet = false;

void tell(const std::string& text) { std::fputs(text.c_str(), stderr); }

void say(const std::string& text) {
  if (!g_quiet) tell(text + "\n");
}

bool is_quiet() { return g_quiet; }

void add_quiet_flag(FlagSet& app) { app.add_flag("-q,--quiet", g_quiet, "only errors and warnings on stderr"); }

}  // namespace opfuse::cli
