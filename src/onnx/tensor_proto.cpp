// Tensor data in its three forms: raw bytes, typed lists, external files. The declared shape is checked against the
// bytes that are there before anything is allocated, so a file cannot claim memory it does not bring.
#include "onnx/tensor_proto.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "tensor/number.hpp"

namespace opfuse::onnx {
namespace {

namespace fs = std::filesystem;

/// The typed lists of TensorProto. Types of less than 32 bits lie in int32_data, a number each.
enum class List { floats, doubles, int32s, int64s, uint64s, strings };

struct ListRow {
  List list;
  const char* name;
  std::vector<Bytes> TensorProto::*runs;
};

constexpr ListRow kLists[] = {
    {List::floats, "float_data", &TensorProto::float_data},
    {List::doubles, "double_data", &TensorProto::double_data},
    {List::int32s, "int32_data", &TensorProto::int32_data},
    {List::int64s, "int64_data", &TensorProto::int64_data},
    {List::uint64s, "uint64_data", &TensorProto::uint64_data},
    {List::strings, "string_data", &TensorProto::string_data},
};

struct TypeRow {
  int64_t number;
  const char* name;
  DType dtype;
  List list = List::int32s;
};

constexpr TypeRow kTypes[] = {
    {1, "FLOAT", DType::f32, List::floats},
    {2, "UINT8", DType::u8},
    {3, "INT8", DType::i8},
    {4, "UINT16", DType::u16},
    {5, "INT16", DType::i16},
    {6, "INT32", DType::i32},
    {7, "INT64", DType::i64, List::int64s},
    {8, "STRING", DType::string, List::strings},
    {9, "BOOL", DType::boolean},
    {10, "FLOAT16", DType::f16},
    {11, "DOUBLE", DType::f64, List::doubles},
    {12, "UINT32", DType::u32, List::uint64s},
    {13, "UINT64", DType::u64, List::uint64s},
    {14, "COMPLEX64", DType::unknown},
    {15, "COMPLEX128", DType::unknown},
    {16, "BFLOAT16", DType::bf16},
    {17, "FLOAT8E4M3FN", DType::f8e4m3fn},
    {18, "FLOAT8E4M3FNUZ", DType::f8e4m3fnuz},
    {19, "FLOAT8E5M2", DType::f8e5m2},
    {20, "FLOAT8E5M2FNUZ", DType::f8e5m2fnuz},
    {21, "UINT4", DType::u4},
    {22, "INT4", DType::i4},
    {23, "FLOAT4E2M1", DType::f4e2m1},
    {24, "FLOAT8E8M0", DType::f8e8m0},
    {25, "UINT2", DType::u2},
    {26, "INT2", DType::i2},
};

Error bad_data(const std::string& what, std::string problem) {
  return fail(E::bad_initializer, "{} {}", what, problem)
      .hint("the file is damaged or was written by a broken exporter; export it again");
}

/// Bytes the declared type and shape need. Shapes no memory can hold are refused here.
size_t byte_count(const std::vector<int64_t>& sizes, DType dtype, const std::string& what) {
  size_t bytes = byte_size(dtype);
  bool none = false;
  for (int64_t size : sizes) {
    if (size < 0) throw fail(E::bad_dimension, "{} has a negative dimension ({})", what, size);
    none = none || size == 0;
  }
  if (none) return 0;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes) || bytes > (size_t{1} << 47))
      throw fail(E::bad_dimension, "{} has a shape of more bytes than any memory: {}", what, Shape::of(sizes).text());
  }
  return bytes;
}

size_t packed_bytes(DType dtype, size_t elements) {
  const size_t per_byte = 8 / static_cast<size_t>(bit_size(dtype));
  return elements / per_byte + (elements % per_byte != 0);
}

