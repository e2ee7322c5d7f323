// Kernels are given every size that was found before them, outputs have those that were found behind the last kernel.
#include "run_sizes.hpp"

#include <algorithm>

#include "runtime/artifact.hpp"
#include "runtime/launch_call.hpp"
#include "session.hpp"

namespace opfuse::cli {
namespace {

/// Keeps what the last kernel was given.
class SizeReader final : public Executor {
 public:
  SizeReader(Executor& pool, size_t symbols) : sizes(symbols, 0), pool_(pool) {}
  int workers() const override { return pool_.workers(); }
  void run(int64_t parts, PartFunction fn, void* context) override {
    const int64_t* given = static_cast<const LaunchCall*>(context)->launch->symbols;
    if (given) std::copy_n(given, sizes.size(), sizes.begin());
    pool_.run(parts, fn, context);
  }
  std::vector<int64_t> sizes;

 private:
  Executor& pool_;
};

}  // namespace

SymbolValues sizes_of_run(const Executable& executable, const ModelInputs& inputs, int threads) {
  SymbolValues sizes = inputs.symbols;
  const Artifact& artifact = executable.artifact();
  const ArtifactProgram& program = artifact.program_for(sizes);
  if (std::ranges::none_of(program.launches, [](const ArtifactLaunch& l) { return l.is_routine(); })) return sizes;
  const auto pool = make_thread_pool(threads ? threads : default_threads());
  SizeReader reader(*pool, program.symbols.size());
  Session session(executable, inputs, {.executor = &reader});
  session.context().run();
  for (const ArtifactTensor& output : artifact.outputs) {
    const std::vector<int64_t> shape = session.context().output(output.name).shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (const Dim& dim = output.type.shape[d]; dim.op() == DimOp::symbol) sizes.emplace(dim.symbol_name(), shape[d]);
  }
  for (size_t i = 0; i < program.symbols.size(); ++i) sizes.emplace(program.symbols[i], reader.sizes[i]);
  return sizes;
}

}  // namespace opfuse::cli
