// .npz: a zip archive of .npy files, stored or deflated. Sizes and places come from the central directory; every read
// is checked against the file, every member against its CRC. Archives over 4 GB use the zip64 records.
#include <zlib.h>

#include <cstring>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "onnx/tensor_files.hpp"

namespace opfuse {
namespace {

constexpr uint32_t kEnd = 0x06054b50, kDirectory = 0x02014b50, kLocal = 0x04034b50, kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50, kUnknown32 = 0xffffffff;
constexpr size_t kEndSize = 22, kDirectorySize = 46, kLocalSize = 30, kLocatorSize = 20;
constexpr size_t kMaxDeflateRatio = 1032;  // what one deflate bit can at most stand for, RFC 1951

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

class Archive {
 public:
  Archive(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::vector<Member> members() const {
    const size_t end = find_end();
    uint64_t count = number<uint16_t>(end + 10), at = number<uint32_t>(end + 16);
    if ((at == kUnknown32 || count == 0xffff) && end >= kLocatorSize &&
        number<uint32_t>(end - kLocatorSize) == kEnd64Locator) {
      const uint64_t end64 = number<uint64_t>(end - kLocatorSize + 8);
      if (number<uint32_t>(end64) != kEnd64) throw damaged("its zip64 record is broken");
      count = number<uint64_t>(end64 + 32);
      at = number<uint64_t>(end64 + 48);
    }
    std::vector<Member> list;
    for (uint64_t i = 0; i < count; ++i) list.push_back(member(at));
    return list;
  }

  std::string contents(const Member& m) const {
    if (number<uint32_t>(m.offset) != kLocal) throw damaged(m.name + " is not where the directory says");
    const uint64_t start = m.offset + kLocalSize + number<uint16_t>(m.offset + 26) + number<uint16_t>(m.offset + 28);
    const std::string_view packed = part(start, m.packed);
    std::string data = m.method == 0 ? std::string(packed) : inflated(packed, m);
    if (data.size() != m.size) throw damaged(m.name + " has another size than the directory says");
    uLong crc = crc32_z(0, nullptr, 0);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(data.data()), data.size());
    if (crc != m.crc) throw damaged(m.name + " has a wrong checksum");
    return data;
  }

 private:
  Error damaged(std::string problem) const {
    return fail(E::bad_file, "\"{}\" is not a readable .npz archive: {}", path_, problem).file(path_);
  }

  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) throw damaged("it is truncated");
    return bytes_.substr(at, size);
  }

  template <class T>
  T number(uint64_t at) const {
    T value;
    std::memcpy(&value, part(at, sizeof(T)).data(), sizeof(T));
    return value;
  }

  size_t find_end() const {
    for (size_t back = kEndSize; back <= bytes_.size() && back <= kEndSize + 0xffff; ++back)
      if (number<uint32_t>(bytes_.size() - back) == kEnd) return bytes_.size() - back;
    throw damaged("it has no end record");
  }

  /// Reads one directory entry and moves `at` behind it.
  Member member(uint64_t& at) const {
    if (number<uint32_t>(at) != kDirectory) throw damaged("its directory is broken");
    Member m;
    m.method = number<uint16_t>(at + 10);
    m.crc = number<uint32_t>(at + 16);
    m.packed = number<uint32_t>(at + 20);
    m.size = number<uint32_t>(at + 24);
    m.offset = number<uint32_t>(at + 42);
    const uint16_t name = number<uint16_t>(at + 28), extra = number<uint16_t>(at + 30);
    m.name = std::string(part(at + kDirectorySize, name));
    read_zip64(part(at + kDirectorySize + name, extra), m);
    if ((number<uint16_t>(at + 8) & 1) != 0) throw damaged(m.name + " is encrypted");
    if (m.method != 0 && m.method != 8) throw damaged(fmt::format("{} uses compression method {}", m.name, m.method));
    at += kDirectorySize + name + extra + number<uint16_t>(at + 32);
    return m;
  }

