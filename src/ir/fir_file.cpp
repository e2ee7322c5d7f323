// .fir files and the .bin beside them.
#include "ir/fir_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fail.hpp"
#include "ir/constant_file.hpp"
#include "ir/print_with.hpp"

namespace opfuse {

namespace {

constexpr int64_t kAlignment = 64;  // so that a mapped file serves vector loads

}  // namespace

std::string ConstantFile::add(const Tensor& tensor) {
  auto [at, fresh] = offsets_.emplace(content_hash(tensor).hex(), end_);
  if (fresh) {
    if (!out_.is_open()) out_.open(path_, std::ios::binary);
    const int64_t bytes = static_cast<int64_t>(tensor.bytes());
    const int64_t padding = (kAlignment - bytes % kAlignment) % kAlignment;
    out_.write(static_cast<const char*>(tensor.data()), bytes);
    out_.write(std::string(static_cast<size_t>(padding), '\0').data(), padding);
    end_ += bytes + padding;
  }
  return fmt::format("file<\"{}\", {}>", std::filesystem::path(path_).filename().string(), at->second);
}

void ConstantFile::close() {
  if (!out_.is_open()) return;
  out_.flush();
  if (out_.fail()) throw fail(E::file_write_failed, "cannot write \"{}\"", path_);
}

void write_fir(const Graph& graph, const std::string& path, const std::string& header, ConstantFile& constants) {
  const std::string text = print_with(graph, {}, [&](const Tensor& t) { return constants.add(t); });
  std::ofstream out(path, std::ios::binary);
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) out << "// " << line << '\n';
  out << text;
  out.close();
  if (!out) throw fail(E::file_write_failed, "cannot write \"{}\"", path);
  constants.close();
}

void write_fir(const Graph& graph, const std::string& path, const std::string& header) {
  ConstantFile constants(std::filesystem::path(path).replace_extension(".bin").string());
  write_fir(graph, path, header, constants);
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
