// .fir files and the .bin beside them.
#include "ir/fir_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/read_files.hpp"
#include "ir/constant_file.hpp"
#include "ir/print_with.hpp"

namespace opfuse {

namespace {

constexpr int64_t kAlignment = 64;  // so that a mapped file serves vector loads

}  // namespace

ConstantFile::ConstantFile(std::string path) : path_(std::move(path)) {}
ConstantFile::~ConstantFile() = default;

std::string ConstantFile::add(const Tensor& tensor) {
  auto [at, fresh] = offsets_.emplace(content_hash(tensor).hex(), end_);
  if (fresh) {
    if (!out_) out_ = std::make_unique<AtomicFile>(path_);
    const int64_t bytes = static_cast<int64_t>(tensor.bytes());
    const int64_t padding = (kAlignment - bytes % kAlignment) % kAlignment;
    out_->write({static_cast<const char*>(tensor.data()), static_cast<size_t>(bytes)});
    out_->write(std::string(static_cast<size_t>(padding), '\0'));
    end_ += bytes + padding;
  }
  return fmt::format("file<\"{}\", {}>", std::filesystem::path(path_).filename().string(), at->second);
}

void ConstantFile::commit() {
  if (out_) out_->commit();
  out_.reset();
}

static void write_text(const std::string& path, const std::string& header, const std::string& text) {
  std::istringstream lines(header);
  AtomicFile out(path);
  for (std::string line; std::getline(lines, line);) out.write("// " + line + '\n');
  out.write(text);
  out.commit();
}

void write_fir(const Graph& graph, const std::string& path, const std::string& header, ConstantFile& constants) {
  write_text(path, header, print_with(graph, {}, [&](const Tensor& t) { return constants.add(t); }));
}

void write_fir(const Graph& graph, const std::string& path, const std::string& header) {
  ConstantFile constants(std::filesystem::path(path).replace_extension(".bin").string());
  const std::string text = print_with(graph, {}, [&](const Tensor& t) { return constants.add(t); });
  constants.commit();  // constants without a text do no harm, a text without its constants does
  write_text(path, header, text);
}

Graph read_fir(const std::string& path, const OpRegistry& registry) {
  const auto text = file_bytes(path);
  if (!text) throw fail(E::file_not_found, "cannot open \"{}\"", path);
  remember_read_file(path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  try {
    return parse_graph(*text, registry, {.data = {}, .folder = folder.empty() ? "." : folder});
  } catch (Error& error) {
    throw error.file(path);
  }
}

}  // namespace opfuse