Tensor unpacked(DType dtype, const std::vector<int64_t>& sizes, Bytes packed) {
  Tensor tensor(dtype, sizes);
  const auto bits = static_cast<size_t>(bit_size(dtype)), per_byte = 8 / bits;
  const auto elements = static_cast<size_t>(tensor.elements());
  auto* to = static_cast<int8_t*>(tensor.mutable_data());
  for (size_t i = 0; i < elements; ++i) {
    const int code = static_cast<uint8_t>(packed[i / per_byte]) >> (i % per_byte * bits) & ((1 << bits) - 1);
    to[i] = static_cast<int8_t>(is_integer(dtype) ? wrap_to(dtype, code) : code);
  }
  return tensor;
}

template <class T>
Tensor from_list(DType dtype, const std::vector<int64_t>& sizes, const std::vector<T>& values,
                 const std::string& what) {
  const size_t wanted = byte_count(sizes, dtype, what) / byte_size(dtype);
  if (values.size() != wanted)
    throw bad_data(what, fmt::format("declares {} elements but has {}", wanted, values.size()));
  return Tensor(dtype, sizes);
}

/// Codes of narrow floats are unsigned.
bool fits(int64_t value, DType dtype) {
  const int bits = bit_size(dtype);
  if (dtype == DType::boolean) return value == 0 || value == 1;
  if (bits == 64) return true;
  const bool with_sign = is_integer(dtype) && is_signed(dtype);
  const int64_t limit = int64_t{1} << (with_sign ? bits - 1 : bits);
  return value < limit && value >= (with_sign ? -limit : 0);
}

Tensor from_bits(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& values,
                 const std::string& what) {
  Tensor tensor = from_list(dtype, sizes, values, what);
  for (int64_t value : values)
    if (!fits(value, dtype))
      throw bad_data(what, fmt::format("has the number {}, which {} cannot hold", value, name_of(dtype)));
  char* to = static_cast<char*>(tensor.mutable_data());
  const size_t width = byte_size(dtype);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(to + i * width, &values[i], width);  // little endian
  return tensor;
}

Tensor from_runs(DType dtype, const std::vector<int64_t>& sizes, const std::vector<Bytes>& runs,
                 const std::string& what) {
  std::string all;
  for (Bytes run : runs) all.append(run);
  const size_t wanted = byte_count(sizes, dtype, what);
  if (all.size() != wanted) throw bad_data(what, fmt::format("declares {} bytes but has {}", wanted, all.size()));
  Tensor tensor(dtype, sizes);
  if (wanted > 0) std::memcpy(tensor.mutable_data(), all.data(), wanted);
  return tensor;
}

/// int32_data of packed types: a byte in each number.
Tensor from_packed_list(const TensorProto& proto, DType dtype, const std::string& what) {
  const std::vector<int64_t> values = decode_varints(proto.int32_data);
  const size_t elements = byte_count(proto.dims, dtype, what), wanted = packed_bytes(dtype, elements);
  if (values.size() != wanted)
    throw bad_data(what, fmt::format("declares {} elements but has {} bytes of them", elements, values.size()));
  std::string bytes;
  for (int64_t value : values) {
    if (value < 0 || value > 255)
      throw bad_data(what, fmt::format("has the number {} where a byte is expected", value));
    bytes.push_back(static_cast<char>(value));
  }
  return unpacked(dtype, proto.dims, bytes);
}

Tensor from_typed_lists(const TensorProto& proto, DType dtype, const std::string& what) {
  if (is_packed(dtype)) return from_packed_list(proto, dtype, what);
  switch (dtype) {
    case DType::f32:
      return from_runs(dtype, proto.dims, proto.float_data, what);
    case DType::f64:
      return from_runs(dtype, proto.dims, proto.double_data, what);
    case DType::i64:
      return from_bits(dtype, proto.dims, decode_varints(proto.int64_data), what);
    case DType::u32:
    case DType::u64:
      return from_bits(dtype, proto.dims, decode_varints(proto.uint64_data), what);
    default:
      return from_bits(dtype, proto.dims, decode_varints(proto.int32_data), what);
  }
}