  void read_zip64(std::string_view extra, Member& m) const {
    while (extra.size() >= 4) {
      uint16_t id, size;
      std::memcpy(&id, extra.data(), 2);
      std::memcpy(&size, extra.data() + 2, 2);
      if (size > extra.size() - 4) throw damaged("an extra field is broken");
      std::string_view body = extra.substr(4, size);
      for (uint64_t* field : {&m.size, &m.packed, &m.offset}) {
        if (id != 1 || *field != kUnknown32) continue;
        if (body.size() < 8) throw damaged("a zip64 field is broken");
        std::memcpy(field, body.data(), 8);
        body.remove_prefix(8);
      }
      extra.remove_prefix(4 + size);
    }
  }

  std::string inflated(std::string_view packed, const Member& m) const {
    if (m.size > packed.size() * kMaxDeflateRatio + 64) throw damaged(m.name + " claims an impossible size");
    std::string data(m.size, '\0');
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw damaged("zlib does not start");
    size_t in = 0, out = 0;
    int status = Z_OK;
    while (status == Z_OK) {
      constexpr size_t kPiece = size_t{1} << 30;
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
      stream.avail_in = static_cast<uInt>(std::min(packed.size() - in, kPiece));
      stream.next_out = reinterpret_cast<Bytef*>(data.data() + out);
      stream.avail_out = static_cast<uInt>(std::min(data.size() - out, kPiece));
      const uInt in_before = stream.avail_in, out_before = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      in += in_before - stream.avail_in;
      out += out_before - stream.avail_out;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || out != data.size()) throw damaged(m.name + " does not unpack");
    return data;
  }

  std::string_view bytes_;
  const std::string& path_;
};

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

/// The part that a local header and a directory entry share.
std::string common_header(const Member& m) {
  std::string h;
  put<uint16_t>(h, 20);  // version needed
  put<uint16_t>(h, 0);   // flags
  put<uint16_t>(h, 0);   // stored
  put<uint16_t>(h, 0);   // time
  put<uint16_t>(h, 33);  // date: 1 January 1980, so that equal tensors give equal files
  put<uint32_t>(h, m.crc);
  put<uint32_t>(h, static_cast<uint32_t>(m.size));
  put<uint32_t>(h, static_cast<uint32_t>(m.size));
  put<uint16_t>(h, static_cast<uint16_t>(m.name.size()));
  put<uint16_t>(h, 0);  // extra
  return h;
}

}  // namespace

std::vector<NamedTensor> read_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  const Archive archive(file->bytes(), path);
  std::vector<NamedTensor> tensors;
  for (const Member& m : archive.members()) {
    std::string name = m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name;
    tensors.emplace_back(std::move(name),
                         parse_npy(archive.contents(m), fmt::format("\"{}\" in \"{}\"", m.name, path)));
  }
  return tensors;
}

void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  AtomicFile file(path);
  std::string directory;
  for (const auto& [name, tensor] : tensors) {
    const std::string data = encode_npy(tensor);
    Member m{.name = name + ".npy", .size = data.size(), .offset = file.written()};
    m.crc = static_cast<uint32_t>(
        crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(data.data()), data.size()));
    if (m.offset + m.size + kLocalSize + m.name.size() >= kUnknown32)
      throw fail(E::file_write_failed, "\"{}\" would exceed 4 GB, more than a plain .npz holds", path)
          .hint("write one .npy file per tensor");
    std::string header;
    put(header, kLocal);
    file.write(header + common_header(m) + m.name);
    file.write(data);
    put(directory, kDirectory);
    put<uint16_t>(directory, 20);  // version made by
    directory += common_header(m);
    directory.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    put<uint32_t>(directory, static_cast<uint32_t>(m.offset));
    directory += m.name;
  }
  std::string end;
  put(end, kEnd);
  put<uint32_t>(end, 0);
  put<uint16_t>(end, static_cast<uint16_t>(tensors.size()));
  put<uint16_t>(end, static_cast<uint16_t>(tensors.size()));
  put<uint32_t>(end, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(end, static_cast<uint32_t>(file.written()));
  put<uint16_t>(end, 0);
  file.write(directory);
  file.write(end);
  file.commit();
}

}  // namespace opfuse
