// Small valid files of every format that is read: what damage starts from. Making them takes the whole library.
#include <filesystem>

#include "base/file_bytes.hpp"
#include "base/temporary_folder.hpp"
#include "fusion/plan.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"
#include "readers/readers.hpp"

namespace opfuse::readers {
namespace {

using Files = std::vector<std::string>;

std::string contents(const std::string& path) { return file_bytes(path).value_or(""); }

Graph small_graph() {
  return parse_graph(R"(graph (%x: f32[n,4,6,6], %i: i64[3]) {
  %w = const rand<1> : f32[8,4,3,3]
  %c = conv(%x, %w) {pads = [1,1,1,1]}
  %r = relu(%c)
  %g = global_average_pool(%r)
  %f = flatten(%g) {axis = 1}
  %t = gather(%f, %i) {axis = 1}
  %y = softmax(%t) {axis = -1}
  return %y, %r
})",
                     ops());
}

Files onnx_seeds() {
  const Model model = Model::from_graph(small_graph());
  const Fused fused = apply(model, plan(model, Target::named("cpu:baseline")));
  return {write_onnx_bytes(model.graph()), write_onnx_bytes(fused.model.graph(), {.functions = true})};
}

Files opf_seeds() {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.opf");
  compile(Model::from_graph(small_graph()), Target::named("cpu:baseline"), {.cache = false}).save(path);
  return {contents(path)};
}

Files plan_seeds() { return {plan(Model::from_graph(small_graph()), Target::named("cpu:baseline")).json()}; }

Files toml_seeds() {
  return {R"([[pattern]]
name = "ConvGate"
topology = "conv:conv -> [bn:batch_norm] -> act:{sigmoid|tanh}"
where = ["conv.in_channels % 16 == 0 and conv.group == 1", "act.rank == 4"]
points = { INPUT = "conv" }
priority = 2
fires = ["""graph (%x: f32[1,16,8,8]) { %y = relu(%x) return %y }"""]
)"};
}

Files fir_seeds() { return {print(small_graph(), {.max_constant_elements = 400})}; }

Files npy_seeds() {
  return {encode_npy(Tensor::of<double>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})),
          encode_npy(Tensor::from_i64({1, 2, 3})), encode_npy(Tensor::scalar(DType::boolean, 1))};
}

Files npz_seeds() {
  const TemporaryFolder folder;
  write_npz(folder.path("a.npz"), {{"x", Tensor::from_i64({1, 2, 3})}, {"y", Tensor::scalar(DType::f32, 2)}});
  return {contents(folder.path("a.npz"))};
}

Files pb_seeds() {
  const TemporaryFolder folder;
  write_tensor_pb(folder.path("x.pb"), Tensor::of<double>(DType::f32, {2, 2}, {1, 2, 3, 4}), "x");
  return {contents(folder.path("x.pb"))};
}

Files cache_seeds() { return {contents(cache_file_path())}; }

}  // namespace

std::vector<std::string> seeds_of(std::string_view reader) {
  using Make = Files (*)();
  constexpr Make kMakers[] = {
#define OPFUSE_READER(name) name##_seeds,
#include "readers/readers.def"
#undef OPFUSE_READER
  };
  const Reader* const row = &reader_named(reader);
  return kMakers[row - readers().data()]();
}

}  // namespace opfuse::readers
