// Readers of files get a file in memory (memfd). Formats with checksums are sealed again after the damage, so that it
// reaches what is behind them: an attacker can do that too.
#include "readers/readers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "base/temporary_folder.hpp"
#include "driver/pipeline.hpp"
#include "fusion/plan.hpp"
#include "fusion/user/pattern_file.hpp"
#include "link/kernel_cache.hpp"
#include "onnx/read.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"

namespace opfuse::readers {
namespace {

/// A file in memory with a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("reader", 0)) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = write(file_, bytes.data() + at, bytes.size() - at);
      if (n <= 0) std::abort();
      at += static_cast<size_t>(n);
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

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

// ---- onnx

void read_onnx_model(std::string_view bytes) {
  const Graph graph = read_onnx_bytes(std::string(bytes));
  verify(graph);
  write_onnx_bytes(graph);
}

std::vector<std::string> onnx_seeds() {
  const Model model = Model::from_graph(small_graph());
  const Fused fused = apply(model, plan(model, Target::named("cpu:baseline")));
  return {write_onnx_bytes(model.graph()), write_onnx_bytes(fused.model.graph(), {.functions = true})};
}

// ---- .opf: magic (8) | header bytes (8) | header hash (8) | header | sections

/// The checksums of a header's sections, and its own, made to hold.
std::string resealed(std::string_view bytes) {
  std::string sealed(bytes);
  if (sealed.size() <= 24) return sealed;
  uint64_t header = 0;
  std::memcpy(&header, sealed.data() + 8, 8);
  header = std::min<uint64_t>(header, sealed.size() - 24);
  std::string text = sealed.substr(24, header);
  nlohmann::json table = nlohmann::json::parse(text, nullptr, false);
  if (const bool parts = table.is_object() && table.contains("sections") && table["sections"].is_array(); parts) {
    const size_t base = (24 + header + 4095) / 4096 * 4096;
    for (nlohmann::json& s : table["sections"]) {
      if (!s.is_object() || !s["offset"].is_number_unsigned() || !s["bytes"].is_number_unsigned()) continue;
      const size_t offset = s["offset"], size = s["bytes"];
      if (base < sealed.size() && offset < sealed.size() - base)
        s["xxh3"] = hash_text(std::string_view(sealed).substr(base + offset, size)).hex();
    }
    const std::string mended = table.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (mended.size() == text.size()) text = mended;  // else the sections would lie elsewhere
  }
  const uint64_t hash = hash_text(text).low;
  std::memcpy(sealed.data() + 8, &header, 8);
  std::memcpy(sealed.data() + 16, &hash, 8);
  return sealed.replace(24, text.size(), text);
}

void read_opf(std::string_view bytes) {
  const MemoryFile file(resealed(bytes));
  const Executable executable = Executable::load(file.path());
  executable.create_context({.threads = 1});
}

std::vector<std::string> opf_seeds() {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.opf");
  compile(Model::from_graph(small_graph()), Target::named("cpu:baseline"), {.cache = false}).save(path);
  return {contents(path)};
}

// ---- plans, patterns, text graphs

void read_plan(std::string_view bytes) { to_json(plan_from_json(bytes)); }

std::vector<std::string> plan_seeds() {
  return {plan(Model::from_graph(small_graph()), Target::named("cpu:baseline")).json()};
}

void read_toml(std::string_view bytes) { parse_patterns(bytes, "fuzz.toml"); }

std::vector<std::string> toml_seeds() {
  return {R"([[pattern]]
name = "ConvGate"
topology = "conv:conv -> [bn:batch_norm] -> act:{sigmoid|tanh}"
where = ["conv.in_channels % 16 == 0 and conv.group == 1", "act.rank == 4"]
points = { INPUT = "conv" }
priority = 2
fires = ["""graph (%x: f32[1,16,8,8]) { %y = relu(%x) return %y }"""]
)"};
}

void read_fir(std::string_view bytes) { verify(parse_graph(bytes, ops())); }
std::vector<std::string> fir_seeds() { return {print(small_graph(), {.max_constant_elements = 400})}; }

// ---- arrays

void read_npy_bytes(std::string_view bytes) { parse_npy(bytes, "fuzz.npy"); }

std::vector<std::string> npy_seeds() {
  return {encode_npy(Tensor::of<double>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})),
          encode_npy(Tensor::from_i64({1, 2, 3})), encode_npy(Tensor::scalar(DType::boolean, 1))};
}

void read_npz_bytes(std::string_view bytes) { read_npz(MemoryFile(bytes).path()); }

std::vector<std::string> npz_seeds() {
  const TemporaryFolder folder;
  write_npz(folder.path("a.npz"), {{"x", Tensor::from_i64({1, 2, 3})}, {"y", Tensor::scalar(DType::f32, 2)}});
  return {contents(folder.path("a.npz"))};
}

void read_pb_bytes(std::string_view bytes) { read_tensor_pb(MemoryFile(bytes).path()); }

std::vector<std::string> pb_seeds() {
  const TemporaryFolder folder;
  write_tensor_pb(folder.path("x.pb"), Tensor::of<double>(DType::f32, {2, 2}, {1, 2, 3, 4}), "x");
  return {contents(folder.path("x.pb"))};
}

// ---- kernel cache: "OPFK" | version (4) | hash of the rest (8) | ...

struct CacheFile {
  TemporaryFolder folder;
  KernelCache cache{folder.path("kernels"), parse_target("cpu:baseline")};
  KernelSpec spec;
  std::string path;

  CacheFile() {
    cache.store(spec, {{.symbol = "kernel"}, {0xC3, 0x90, 0x90}});
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("kernels"))) path = entry.path();
  }
};

CacheFile& cache_file() {
  static CacheFile file;
  return file;
}

void read_cache(std::string_view bytes) {
  std::string sealed(bytes);
  if (sealed.size() > 16) {
    const uint64_t hash = hash_bytes(sealed.data() + 16, sealed.size() - 16).low;
    std::memcpy(sealed.data() + 8, &hash, 8);
  }
  std::ofstream(cache_file().path, std::ios::binary) << sealed;
  const auto kernel = cache_file().cache.load(cache_file().spec);
  if (kernel && kernel->code.offset > kernel->bytes.size())
    throw std::logic_error("a cached kernel whose entry lies outside its code");
}

std::vector<std::string> cache_seeds() { return {contents(cache_file().path)}; }

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> list = {
      {"onnx", read_onnx_model, onnx_seeds}, {"opf", read_opf, opf_seeds},    {"plan", read_plan, plan_seeds},
      {"toml", read_toml, toml_seeds},       {"fir", read_fir, fir_seeds},    {"npy", read_npy_bytes, npy_seeds},
      {"npz", read_npz_bytes, npz_seeds},    {"pb", read_pb_bytes, pb_seeds}, {"cache", read_cache, cache_seeds},
  };
  return list;
}

const Reader& reader_named(std::string_view name) {
  for (const Reader& reader : readers())
    if (name == reader.name) return reader;
  throw fail(E::unknown_name, "there is no reader '{}'", name);
}

}  // namespace opfuse::readers
