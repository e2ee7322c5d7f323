#include "optimize/contestant.hpp"

#include "profile/statistics.hpp"

namespace opfuse {

Contestant::Contestant(Compilation compiled, const std::vector<Tensor>& given, int threads)
    : compilation(std::move(compiled)),
      executable(Executable::from_artifact(std::move(compilation.artifact))),
      inputs(given),
      context(executable.create_context({.threads = threads})) {
  const auto& infos = executable.inputs();
  for (size_t i = 0; i < infos.size(); ++i)
    context.bind(infos[i].name, {inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()});
  context.run();  // memory has its size afterwards
}

OptimizeSide Contestant::side() const {
  OptimizeSide side;
  for (const LaunchInfo& launch : context.launches()) side.bytes += launch.bytes_read + launch.bytes_written;
  side.launches = context.launches().size();
  side.ms = summarize(sample).median;
  side.arena = static_cast<int64_t>(context.arena_bytes());
  side.constants = static_cast<int64_t>(executable.artifact().constants.size());
  return side;
}

}  // namespace opfuse
