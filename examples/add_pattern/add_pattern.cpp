// Patterns of one's own, outside of opfuse's tree: one written here, more from a TOML file.
//
//   add_pattern [PATTERNS.toml] [MODEL.onnx]     (examples/patterns/gate.toml is such a file)
#include <cstdio>
#include <opfuse/opfuse.hpp>
#include <string>

// EfficientNet's gates: x -- 1x1 convolution -- Sigmoid. The catalogue makes a FusedConvBN with an appended Sigmoid of
// it.
static opfuse::PatternSpec squeeze_gate() {
  return {.name = "SqueezeGate",
          .topology = "conv:conv -> act:sigmoid",
          .where = {"conv.kernel[0] == 1 and conv.kernel[1] == 1", "conv.group == 1"},
          .points = {{"INPUT", "conv"}},
          .doc = "A 1x1 convolution and its Sigmoid: the gate of a squeeze-and-excitation block."};
}

static void print(const char* title, const opfuse::Plan& plan) {
  std::printf("%s\n", title);
  for (const auto& [module, count] : plan.modules()) std::printf("%6d %s\n", count, module.c_str());
}

int main(int argc, char** argv) try {
  const opfuse::Model model = argc > 2 ? opfuse::Model::load(argv[2]) : opfuse::Model::zoo("efficientnet_b0");
  const opfuse::Target cpu = opfuse::Target::host();
  print("the catalogue alone", opfuse::plan(model, cpu));

  opfuse::PlanRequest request;
  request.patterns = {squeeze_gate()};
  print("with SqueezeGate", opfuse::plan(model, cpu, request));

  if (argc > 1) {
    request = {};
    request.pattern_files = {argv[1]};
    print("with the patterns of the file", opfuse::plan(model, cpu, request));
  }
  const opfuse::Fused fused = opfuse::apply(model, opfuse::plan(model, cpu, request));
  fused.model.save("fused.onnx");  // each module a function of the model, named after it
  std::printf("wrote fused.onnx\n");
} catch (const opfuse::Error& e) {
  std::fprintf(stderr, "%s\n", e.diagnostic().text().c_str());
  return 1;
}
