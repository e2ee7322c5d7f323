// `splat<0.5> : f32[64]` and its relatives. A short text cannot make a large allocation: splat and rand have
// a limit, and what file<> claims is compared with the file first.
#include "ir/parse_constant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/read_files.hpp"
#include "ir/constant_text.hpp"

namespace opfuse {

namespace {

constexpr int64_t kMaxMadeBytes = int64_t{1} << 30;  // splat, dense, hex, rand

template <class T>
bool read_exactly(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

class ConstantParser {
 public:
  ConstantParser(Scanner& in, const ParseOptions& options) : in_(in), options_(options) {}

  Tensor run() {
    const std::string kind = in_.word();
    if (kind != "splat" && kind != "dense" && kind != "hex" && kind != "rand" && kind != "data" && kind != "file") {
      in_.expected("splat<>, dense<>, hex<>, rand<>, data<> or file<>");
    }
    const size_t statement = in_.position();
    in_.need('<');
    std::vector<std::string> items;
    while (!in_.peek('>')) {
      items.push_back(in_.peek('"') ? in_.quoted() : std::string(in_.number()));
      if (items.back().empty()) in_.expected("a number or a quoted string");
      if (!in_.take(',')) break;
    }
    in_.need('>');
    in_.need(':');
    const TensorType t = in_.tensor_type();
    if (!t.shape.is_static()) in_.stop("a constant's dimensions are numbers");
    return in_.located(statement, [&] { return made(kind, items, t); });
  }

 private:
  Scanner& in_;
  const ParseOptions& options_;

  Tensor made(const std::string& kind, const std::vector<std::string>& items, const TensorType& t) {
    const std::vector<int64_t> sizes = t.shape.sizes();
    const size_t element = byte_size(t.dtype);
    if (t.dtype == DType::unknown) in_.stop("a constant has an element type");
    if (kind == "data") return stored(items, t);
    int64_t n = 1;
    for (int64_t size : sizes) {
      if (size < 0) in_.stop("a constant's dimensions are not negative");
      if (__builtin_mul_overflow(n, size, &n)) in_.stop("this constant is too large");
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(n, static_cast<int64_t>(element), &bytes)) in_.stop("this constant is too large");
    if (kind == "file") return from_file(items, t, bytes);
    if (kind == "dense" && element == 0 && items.empty()) return Tensor(t.dtype, sizes);
    if (element == 0) in_.stop(fmt::format("{} constants are dense<>", name_of(t.dtype)));
    if (bytes > kMaxMadeBytes)
      in_.stop(fmt::format("a constant written as {} is at most {} bytes", kind, kMaxMadeBytes));
    if (kind == "rand") {
      uint64_t seed = 0;
      if (items.size() != 1 || !read_exactly(std::string_view(items[0]), seed)) in_.stop("rand<> holds one seed");
      return random_constant(t.dtype, sizes, seed);
    }
    if (kind == "hex") return from_hex(items, t, bytes);
    return numbers(kind, items, t, n);
  }

  Tensor numbers(const std::string& kind, const std::vector<std::string>& items, const TensorType& t, int64_t n) {
    const bool splat = kind == "splat";
    const int64_t given = static_cast<int64_t>(items.size());
    if (given != (splat ? 1 : n)) in_.stop(fmt::format("{}<> holds {} values for {}", kind, given, t.text()));
    Tensor tensor(t.dtype, t.shape.sizes());
    Tensor first(t.dtype, {1});
    if (splat && !store_number(first, 0, items[0]))
      in_.stop(fmt::format("{} is not a value of type {}", items[0], name_of(t.dtype)));
    for (int64_t i = 0; i < n; ++i) {
      if (splat) {
        const size_t size = byte_size(t.dtype);
        std::copy_n(static_cast<const char*>(first.data()), size,
                    static_cast<char*>(tensor.mutable_data()) + static_cast<size_t>(i) * size);
      } else if (!store_number(tensor, i, items[static_cast<size_t>(i)])) {
        in_.stop(fmt::format("{} is not a value of type {}", items[static_cast<size_t>(i)], name_of(t.dtype)));
      }
    }
    return tensor;
  }

  Tensor from_hex(const std::vector<std::string>& items, const TensorType& t, int64_t bytes) {
    if (items.size() != 1 || static_cast<int64_t>(items[0].size()) != 2 * bytes)
      in_.stop(fmt::format("hex<> holds {} digits", 2 * bytes));
    Tensor tensor(t.dtype, t.shape.sizes());
    for (size_t i = 0; i < static_cast<size_t>(bytes); ++i) {
      uint8_t& byte = static_cast<uint8_t*>(tensor.mutable_data())[i];
      const char* from = items[0].data() + 2 * i;
      auto [end, error] = std::from_chars(from, from + 2, byte, 16);
      if (error != std::errc() || end != from + 2) in_.stop("hex<> holds hexadecimal digits");
    }
    return tensor;
  }

  Tensor stored(const std::vector<std::string>& items, const TensorType& t) {
    auto found = items.size() == 1 ? options_.data.find(items[0]) : options_.data.end();
    if (found == options_.data.end()) in_.stop("the bytes of this data<> constant are not at hand");
    if (!(found->second.type() == t)) in_.stop(fmt::format("this data<> constant is {}", found->second.type().text()));
    return found->second;
  }

  Tensor from_file(const std::vector<std::string>& items, const TensorType& t, int64_t bytes) {
    int64_t offset = 0;
    if (items.size() != 2 || !read_exactly(std::string_view(items[1]), offset) || offset < 0)
      in_.stop("file<> holds a quoted name and an offset");
    if (options_.folder.empty()) in_.stop("file<> constants need a graph that was read from a file");
    const std::filesystem::path name = items[0];
    if (name.filename() != name) in_.stop("file<> names a file beside the graph");
    const std::filesystem::path path = std::filesystem::path(options_.folder) / name;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    remember_read_file(path.string());
    if (!file) throw fail(E::file_not_found, "cannot open \"{}\"", path.string());
    const int64_t size = static_cast<int64_t>(file.tellg());
    if (offset > size || bytes > size - offset)
      in_.stop(fmt::format("\"{}\" has {} bytes, too few for this constant", items[0], size));
    Tensor tensor(t.dtype, t.shape.sizes());
    file.seekg(offset);
    file.read(static_cast<char*>(tensor.mutable_data()), bytes);
    if (!file) throw fail(E::bad_file, "cannot read \"{}\"", path.string());
    return tensor;
  }
};

}  // namespace

Tensor parse_constant(Scanner& in, const ParseOptions& options) { return ConstantParser(in, options).run(); }

}  // namespace opfuse
