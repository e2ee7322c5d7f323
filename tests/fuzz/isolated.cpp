// An outcome as text: its kind's digit, then the detail.
#include <fmt/core.h>
#include <sched.h>

#include <cstring>

#include "fuzz/check.hpp"
#include "testing/own_process.hpp"

namespace opfuse::fuzz {

Outcome isolated(const std::function<Outcome()>& work, int seconds) {
  const test::Ended ended = test::in_own_process(
      [&] {
        cpu_set_t cpu;
        CPU_ZERO(&cpu);
        CPU_SET(sched_getcpu(), &cpu);
        sched_setaffinity(0, sizeof cpu, &cpu);  // loops of the compiler then start no threads
        const Outcome outcome = work();
        return std::string(1, static_cast<char>('0' + static_cast<int>(outcome.kind))) + outcome.detail;
      },
      seconds);
  if (ended.hung) return {Kind::hang, fmt::format("no end within {} s", seconds)};
  if (!ended.complete()) return {Kind::crash, fmt::format("signal {} ({})", ended.signal, strsignal(ended.signal))};
  return {static_cast<Kind>(ended.text.at(0) - '0'), ended.text.substr(1)};
}

}  // namespace opfuse::fuzz
