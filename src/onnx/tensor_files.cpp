// .npy, .pb and the choice by extension. An .npy file is "\x93NUMPY", a version, the length of a header, the header (a
// Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }) and the elements.
#include "onnx/tensor_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "onnx/tensor_proto.hpp"

namespace opfuse {
namespace {

struct NpyType {
  std::string_view descr;  ///< kind and width, without byte order
  DType dtype;
};

constexpr NpyType kNpyTypes[] = {{"f4", DType::f32}, {"f8", DType::f64}, {"f2", DType::f16}, {"i1", DType::i8},
                                 {"u1", DType::u8},  {"i2", DType::i16}, {"u2", DType::u16}, {"i4", DType::i32},
                                 {"u4", DType::u32}, {"i8", DType::i64}, {"u8", DType::u64}, {"b1", DType::boolean}};

Error bad(const std::string& what, std::string problem) {
  return fail(E::bad_file, "{} is not a readable .npy array: {}", what, problem);
}

struct NpyHeader {
  DType dtype = DType::unknown;
  bool big_endian = false;
  bool fortran = false;
  std::vector<int64_t> sizes;
};

/// The text behind 'key': up to where `ends` says.
std::string_view field(std::string_view header, std::string_view key, const std::string& what) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) throw bad(what, fmt::format("its header lacks {}", key));
  std::string_view rest = header.substr(at + key.size());
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) throw bad(what, "its header is broken");
  rest.remove_prefix(colon + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

void parse_descr(std::string_view text, NpyHeader& header, const std::string& what) {
  if (text.size() < 4 || (text[0] != '\'' && text[0] != '"')) throw bad(what, "its element type is a structure");
  const size_t end = text.find(text[0], 1);
  if (end == std::string_view::npos || end < 3) throw bad(what, "its element type is broken");
  const std::string_view descr = text.substr(1, end - 1);
  header.big_endian = descr[0] == '>';
  for (const NpyType& type : kNpyTypes)
    if (descr.substr(1) == type.descr) header.dtype = type.dtype;
  if (header.dtype == DType::unknown)
    throw fail(E::bad_file, "{} has element type \"{}\"", what, descr)
        .hint("convert it with .astype(...) to floats, integers or booleans of up to 64 bits");
}

void parse_shape(std::string_view text, NpyHeader& header, const std::string& what) {
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) throw bad(what, "its shape is broken");
  text = text.substr(1, end - 1);
  while (!text.empty()) {
    if (text[0] == ' ' || text[0] == ',') {
      text.remove_prefix(1);
      continue;
    }
    int64_t size = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{} || size < 0) throw bad(what, "its shape is broken");
    header.sizes.push_back(size);
    text.remove_prefix(static_cast<size_t>(at - text.data()));
  }
}

/// Splits `bytes` into the parsed header and the elements.
NpyHeader parse_header(std::string_view& bytes, const std::string& what) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") throw bad(what, "it does not begin with \\x93NUMPY");
  const bool wide = bytes[6] >= 2;
  const size_t start = wide ? 12 : 10;
  uint32_t length = 0;
  if (bytes.size() < start) throw bad(what, "it is truncated");
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  if (bytes.size() - start < length) throw bad(what, "it is truncated");
  const std::string_view text = bytes.substr(start, length);
  NpyHeader header;
  parse_descr(field(text, "'descr'", what), header, what);
  header.fortran = field(text, "'fortran_order'", what).starts_with("True");
  parse_shape(field(text, "'shape'", what), header, what);
  bytes.remove_prefix(start + length);
  return header;
}

void swap_bytes(Tensor& tensor) {
  const size_t width = byte_size(tensor.dtype());
  char* data = static_cast<char*>(tensor.mutable_data());
  for (size_t at = 0; at + width <= tensor.bytes(); at += width) std::reverse(data + at, data + at + width);
}

