// .npz: a zip archive of .npy files, stored or deflated, read and written by minizip (zlib's own, zip64 and checksums
// included). What minizip does not judge is judged here: encryption, methods, and sizes that no archive of this length
// can hold, so that a small file cannot ask for all memory.
#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "base/read_files.hpp"
#include "onnx/tensor_files.hpp"

namespace opfuse {
namespace {

constexpr size_t kMaxDeflateRatio = 1032;  // what one deflate bit can at most stand for, RFC 1951
constexpr size_t kEndSize = 22;
constexpr size_t kPiece = size_t{1} << 30;   // lengths of minizip's calls are 32-bit
constexpr uLong kDate = 33 << 16;            // 1 January 1980 in DOS's form: equal tensors give equal files
constexpr uint64_t kMinZip64 = 0xffff0000u;  // members of that size have 64-bit lengths

Error damaged(const std::string& path, const std::string& problem) {
  return fail(E::bad_file, "\"{}\" is not a readable .npz archive: {}", path, problem).file(path);
}

struct Member {
  std::string name;
  uint64_t size = 0;
};

/// The entry that `zip` stands at.
Member current_member(unzFile zip, size_t file_size, const std::string& path) {
  unz_file_info64 info;
  if (unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK)
    throw damaged(path, "its directory is broken");
  Member member{std::string(info.size_filename, '\0'), info.uncompressed_size};
  if (unzGetCurrentFileInfo64(zip, &info, member.name.data(), info.size_filename, nullptr, 0, nullptr, 0) != UNZ_OK)
    throw damaged(path, "its directory is broken");
  if ((info.flag & 1) != 0) throw damaged(path, member.name + " is encrypted");
  if (info.compression_method != 0 && info.compression_method != Z_DEFLATED)
    throw damaged(path, fmt::format("{} uses compression method {}", member.name, info.compression_method));
  if (info.compressed_size > file_size || member.size > info.compressed_size * kMaxDeflateRatio + 64)
    throw damaged(path, member.name + " claims an impossible size");
  return member;
}

std::string contents(unzFile zip, const Member& member, const std::string& path) {
  if (unzOpenCurrentFile(zip) != UNZ_OK) throw damaged(path, member.name + " is not where the directory says");
  std::string data(member.size, '\0');
  for (size_t at = 0; at < data.size();) {
    const auto piece = static_cast<unsigned>(std::min(data.size() - at, kPiece));
    const int got = unzReadCurrentFile(zip, data.data() + at, piece);
    if (got <= 0) throw damaged(path, member.name + " does not unpack");
    at += static_cast<size_t>(got);
  }
  char more;
  if (unzReadCurrentFile(zip, &more, 1) != 0) throw damaged(path, member.name + " does not unpack");
  if (unzCloseCurrentFile(zip) != UNZ_OK) throw damaged(path, member.name + " has a wrong checksum");
  return data;
}

void add_member(zipFile zip, const std::string& name, const std::string& data, const std::string& path) {
  zip_fileinfo info{};
  info.dosDate = kDate;
  const int wide = data.size() >= kMinZip64 ? 1 : 0;
  bool ok = zipOpenNewFileInZip64(zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0, wide) == ZIP_OK;
  for (size_t at = 0; ok && at < data.size(); at += kPiece) {
    const auto piece = static_cast<unsigned>(std::min(data.size() - at, kPiece));
    ok = zipWriteInFileInZip(zip, data.data() + at, piece) == ZIP_OK;
  }
  if (!ok || zipCloseFileInZip(zip) != ZIP_OK) throw fail(E::file_write_failed, "cannot write to \"{}\"", path);
}

}  // namespace

std::vector<NamedTensor> read_npz(const std::string& path) {
  const auto file = MappedFile::open(path);  // says what is wrong with the path
  const size_t size = file->bytes().size(), end = file->bytes().rfind("PK\5\6");
  // minizip reads zeros where the file ends: an archive cut in its end record would be an empty one.
  if (end == std::string_view::npos || size - end < kEndSize) throw damaged(path, "it is truncated");
  const std::unique_ptr<void, int (*)(void*)> zip(unzOpen64(path.c_str()), unzClose);
  if (!zip) throw damaged(path, "it has no directory");
  unz_global_info64 info;
  if (unzGetGlobalInfo64(zip.get(), &info) != UNZ_OK) throw damaged(path, "its directory is broken");
  std::vector<NamedTensor> tensors;
  for (uint64_t i = 0; i < info.number_entry; ++i) {
    if ((i == 0 ? unzGoToFirstFile(zip.get()) : unzGoToNextFile(zip.get())) != UNZ_OK)
      throw damaged(path, "its directory is broken");
    const Member member = current_member(zip.get(), size, path);
    std::string name = member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
    tensors.emplace_back(std::move(name), parse_npy(contents(zip.get(), member, path),
                                                    fmt::format("\"{}\" in \"{}\"", member.name, path)));
  }
  return tensors;
}

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  if (const std::string input = read_as(path); !input.empty())
    throw fail(E::bad_option, "writing \"{}\" would replace the input \"{}\"", path, input)
        .hint("name another file to write");
  const std::string part = path + ".part";  // renamed when it is complete
  try {
    const zipFile zip = zipOpen64(part.c_str(), APPEND_STATUS_CREATE);
    if (!zip) throw fail(E::file_write_failed, "cannot write to \"{}\"", path);
    std::unique_ptr<void, int (*)(void*)> closed(zip, [](void* file) { return zipClose(file, nullptr); });
    for (const auto& [name, tensor] : tensors) add_member(zip, name + ".npy", encode_npy(tensor), path);
    if (zipClose(closed.release(), nullptr) != ZIP_OK) throw fail(E::file_write_failed, "cannot write to \"{}\"", path);
    std::filesystem::rename(part, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

}  // namespace opfuse
