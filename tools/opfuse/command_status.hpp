// How a shell command ended: what `reduce` compares between a model and its parts.
#pragma once

#include <string>

namespace opfuse::cli {

struct CommandStatus {
  int exit = 0;          ///< exit code, when neither of the next two
  int signal = 0;        ///< ended by this signal
  bool timeout = false;  ///< ran longer than allowed; its processes were ended
  std::string error;     ///< first "error[E....]" of what it printed
  std::string output;    ///< stdout and stderr together, up to a megabyte

  bool failed() const { return exit != 0 || signal != 0 || timeout; }
  std::string text() const;  ///< "exit 3, error[E0502]", "signal 11 (Segmentation fault)", "no end within 60 s"
  /// The same way to end: exit code, signal and opfuse error; not the whole output.
  bool same_failure(const CommandStatus& other) const;
};

/// Runs `command` by /bin/sh in a process group of its own.
CommandStatus run_command(const std::string& command, double timeout_seconds);

}  // namespace opfuse::cli
