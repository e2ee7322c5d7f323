// What `opfuse check` says of operators, for programs.
#include "opfuse/check.hpp"

#include "driver/compilation_options.hpp"

namespace opfuse {

std::vector<Unsupported> unsupported(const Model& model, const Target& target, const CompileOptions& options) {
  Compilation compilation(model.graph(), target.info(), compilation_options(options));
  compilation.run_to(Milestone::shaped);
  std::vector<Unsupported> found;
  for (Obstacle& o : obstacles_on(compilation.fused, target.info(), {.allow_reference = options.allow_reference}))
    found.push_back({std::move(o.node), std::move(o.op), std::move(o.reason), std::move(o.remedy), o.follows});
  return found;
}

}  // namespace opfuse
