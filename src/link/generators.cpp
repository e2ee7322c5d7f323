#include "link/generators.hpp"

#include "cpu/generator.hpp"
#include "cuda/generator.hpp"

namespace opfuse {

const Generator& generator_for(const TargetInfo& target) {
  static const auto no_limit = [](const KernelSpec&, const TargetInfo&) -> std::string { return {}; };
  static const Generator cpu = {cannot_generate, wish_layouts, choose_schedule,
                                no_limit,        generate,     generator_fingerprint};
  static const Generator cuda = {cuda::cannot_generate, cuda::wish_layouts, cuda::choose_schedule,
                                 cuda::limit_of,        cuda::generate,     cuda::generator_version};
  return target.is_cuda() ? cuda : cpu;
}

}  // namespace opfuse
