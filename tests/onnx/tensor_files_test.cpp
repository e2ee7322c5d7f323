// .npy, .npz and .pb: what is written reads back; what NumPy writes reads; what is damaged is refused.
#include "onnx/tensor_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "opfuse/error.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::test {
namespace {

using testing::HasSubstr;

constexpr DType kAll[] = {DType::f32, DType::f64, DType::f16, DType::i8,  DType::u8,  DType::i16,
                          DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean};

Tensor counting(DType dtype, std::vector<int64_t> sizes) {
  Tensor t(dtype, std::move(sizes));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_integer(i, dtype == DType::boolean ? i % 2 : i);
  return t;
}

std::string name_of_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diagnostic().name;
  }
  return "";
}

std::string npy(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file.push_back(static_cast<char>(header.size()));
  file.push_back(0);
  return file + header + data;
}

TEST(Npy, EveryTypeAndRankComesBack) {
  TemporaryFolder folder;
  for (DType dtype : kAll)
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {0, 4}, {1, 2, 3, 4}}) {
      const Tensor t = counting(dtype, sizes);
      write_npy(folder.path("t.npy"), t);
      const Tensor back = read_npy(folder.path("t.npy"));
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back.sizes(), sizes);
      EXPECT_TRUE(t.same_bits(back));
    }
}

TEST(Npy, TheElementsAreAlignedTo64Bytes) {
  for (int rank = 0; rank < 6; ++rank) {
    const Tensor t = counting(DType::f32, std::vector<int64_t>(static_cast<size_t>(rank), 1));
    EXPECT_EQ((encode_npy(t).size() - 4) % 64, 0u);
  }
}

TEST(Npy, ReadsColumnMajorAndBigEndianArrays) {
  const std::string data("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  const Tensor t = parse_npy(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", data), "it");
  EXPECT_EQ(t.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(t.to_i64(), (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
}

TEST(Npy, RefusesDamage) {
  const std::string good = encode_npy(counting(DType::f32, {2, 3}));
  EXPECT_EQ(parse_npy(good, "it").real(5), 5);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(name_of_error([&] { parse_npy(good.substr(0, size), "it"); }), "bad_file") << size;
  for (const char* header : {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }",
                             "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
                             "{'descr': '<f4'}", "{}", "'descr'", "'descr':"})
    EXPECT_EQ(name_of_error([&] { parse_npy(npy(header, "1234"), "it"); }), "bad_file") << header;
}

TEST(Npz, NamesAndTensorsComeBack) {
  TemporaryFolder folder;
  const std::vector<NamedTensor> tensors = {{"a", counting(DType::f32, {2, 3})}, {"b/c", counting(DType::i64, {7})}};
  write_npz(folder.path("t.npz"), tensors);
  const auto back = read_npz(folder.path("t.npz"));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].first, "b/c");
  EXPECT_TRUE(back[0].second.same_bits(tensors[0].second));
  EXPECT_TRUE(back[1].second.same_bits(tensors[1].second));
}

/// A stored archive as write_npz makes it, its one member deflated instead.
std::string deflated(const std::string& stored, const std::string& npy_bytes) {
  std::string packed(compressBound(npy_bytes.size()), '\0');
  z_stream s{};
  deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(npy_bytes.data()));
  s.avail_in = static_cast<uInt>(npy_bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(packed.data());
  s.avail_out = static_cast<uInt>(packed.size());
  deflate(&s, Z_FINISH);
  packed.resize(packed.size() - s.avail_out);
  deflateEnd(&s);
  std::string zip = stored;
  const size_t data = 30 + zip[26], directory = data + npy_bytes.size();
  const auto size = static_cast<uint32_t>(packed.size());
  zip[8] = zip[directory + 10] = 8;
  std::memcpy(&zip[18], &size, 4);
  std::memcpy(&zip[directory + 20], &size, 4);
  const auto at = static_cast<uint32_t>(data + packed.size());
  std::memcpy(&zip[zip.size() - 6], &at, 4);
  return zip.replace(data, npy_bytes.size(), packed);
}

TEST(Npz, ReadsDeflatedMembers) {
  TemporaryFolder folder;
  const Tensor t = counting(DType::f32, {100});
  write_npz(folder.path("t.npz"), {{"x", t}});
  const std::string zip = deflated(folder.read("t.npz"), encode_npy(t));
  const auto back = read_npz(folder.write("d.npz", zip));
  ASSERT_EQ(back.size(), 1u);
  EXPECT_TRUE(back[0].second.same_bits(t));
}

TEST(Npz, RefusesDamage) {
  TemporaryFolder folder;
  const Tensor t = counting(DType::f32, {20});
  write_npz(folder.path("t.npz"), {{"x", t}, {"y", t}});
  const std::string good = folder.read("t.npz"), packed = deflated(
                                                     [&] {
                                                       write_npz(folder.path("u.npz"), {{"x", t}});
                                                       return folder.read("u.npz");
                                                     }(),
                                                     encode_npy(t));
  for (size_t size = 0; size < good.size(); size += size + 24 < good.size() ? 19 : 1)  // all ends of the end record
    EXPECT_EQ(name_of_error([&] { read_npz(folder.write("cut.npz", good.substr(0, size))); }), "bad_file") << size;
  int refused = 0;
  for (const std::string& file : {good, packed})
    for (size_t at = 0; at < file.size(); at += at < 128 || at + 200 > file.size() ? 1 : 9) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      const std::string name = name_of_error([&] { read_npz(folder.write("bad.npz", changed)); });
      EXPECT_TRUE(name.empty() || name == "bad_file") << at << " " << name;
      refused += name.empty() ? 0 : 1;
    }
  EXPECT_GT(refused, 150);
}

TEST(TensorPb, EveryTypeComesBackWithItsName) {
  TemporaryFolder folder;
  for (DType dtype : kAll) {
    const Tensor t = counting(dtype, {2, 3});
    write_tensor_pb(folder.path("t.pb"), t, "name");
    const auto [name, back] = read_tensor_pb(folder.path("t.pb"));
    EXPECT_EQ(name, "name");
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_TRUE(t.same_bits(back));
  }
}

TEST(TensorPb, RefusesDamage) {
  TemporaryFolder folder;
  write_tensor_pb(folder.path("t.pb"), counting(DType::f32, {2, 3}), "name");
  const std::string good = folder.read("t.pb");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(name_of_error([&] { read_tensor_pb(folder.write("cut.pb", good.substr(0, size))); }), "bad_file") << size;
}

TEST(TensorFile, IsChosenByExtension) {
  TemporaryFolder folder;
  const Tensor t = counting(DType::i32, {3});
  write_npy(folder.path("t.npy"), t);
  EXPECT_TRUE(read_tensor_file(folder.path("t.npy")).at(0).second.same_bits(t));
  EXPECT_EQ(name_of_error([&] { read_tensor_file(folder.path("t.txt")); }), "bad_option");
  EXPECT_EQ(name_of_error([&] { read_tensor_file(folder.path("missing.npy")); }), "file_not_found");
}

}  // namespace
}  // namespace opfuse::test
