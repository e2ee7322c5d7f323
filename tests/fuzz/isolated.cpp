// fork, a pipe for the outcome, a watchdog. The parent must have one thread only.
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/fail.hpp"
#include "fuzz/check.hpp"

namespace opfuse::fuzz {
namespace {

[[noreturn]] void child(const std::function<Outcome()>& work, int pipe, int seconds) {
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(sched_getcpu(), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);  // loops of the compiler then start no threads
  alarm(static_cast<unsigned>(seconds));   // SIGALRM ends the process
  const Outcome outcome = work();
  const std::string text = std::string(1, static_cast<char>('0' + static_cast<int>(outcome.kind))) + outcome.detail;
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(pipe, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  _exit(0);
}

std::string read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipe, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

}  // namespace

Outcome isolated(const std::function<Outcome()>& work, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) throw fail(E::file_write_failed, "no pipe: {}", std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw fail(E::file_write_failed, "no process: {}", std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    child(work, ends[1], seconds);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return {Kind::hang, fmt::format("no end within {} s", seconds)};
  if (WIFSIGNALED(status))
    return {Kind::crash, fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
  if (text.empty()) return {Kind::crash, fmt::format("exit {}", WEXITSTATUS(status))};
  return {static_cast<Kind>(text[0] - '0'), text.substr(1)};
}

}  // namespace opfuse::fuzz
