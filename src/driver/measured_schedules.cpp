#include "driver/measured_schedules.hpp"

#include <fmt/format.h>

#include <optional>

#include "link/generators.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

constexpr const char* kForm = "schedule ";

/// Nothing where the text is no schedule, or one that cannot be emitted: caches are files that people edit and merge.
std::optional<Schedule> emitted(const Program& program, const Launch& launch, const std::string& form,
                                const TargetInfo& target, std::string& why) {
  try {
    KernelSpec spec = kernel_spec(program, launch);
    spec.schedule = parse_schedule(form.substr(std::string_view(kForm).size()));
    generator_for(target).verify(spec, target);
    return spec.schedule;
  } catch (const Error& error) {
    why = error.diagnostic().message;
    return std::nullopt;
  }
}

}  // namespace

std::string form_of(const Schedule& schedule) { return kForm + schedule.text(); }

void take_measured_schedules(Program& program, const TargetInfo& target, const KnownTimes& times) {
  const std::string generator = generator_for(target).fingerprint();
  size_t taken = 0, elsewhere = 0, refused = 0;
  std::string why;
  for (Launch& launch : program.launches) {
    if (launch.reference) continue;
    const TimingKey key = launch_key(program, launch, times.machine);
    const Timing* best = times.cache.fastest(key, kForm, generator);
    if (!best) {
      elsewhere += times.cache.measured_elsewhere(key, kForm, generator) ? 1 : 0;
    } else if (const auto schedule = emitted(program, launch, best->form, target, why)) {
      launch.schedule = *schedule, ++taken;
    } else {
      ++refused;
    }
  }
  const auto note = [&](const std::string& text) { program.notes.push_back(text); };
  if (taken > 0)
    note(fmt::format("{} of {} launches have schedules as measured ({})", taken, program.launches.size(), times.file));
  if (elsewhere > 0)
    note(
        fmt::format("schedules of {} launches were measured on another machine or by another build, and are not used: "
                    "opfuse tune measures them here ({})",
                    elsewhere, times.file));
  if (refused > 0)
    note(fmt::format("measured schedules of {} launches are not used: {} ({})", refused, why, times.file));
}

}  // namespace opfuse