uint64_t number_of(Bytes text, const char* key, const std::string& what) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw fail(E::bad_external_data, "{}: external data has {} \"{}\", which is not a number", what, key, text);
  return value;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

/// The external file's path, which must lie in the folder of the model (or of the file the model links to).
fs::path external_path(Bytes location, const std::string& folder, const std::string& model, const std::string& what) {
  const fs::path relative{std::string(location)};
  const auto refuse = [&](const char* why) {
    return fail(E::bad_external_data, "{}: external data file \"{}\" {}", what, location, why)
        .hint("external data must lie in the model's folder");
  };
  if (location.empty() || location.find('\0') != Bytes::npos) throw refuse("has no usable name");
  if (relative.is_absolute()) throw refuse("is an absolute path");
  for (const fs::path& part : relative)
    if (part == "..") throw refuse("leaves the model's folder");
  std::error_code error;
  const fs::path base = folder.empty() ? fs::path(".") : fs::path(folder);
  const fs::path file = fs::canonical(base / relative, error);
  if (error) throw refuse("does not exist");
  const bool inside = is_inside(file, fs::canonical(base, error)) ||
                      (!model.empty() && is_inside(file, fs::canonical(model, error).parent_path()));
  if (error || !inside) throw refuse("is a link out of the model's folder");
  return file;
}

}  // namespace

DType dtype_of(int64_t onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.number == onnx_type) return row.dtype;
  return DType::unknown;
}

int64_t onnx_type_of(DType dtype) {
  if (dtype == DType::unknown) return 0;
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.number;
  return 0;
}

std::string onnx_type_name(int64_t onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.number == onnx_type) return row.name;
  return fmt::format("number {}", onnx_type);
}

/// A kernel may take any other byte for a number.
static void check_booleans(DType dtype, Bytes data, const std::string& what) {
  if (dtype != DType::boolean) return;
  const auto wrong = std::find_if(data.begin(), data.end(), [](char c) { return (c & ~1) != 0; });
  if (wrong != data.end())
    throw bad_data(what, fmt::format("has the byte {} where a boolean is 0 or 1", static_cast<unsigned char>(*wrong)));
}

Tensor TensorReader::wrap(DType dtype, const std::vector<int64_t>& sizes, Bytes data,
                          std::shared_ptr<const void> owner) {
  if (is_packed(dtype)) return unpacked(dtype, sizes, data);
  if (reinterpret_cast<uintptr_t>(data.data()) % byte_size(dtype) == 0 && !data.empty())
    return Tensor::wrap(dtype, sizes, data.data(), std::move(owner));
  Tensor copy(dtype, sizes);  // protobuf does not align: a typed view needs aligned storage
  if (!data.empty()) std::memcpy(copy.mutable_data(), data.data(), data.size());
  return copy;
}

/// Which of several values is meant nobody can tell, and other readers take another one.
static void check_places(const TensorProto& proto, DType dtype, const std::string& what) {
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& r) { return r.dtype == dtype; });
  std::vector<std::string> places;
  if (proto.external) places.emplace_back("an external file");
  if (proto.raw_data) places.emplace_back("raw_data");
  bool foreign = false;
  for (const ListRow& list : kLists) {
    const auto& runs = proto.*list.runs;
    if (std::all_of(runs.begin(), runs.end(), [](Bytes run) { return run.empty(); }) && list.list != List::strings)
      continue;
    if (runs.empty()) continue;
    places.emplace_back(list.name);
    foreign = foreign || list.list != row->list;
  }
  if (places.size() > 1) throw bad_data(what, fmt::format("has its data twice, in {}", fmt::join(places, " and in ")));
  if (foreign)
    throw bad_data(what,
                   fmt::format("is of type {} and has its data in {}", onnx_type_name(proto.data_type), places[0]));
  if (places.empty() && !proto.external_data.empty())
    throw bad_data(what, "names external data but is not marked as external (data_location)");
}

