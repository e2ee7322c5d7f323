// Reads a plan, switches a group off, saves the plan, applies it again, and compares the values.
//
//   edit_plan [MODEL.onnx]
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <opfuse/opfuse.hpp>
#include <vector>

/// The model's only output for an input of ones.
static std::vector<float> run(const opfuse::Model& model, const opfuse::Plan& plan, const opfuse::Target& target) {
  const opfuse::Executable exe = opfuse::compile(opfuse::apply(model, plan).model, target);
  opfuse::Context context = exe.create_context();
  std::vector<int64_t> shape;
  for (const std::string& size : exe.inputs()[0].shape) shape.push_back(std::stoll(size));
  std::vector<float> input(std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>()), 1.0F);
  context.bind(exe.inputs()[0].name, opfuse::view(input, shape));
  context.run();
  const opfuse::ArrayView output = context.output(exe.outputs()[0].name);
  const auto* first = static_cast<const float*>(output.data);
  return {first, first + std::accumulate(output.shape.begin(), output.shape.end(), int64_t{1}, std::multiplies<>())};
}

int main(int argc, char** argv) try {
  const opfuse::Model model = argc > 1 ? opfuse::Model::load(argv[1]) : opfuse::Model::zoo("resnet18");
  const opfuse::Target cpu = opfuse::Target::host();
  opfuse::Plan plan = opfuse::plan(model, cpu);
  const std::vector<float> before = run(model, plan, cpu);

  std::string biggest;  // the group that saves most; here it is not wanted
  double saved = 0;
  for (const opfuse::PlanEntry& entry : plan.entries())
    if (entry.apply && entry.bytes_saved > saved) biggest = entry.id, saved = entry.bytes_saved;
  std::printf("switched off: %s, which would save %.1f MB\n", biggest.c_str(), saved / 1e6);
  plan.at(biggest).apply = false;

  std::ofstream("plan.json") << plan.json();
  std::ifstream file("plan.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  opfuse::Plan again = opfuse::Plan::from_json(text, model);
  for (const opfuse::Remark& remark : opfuse::explain(model, again, {.node = again.at(biggest).anchor}))
    if (remark.code == "switched_off") std::printf("%s: %s\n", remark.rule.c_str(), remark.message.c_str());

  const std::vector<float> after = run(model, again, cpu);
  double largest = 0, difference = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    largest = std::fmax(largest, std::fabs(before[i]));
    difference = std::fmax(difference, std::fabs(before[i] - after[i]));
  }
  std::printf("largest difference %.1e of max abs\n", difference / largest);
  return difference <= 2e-5 * largest ? 0 : 1;
} catch (const opfuse::Error& e) {
  std::fprintf(stderr, "%s\n", e.diagnostic().text().c_str());
  return 1;
}
