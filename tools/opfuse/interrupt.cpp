// One flag, set by the handler; SA_RESETHAND restores the default, so that a second Ctrl-C always works.
#include "interrupt.hpp"

#include <csignal>

#include "verb.hpp"

namespace opfuse::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_interrupt(int) { g_interrupted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return g_interrupted != 0; }
int exit_code(int code) { return interrupted() ? kInterrupted : code; }

}  // namespace opfuse::cli
