#include "link/generators.hpp"

#include "base/fail.hpp"
#include "cpu/generator.hpp"
#include "cuda/generator.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

static Error without_generator(const TargetInfo& target) {
  return fail(E::uncompilable, "opfuse generates no code for {}", target.name);
}

const Generator& generator_for(const TargetInfo& target) {
  static const auto no_limit = [](const KernelSpec&, const TargetInfo&) -> std::string { return {}; };
  static const Generator cpu = {cannot_generate, wish_layouts, choose_schedule,
                                no_limit,        generate,     generator_fingerprint};
  static const Generator cuda = {cuda::cannot_generate, cuda::wish_layouts, cuda::choose_schedule,
                                 cuda::limit_of,        cuda::generate,     cuda::generator_version};
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
      [] { return std::string("none"); }};
  if (!has_generator(target)) return none;
  return target.is_cuda() ? cuda : cpu;
}

}  // namespace opfuse
