// .fir files. Large constants go to one .bin, each at a multiple of 64 bytes, equal ones once.
#include "ir/fir_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fail.hpp"
#include "ir/print_with.hpp"

namespace opfuse {

namespace {

constexpr int64_t kAlignment = 64;  // so that a mapped file serves vector loads

}  // namespace

void write_fir(const Graph& graph, const std::string& path, const std::string& header) {
  namespace fs = std::filesystem;
  const fs::path bin = fs::path(path).replace_extension(".bin");
  std::map<std::string, int64_t> offsets;
  std::ofstream data;
  int64_t end = 0;
  const std::string text = print_with(graph, {}, [&](const Tensor& t) {
    auto [at, fresh] = offsets.emplace(content_hash(t).hex(), end);
    if (fresh) {
      if (!data.is_open()) data.open(bin, std::ios::binary);
      data.write(static_cast<const char*>(t.data()), static_cast<std::streamsize>(t.bytes()));
      const int64_t padding = (kAlignment - static_cast<int64_t>(t.bytes()) % kAlignment) % kAlignment;
      data.write(std::string(static_cast<size_t>(padding), '\0').data(), padding);
      end += static_cast<int64_t>(t.bytes()) + padding;
    }
    return fmt::format("file<\"{}\", {}>", bin.filename().string(), at->second);
  });
  std::ofstream out(path, std::ios::binary);
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) out << "// " << line << '\n';
  out << text;
  out.close();
  if (data.is_open()) data.close();
  if (!out || data.fail()) throw fail(E::file_write_failed, "cannot write \"{}\"", path);
}

Graph read_fir(const std::string& path, const OpRegistry& registry) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw fail(E::file_not_found, "cannot open \"{}\"", path);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  try {
    return parse_graph(text.str(), registry, {.data = {}, .folder = folder.empty() ? "." : folder});
  } catch (Error& error) {
    throw error.file(path);
  }
}

}  // namespace opfuse
