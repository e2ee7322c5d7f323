// The header of a .npy file is a Python dictionary in text form: {'descr': '<f4', 'fortran_order': False, 'shape': (1,
// 3), } padded with spaces to a multiple of 64. The reader takes exactly what numpy writes and refuses the rest.
#include "npy.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace bench {
namespace {

using opfuse::DType;

struct Kind {
  DType dtype;
  const char* descr;
  size_t size;
};

constexpr Kind kKinds[] = {
    {DType::f32, "<f4", 4}, {DType::f64, "<f8", 8}, {DType::f16, "<f2", 2}, {DType::i64, "<i8", 8},
    {DType::i32, "<i4", 4}, {DType::i16, "<i2", 2}, {DType::i8, "|i1", 1},  {DType::u8, "|u1", 1},
    {DType::u16, "<u2", 2}, {DType::u32, "<u4", 4}, {DType::u64, "<u8", 8}, {DType::boolean, "|b1", 1},
};

constexpr char kMagic[] = "\x93NUMPY\x01";
constexpr size_t kPrefix = 10;  // magic, version, 16-bit header length

std::string field(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) throw std::runtime_error("no '" + key + "' in the header");
  const size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
  const size_t end = header[begin] == '(' ? header.find(')', begin) : header.find(',', begin);
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("malformed header");
  return header.substr(begin, end - begin);
}

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> result;
  for (size_t at = text.find_first_of("0123456789"); at != std::string::npos;) {
    size_t used = 0;
    result.push_back(std::stoll(text.substr(at), &used));
    at = text.find_first_of("0123456789", at + used);
  }
  return result;
}

Array parse(const std::string& file) {
  if (file.size() < kPrefix || file.compare(0, sizeof kMagic - 1, kMagic, sizeof kMagic - 1) != 0)
    throw std::runtime_error("not a .npy file of version 1");
  const size_t length = static_cast<unsigned char>(file[8]) | static_cast<unsigned char>(file[9]) << 8;
  if (file.size() < kPrefix + length) throw std::runtime_error("truncated header");
  const std::string header = file.substr(kPrefix, length);
  if (field(header, "fortran_order") != "False") throw std::runtime_error("not in C order");
  Array array;
  size_t bytes = 0;
  const std::string descr = field(header, "descr");
  for (const Kind& kind : kKinds) {
    if (descr != "'" + std::string(kind.descr) + "'") continue;
    array.dtype = kind.dtype;
    bytes = kind.size;
  }
  if (bytes == 0) throw std::runtime_error("element type " + descr + " is not supported");
  array.shape = numbers(field(header, "shape"));
  for (int64_t dim : array.shape) bytes *= static_cast<size_t>(dim);
  if (file.size() - kPrefix - length != bytes) throw std::runtime_error("size does not match the shape");
  array.bytes.assign(file.begin() + static_cast<std::ptrdiff_t>(kPrefix + length), file.end());
  return array;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (int64_t dim : shape) text += std::to_string(dim) + ",";
  return text + ")";
}

}  // namespace

size_t element_size(DType dtype) {
  for (const Kind& kind : kKinds)
    if (kind.dtype == dtype) return kind.size;
  return 0;
}

Array read_npy(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error(path + ": cannot be read");
  try {
    return parse(std::string(std::istreambuf_iterator<char>(stream), {}));
  } catch (const std::exception& problem) {
    throw std::runtime_error(path + ": " + problem.what());
  }
}

void write_npy(const std::string& path, const opfuse::ArrayView& array) {
  const char* descr = nullptr;
  size_t bytes = element_size(array.dtype);
  for (const Kind& kind : kKinds)
    if (kind.dtype == array.dtype) descr = kind.descr;
  if (descr == nullptr) throw std::runtime_error(path + ": element type is not supported");
  for (int64_t dim : array.shape) bytes *= static_cast<size_t>(dim);
  std::string header =
      std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': " + shape_text(array.shape) + ", }";
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  std::string prefix(kMagic, sizeof kMagic - 1);
  prefix += '\0';
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  std::ofstream stream(path, std::ios::binary);
  stream << prefix << header;
  stream.write(static_cast<const char*>(array.data), static_cast<std::streamsize>(bytes));
  if (!stream.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace bench