Tensor TensorReader::read(const TensorProto& proto, const std::string& what) {
  const DType dtype = dtype_of(proto.data_type);
  if (proto.data_type == 0) throw bad_data(what, "has no element type");
  if (dtype == DType::unknown || dtype == DType::string)
    throw fail(E::unsupported_dtype, "{} has element type {}", what, onnx_type_name(proto.data_type))
        .hint("opfuse reads floats of 4 to 64 bits, integers of 2 to 64 bits and booleans");
  if (proto.segmented) throw bad_data(what, "is stored in segments, which ONNX never defined");
  check_places(proto, dtype, what);
  const size_t elements = byte_count(proto.dims, dtype, what) / byte_size(dtype);
  const size_t bytes = is_packed(dtype) ? packed_bytes(dtype, elements) : elements * byte_size(dtype);
  if (proto.external) return read_external(proto, dtype, bytes, what);
  if (!proto.raw_data) return from_typed_lists(proto, dtype, what);
  if (proto.raw_data->size() != bytes)
    throw bad_data(what, fmt::format("declares {} ({} bytes) but has {} bytes",
                                     TensorType{dtype, Shape::of(proto.dims)}.text(), bytes, proto.raw_data->size()));
  check_booleans(dtype, *proto.raw_data, what);
  return wrap(dtype, proto.dims, *proto.raw_data, owner_);
}

Tensor TensorReader::read_external(const TensorProto& proto, DType dtype, size_t bytes, const std::string& what) {
  Bytes location;
  uint64_t offset = 0, length = bytes;
  std::set<Bytes> keys;
  for (const Entry& entry : proto.external_data) {
    if (!keys.insert(entry.key).second)
      throw fail(E::bad_external_data, "{}: external data gives \"{}\" twice", what, entry.key)
          .hint("the file was edited or written by a broken exporter; export it again");
    if (entry.key == "location") location = entry.value;
    if (entry.key == "offset") offset = number_of(entry.value, "offset", what);
    if (entry.key == "length") length = number_of(entry.value, "length", what);
  }
  const std::string path = external_path(location, folder_, model_path_, what).string();
  auto& mapping = external_[path];
  if (!mapping) mapping = MappedFile::open(path);
  const Bytes file = static_cast<const MappedFile*>(mapping.get())->bytes();
  if (length != bytes)
    throw fail(E::bad_external_data, "{} needs {} bytes but its external data has length {}", what, bytes, length);
  if (offset > file.size() || bytes > file.size() - offset)
    throw fail(E::bad_external_data, "{} lies at bytes {} to {} of \"{}\", which has {}", what, offset, offset + bytes,
               location, file.size())
        .hint("the external data file is truncated or belongs to another export of this model");
  check_booleans(dtype, file.substr(offset, bytes), what);
  return wrap(dtype, proto.dims, file.substr(offset, bytes), mapping);
}

bool is_packed(DType dtype) { return dtype != DType::boolean && bit_size(dtype) < 8; }

std::string packed(const Tensor& tensor) {
  const auto bits = static_cast<size_t>(bit_size(tensor.dtype())), per_byte = 8 / bits;
  const auto elements = static_cast<size_t>(tensor.elements());
  const auto* from = static_cast<const uint8_t*>(tensor.data());
  std::string bytes(packed_bytes(tensor.dtype(), elements), '\0');
  for (size_t i = 0; i < elements; ++i) {
    const int code = (from[i] & ((1 << bits) - 1)) << (i % per_byte * bits);
    bytes[i / per_byte] = static_cast<char>(bytes[i / per_byte] | code);
  }
  return bytes;
}

void encode_tensor(const Tensor& tensor, Bytes name, Encoder& into) {
  into.integers(1, tensor.sizes());
  into.integer(2, onnx_type_of(tensor.dtype()));
  if (!name.empty()) into.bytes(8, name);
  if (is_packed(tensor.dtype()))
    into.bytes(9, packed(tensor));
  else
    into.bytes(9, Bytes(static_cast<const char*>(tensor.data()), tensor.bytes()));
}

}  // namespace opfuse::onnx
