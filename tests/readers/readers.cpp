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

// ---- onnx

void read_onnx(std::string_view bytes) {
  const Graph graph = read_onnx_bytes(std::string(bytes));
  verify(graph);
  write_onnx_bytes(graph);
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

// ---- plans, patterns, text graphs

void read_plan(std::string_view bytes) { to_json(plan_from_json(bytes)); }

void read_toml(std::string_view bytes) { parse_patterns(bytes, "fuzz.toml"); }

void read_fir(std::string_view bytes) { verify(parse_graph(bytes, ops())); }
// ---- arrays

void read_npy(std::string_view bytes) { parse_npy(bytes, "fuzz.npy"); }

void read_npz(std::string_view bytes) { opfuse::read_npz(MemoryFile(bytes).path()); }

void read_pb(std::string_view bytes) { read_tensor_pb(MemoryFile(bytes).path()); }

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

}  // namespace

const std::string& cache_file_path() { return cache_file().path; }

const std::vector<Reader>& readers() {
  static const std::vector<Reader> list = {
#define OPFUSE_READER(name) {#name, read_##name},
#include "readers/readers.def"
#undef OPFUSE_READER
  };
  return list;
}

const Reader& reader_named(std::string_view name) {
  for (const Reader& reader : readers())
    if (name == reader.name) return reader;
  throw fail(E::unknown_name, "there is no reader '{}'", name);
}

}  // namespace opfuse::readers
