#include "program/routine_launches.hpp"

#include <fmt/format.h>

namespace opfuse {
namespace {

constexpr std::string_view kRoutine = "routine.", kGives = "gives.", kSetting = "setting.";
constexpr const char* kResults = "results";

}  // namespace

Schedule schedule_of(const RoutineCall& call, size_t results) {
  Schedule schedule{fmt::format("{}{}", kRoutine, call.name), {}};
  schedule.set(kResults, static_cast<int64_t>(results));
  for (size_t i = 0; i < call.settings.size(); ++i) schedule.set(fmt::format("{}{}", kSetting, i), call.settings[i]);
  for (size_t i = 0; i < call.defines.size(); ++i)
    schedule.set(fmt::format("{}{}", kGives, call.defines[i]), static_cast<int64_t>(i));
  return schedule;
}

bool is_routine(const Launch& launch) { return launch.reference && launch.schedule.skeleton.starts_with(kRoutine); }

std::optional<RoutineCall> routine_of(const Launch& launch) {
  if (!is_routine(launch)) return std::nullopt;
  RoutineCall call{launch.schedule.skeleton.substr(kRoutine.size())};
  for (const auto& [name, value] : launch.schedule.knobs) {
    if (name.starts_with(kGives)) call.defines.push_back(name.substr(kGives.size()));
    if (name.starts_with(kSetting)) call.settings.push_back(value);
  }
  return call;
}

size_t results_of_routine(const Launch& launch) { return static_cast<size_t>(launch.schedule.get(kResults, 0)); }

}  // namespace opfuse