/// Column-major elements of `sizes` into row-major order.
Tensor from_fortran(const Tensor& columns, const std::vector<int64_t>& sizes) {
  Tensor rows(columns.dtype(), sizes);
  const size_t width = byte_size(columns.dtype());
  std::vector<int64_t> index(sizes.size(), 0);
  for (int64_t i = 0; i < rows.elements(); ++i) {
    int64_t at = 0;
    for (size_t d = sizes.size(); d-- > 0;) at = at * sizes[d] + index[d];
    std::memcpy(static_cast<char*>(rows.mutable_data()) + static_cast<size_t>(i) * width,
                static_cast<const char*>(columns.data()) + static_cast<size_t>(at) * width, width);
    for (size_t d = sizes.size(); d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
  return rows;
}

Tensor tensor_of_proto(std::string_view bytes, const std::string& path, std::string& name) {
  try {
    const onnx::TensorProto proto = onnx::parse_tensor(bytes);
    name = std::string(proto.name);
    if (proto.external) throw fail(E::bad_file, "it refers to an external data file");
    return onnx::TensorReader(nullptr, {}, {}).read(proto, "it").clone();
  } catch (const Error& error) {
    throw fail(E::bad_file, "\"{}\" is not a readable ONNX tensor: {}", path, error.diagnostic().message).file(path);
  }
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& what) {
  NpyHeader header = parse_header(bytes, what);
  size_t wanted = byte_size(header.dtype);
  for (int64_t size : header.sizes)
    if (__builtin_mul_overflow(wanted, static_cast<size_t>(size), &wanted)) throw bad(what, "its shape is too large");
  if (bytes.size() != wanted)
    throw bad(what, fmt::format("its shape needs {} bytes but it has {}", wanted, bytes.size()));
  Tensor tensor(header.dtype, header.sizes);
  if (wanted > 0) std::memcpy(tensor.mutable_data(), bytes.data(), wanted);
  if (header.big_endian) swap_bytes(tensor);
  return header.fortran && header.sizes.size() > 1 ? from_fortran(tensor, header.sizes) : tensor;
}

std::string encode_npy(const Tensor& tensor) {
  if (is_small_float(tensor.dtype()) && tensor.dtype() != DType::f16) return encode_npy(tensor.cast(DType::f32));
  if (is_integer(tensor.dtype()) && bit_size(tensor.dtype()) < 8)
    return encode_npy(tensor.cast(is_signed(tensor.dtype()) ? DType::i8 : DType::u8));
  std::string_view descr;
  for (const NpyType& type : kNpyTypes)
    if (type.dtype == tensor.dtype()) descr = type.descr;
  OPFUSE_CHECK(!descr.empty(), "tensor of type {}", name_of(tensor.dtype()));
  std::string shape;
  for (int64_t size : tensor.sizes()) shape += fmt::format("{}, ", size);
  if (shape.size() > 2 && tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   byte_size(tensor.dtype()) == 1 ? '|' : '<', descr, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');  // elements begin at a multiple of 64
  header.push_back('\n');
  std::string file("\x93NUMPY\x01\x00", 8);
  file.push_back(static_cast<char>(header.size() & 255));
  file.push_back(static_cast<char>(header.size() >> 8));
  file += header;
  file.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  return file;
}

Tensor read_npy(const std::string& path) {
  return parse_npy(MappedFile::open(path)->bytes(), fmt::format("\"{}\"", path));
}

void write_npy(const std::string& path, const Tensor& tensor) {
  AtomicFile file(path);
  file.write(encode_npy(tensor));
  file.commit();
}

NamedTensor read_tensor_pb(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::string name;
  Tensor tensor = tensor_of_proto(file->bytes(), path, name);
  return {std::move(name), std::move(tensor)};
}

void write_tensor_pb(const std::string& path, const Tensor& tensor, std::string_view name) {
  onnx::Encoder encoded;
  onnx::encode_tensor(tensor, name, encoded);
  AtomicFile file(path);
  file.write(encoded.text());
  file.commit();
}

std::vector<NamedTensor> read_tensor_file(const std::string& path) {
  if (path.ends_with(".npy")) return {{"", read_npy(path)}};
  if (path.ends_with(".npz")) return read_npz(path);
  if (path.ends_with(".pb")) return {read_tensor_pb(path)};
  throw fail(E::bad_option, "\"{}\" is not a tensor file", path).hint("the formats are .npy, .npz and ONNX tensor .pb");
}

}  // namespace opfuse
