// Plan, edit the plan, fuse, compile and run a model through the public API.
#include <cstdio>
#include <opfuse/opfuse.hpp>
#include <vector>

int main(int argc, char** argv) try {
  opfuse::Model model = argc > 1 ? opfuse::Model::load(argv[1]) : opfuse::Model::zoo("resnet18");
  opfuse::Target cpu = opfuse::Target::host();
  opfuse::Plan plan = opfuse::plan(model, cpu);  // nothing applied yet
  for (const opfuse::PlanEntry& missed : plan.missed())
    std::printf("not fused: %s: %s\n", missed.id.c_str(), missed.reason.c_str());
  for (const auto& [module, count] : plan.modules()) std::printf("%4d %s\n", count, module.c_str());

  opfuse::Fused fused = opfuse::apply(model, plan);
  opfuse::Executable exe = opfuse::compile(fused.model, cpu);
  opfuse::Context ctx = exe.create_context();  // one per thread; exe is shared, immutable
  std::vector<float> image(1 * 3 * 224 * 224, 0.5F), scores(1000);
  ctx.bind(exe.inputs()[0].name, opfuse::view(image, {1, 3, 224, 224}));
  ctx.bind(exe.outputs()[0].name, opfuse::view(scores, {1, 1000}));
  ctx.run();
  std::printf("ran %zu kernels on %d thread(s), first score %g\n", ctx.launches().size(), ctx.threads(), scores[0]);
} catch (const opfuse::Error& e) {
  std::fprintf(stderr, "%s\n", e.diagnostic().text().c_str());
  return 1;
}
