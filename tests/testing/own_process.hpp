// Work in a process of its own: a crash or a hang of the code under test is a result.
#pragma once

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

namespace opfuse::test {

struct Ended {
  std::string text;   ///< what the work returned
  int signal = 0;     ///< ended by this signal
  bool hung = false;  ///< ended by the watchdog
  bool complete() const { return signal == 0 && !hung; }
};

/// The calling process must have one thread only. `seconds` of its own time, on a busy machine as on an idle one; ten
/// times as much by the clock, for work that waits.
inline Ended in_own_process(const std::function<std::string()>& work, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t pid = fork();
  if (pid < 0) std::abort();
  if (pid == 0) {
    close(ends[0]);
    const itimerval busy{{}, {seconds, 0}};
    setitimer(ITIMER_PROF, &busy, nullptr);
    alarm(static_cast<unsigned>(10 * seconds));
    const std::string text = work();
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) ended.text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) != 0 ? SIGABRT : 0;
  ended.hung = ended.signal == SIGALRM || ended.signal == SIGPROF;
  return ended;
}

}  // namespace opfuse::test
