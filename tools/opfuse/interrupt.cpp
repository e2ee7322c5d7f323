// One flag, set by the handler; SA_RESETHAND restores the default, so that a second Ctrl-C always works.
#include "interrupt.hpp"

#include <unistd.h>

#include <csignal>

#include "verb.hpp"

namespace opfuse::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_interrupt(int) { g_interrupted = 1; }

/// The end of a verb that keeps nothing: one word, then the signal does what it does.
void say_and_end(int) {
  constexpr char kWord[] = "\ninterrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWord, sizeof kWord - 1);
  std::raise(SIGINT);
}

bool g_catching = false;

void end_with_nothing(int) {
  constexpr char kWords[] = "warning: interrupted: nothing was measured\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords, sizeof kWords - 1);
  _exit(kInterrupted);
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

void name_interrupts() {
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) install(say_and_end);
}

void catch_interrupts() {
  g_catching = true;
  install(on_interrupt);
}

void release_interrupts() {
  g_catching = false;
  install(say_and_end);
}

bool interrupted() { return g_interrupted != 0; }

void stop_if_interrupted() {
  if (interrupted()) throw Stopped{};
}
NothingToKeep::NothingToKeep() {
  stop_if_interrupted();
  if (g_catching) install(end_with_nothing);
}

NothingToKeep::~NothingToKeep() {
  if (g_catching) install(on_interrupt);
}

int exit_code(int code) { return interrupted() ? kInterrupted : code; }

}  // namespace opfuse::cli
