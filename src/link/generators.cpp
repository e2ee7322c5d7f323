#include "link/generators.hpp"

#include "base/fail.hpp"
#include "cpu/generator.hpp"
#include "cpu/skeletons.hpp"
#include "cuda/generator.hpp"
#include "cuda/skeletons.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

static Error without_generator(const TargetInfo& target) {
  return fail(E::uncompilable, "opfuse generates no code for {}", target.name);
}

static std::vector<Schedule> choices(const std::vector<Candidate>& ranked) {
  std::vector<Schedule> schedules;
  for (const Candidate& candidate : ranked) schedules.push_back(candidate.choice);
  return schedules;
}

const Generator& generator_for(const TargetInfo& target) {
  static const auto no_limit = [](const KernelSpec&, const TargetInfo&) -> std::string { return {}; };
  static const Generator cpu = {cannot_generate,
                                wish_layouts,
                                choose_schedule,
                                no_limit,
                                generate,
                                generator_fingerprint,
                                [](const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& t,
                                   size_t most) { return choices(candidates(region, layouts, t, most)); },
                                [](const KernelSpec& spec) { return as_emitted(skeletons(), spec); },
                                [](const KernelSpec& spec, const TargetInfo& t) { verify(skeletons(), spec, t); }};
  static const Generator cuda = {
      cuda::cannot_generate,
      cuda::wish_layouts,
      cuda::choose_schedule,
      cuda::limit_of,
      cuda::generate,
      cuda::generator_version,
      [](const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& t, size_t most) {
        return choices(candidates(cuda::skeletons(), region, layouts, t, most));
      },
      [](const KernelSpec& spec) { return spec; },
      [](const KernelSpec& spec, const TargetInfo& t) { verify(cuda::skeletons(), spec, t); }};
  // Planning targets and accelerators: their files say what fuses, nothing is ever generated.
  static const Generator none = {
      [](const Region&, const TargetInfo&) -> std::optional<std::string> { return std::nullopt; },
      [](const Region&, const TargetInfo& t) -> LayoutWish { throw without_generator(t); },
      [](const Region&, const std::vector<ParamLayout>&, const TargetInfo& t) -> Schedule {
        throw without_generator(t);
      },
      no_limit,
      [](const std::vector<KernelSpec>&, const TargetInfo& t, const CodegenOptions&) -> LinkedCode {
        throw without_generator(t);
      },
      [] { return std::string("none"); },
      [](const Region&, const std::vector<ParamLayout>&, const TargetInfo&, size_t) { return std::vector<Schedule>(); },
      [](const KernelSpec& spec) { return spec; },
      [](const KernelSpec&, const TargetInfo& t) { throw without_generator(t); }};
  if (!has_generator(target)) return none;
  return target.is_cuda() ? cuda : cpu;
}

}  // namespace opfuse
