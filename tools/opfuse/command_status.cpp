// /bin/sh -c COMMAND with both streams in one pipe. The child leads a process group, so that an end by timeout takes
// everything that it started; the shell's 128 + N counts as signal N.
#include "command_status.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fail.hpp"
#include "console.hpp"

namespace opfuse::cli {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;

/// Reads until the pipe closes or the time is over; false: it is over.
bool read_all(int pipe, int64_t deadline_ns, std::string& output) {
  char buffer[4096];
  for (;;) {
    const int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd ready{pipe, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min<int64_t>(left_ms, 1000))) <= 0) continue;
    const ssize_t n = read(pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (output.size() < kMaxOutput) output.append(buffer, static_cast<size_t>(n));
  }
}

std::string first_error(const std::string& output) {
  const size_t at = output.find("error[E");
  if (at == std::string::npos) return {};
  return output.substr(at, output.find(']', at) - at + 1);
}

}  // namespace

std::string CommandStatus::text() const {
  if (timeout) return "no end within the time";
  std::string text = signal ? fmt::format("signal {} ({})", signal, strsignal(signal)) : fmt::format("exit {}", exit);
  return error.empty() ? text : text + ", " + error;
}

bool CommandStatus::same_failure(const CommandStatus& other) const {
  return exit == other.exit && signal == other.signal && timeout == other.timeout && error == other.error;
}

CommandStatus run_command(const std::string& command, double timeout_seconds) {
  int ends[2];
  if (pipe(ends) != 0) throw fail(E::file_write_failed, "no pipe: {}", std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) throw fail(E::file_write_failed, "no process: {}", std::strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  setpgid(child, child);
  close(ends[1]);
  CommandStatus status;
  status.timeout = !read_all(ends[0], now_ns() + static_cast<int64_t>(timeout_seconds * 1e9), status.output);
  if (status.timeout) kill(-child, SIGKILL);
  close(ends[0]);
  int raw = 0;
  while (waitpid(child, &raw, 0) < 0 && errno == EINTR) {
  }
  if (status.timeout) return status;
  status.exit = WIFEXITED(raw) ? WEXITSTATUS(raw) : 0;
  status.signal = WIFSIGNALED(raw) ? WTERMSIG(raw) : status.exit > 128 && status.exit < 160 ? status.exit - 128 : 0;
  if (status.signal) status.exit = 0;
  status.error = first_error(status.output);
  return status;
}

}  // namespace opfuse::cli
