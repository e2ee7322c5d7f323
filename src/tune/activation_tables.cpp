#include "tune/activation_tables.hpp"

#include <fmt/core.h>

#include <map>

#include "cpu/activation_form.hpp"

namespace opfuse {
namespace {

/// Over all floats (docs/accuracy.md).
struct Bounds {
  const char *name, *by_tables, *otherwise;
};

Bounds bounds_of(TabledActivation activation) {
  switch (activation) {
    case TabledActivation::silu:
      return {"SiLU", "within 2.6 ULP for x > -1, 4e-7 absolute below", "3 ULP"};
    case TabledActivation::gelu:
      return {"GELU", "within 3.1 ULP for x > -1, 3e-7 absolute below", "4.8 ULP, 4e-7"};
    case TabledActivation::gelu_rounded:
      return {"GELU by constants of 16 bits", "within 5 ULP for x > -1, 3e-7 absolute below", "4.8 ULP, 4e-7"};
    case TabledActivation::gelu_tanh:
      return {"GELU with tanh", "within 3 ULP for x > -1, 3e-7 absolute below", "2.6 ULP, 1e-7"};
  }
  return {};
}

}  // namespace

void forbid_activation_tables(Program& program) {
  for (Launch& launch : program.launches)
    std::erase_if(launch.schedule.knobs, [](const auto& knob) { return knob.first == kActivationTables; });
}

void note_activation_tables(Program& program, const TargetInfo& target) {
  std::map<TabledActivation, int> kernels;
  for (const Launch& launch : program.launches)
    if (launch.schedule.get(kActivationTables, 0))
      for (const TabledActivation activation : tabled_activations(launch.region, target)) ++kernels[activation];
  for (const auto& [activation, count] : kernels) {
    const Bounds bounds = bounds_of(activation);
    program.notes.push_back(fmt::format("{} by tables in {} kernel{}: {}; --exact: {}", bounds.name, count,
                                        count == 1 ? "" : "s", bounds.by_tables, bounds.otherwise));
  }
}

}  // namespace opfuse
