// Two models one after the other on a GPU: what is between them never leaves it.
//   run_on_gpu cuda:sm_90a      the GPU's architecture; without it the emulated device, which needs a C++ compiler
#include <cstdio>
#include <opfuse/device_buffer.hpp>
#include <opfuse/network.hpp>
#include <opfuse/opfuse.hpp>
#include <string>
#include <vector>

static opfuse::Executable compiled(const std::string& op, const opfuse::Target& gpu) {
  opfuse::Network net(op);
  net.output("y", net.op(op, {net.input("x", {4, 256})}));
  return opfuse::compile(net.model(), gpu);
}

int main(int argc, char** argv) try {
  const opfuse::Target gpu = opfuse::Target::named(argc > 1 ? argv[1] : "cuda:emulated");
  const opfuse::Executable first = compiled("relu", gpu), second = compiled("exp", gpu);

  std::vector<float> values(4 * 256), results(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5) - 2;
  opfuse::DeviceBuffer x(first, values.size() * sizeof(float));  // or memory of cudaMalloc, of torch ...
  x.write(values.data(), x.bytes());

  opfuse::Context relu = first.create_context({.device_results = true}), exp = second.create_context();
  relu.bind("x", x.view(opfuse::DType::f32, {4, 256}));
  relu.run_on(nullptr);             // a CUstream or cudaStream_t; null: the default stream. Does not wait
  exp.bind("x", relu.output("y"));  // where it is, on the device
  exp.bind("y", opfuse::view(results, {4, 256}));
  exp.run_on(nullptr);
  exp.wait();
  std::printf("exp(relu(-2)) = %g, exp(relu(2)) = %g, on device %d\n", results[0], results[4], exp.device());
} catch (const opfuse::Error& e) {
  std::fprintf(stderr, "%s\n", e.diagnostic().text().c_str());
  return 1;
}
