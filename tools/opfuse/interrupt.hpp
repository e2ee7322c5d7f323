// Ctrl-C: the first one asks a measuring verb to stop and report what it has; the second one ends the process.
#pragma once

namespace opfuse::cli {

/// From here on a SIGINT ends the process with a word on stderr; for verbs that do not call catch_interrupts.
void name_interrupts();

/// From here on the first SIGINT only sets the flag. Verbs that cannot stop half-way do not call this.
void catch_interrupts();
/// From here on a SIGINT ends the process with a word again.
void release_interrupts();
bool interrupted();

/// Thrown between steps that are worth nothing by halves: a compilation, the stages of a model. main says that nothing
/// was measured; verbs that have something by then catch it.
struct Stopped {};
void stop_if_interrupted();

/// While it lives a SIGINT ends the process at once with a word and 130: for long steps that come before anything is
/// measured and cannot stop half-way. Outside verbs that catch interrupts it does nothing.
class NothingToKeep {
 public:
  NothingToKeep();
  ~NothingToKeep();
  NothingToKeep(const NothingToKeep&) = delete;
  NothingToKeep& operator=(const NothingToKeep&) = delete;
};

/// 130 after an interrupt, else `code`.
int exit_code(int code);

}  // namespace opfuse::cli
