// Ctrl-C: the first one asks a measuring verb to stop and report what it has; the second one ends the process.
#pragma once

namespace opfuse::cli {

/// From here on a SIGINT ends the process with a word on stderr; for verbs that do not call catch_interrupts.
void name_interrupts();

/// From here on the first SIGINT only sets the flag. Verbs that cannot stop half-way do not call this.
void catch_interrupts();
bool interrupted();

/// 130 after an interrupt, else `code`.
int exit_code(int code);

}  // namespace opfuse::cli
