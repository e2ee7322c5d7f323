// Hexadecimal packing of raw protobuf fields: metadata is text, and prints in dumps.
#include "onnx/metadata.hpp"

#include <charconv>

#include "base/fail.hpp"

namespace opfuse::onnx {

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (char c : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

std::string from_hex(std::string_view hex) {
  const auto digit = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw fail(E::bad_text, "kept ONNX fields are not hexadecimal: '{}'", c);
  };
  if (hex.size() % 2 != 0) throw fail(E::bad_text, "kept ONNX fields have an odd number of digits");
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) bytes.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return bytes;
}

const std::string* find_metadata(const Graph& graph, std::string_view key) {
  for (const auto& [name, value] : graph.metadata)
    if (name == key) return &value;
  return nullptr;
}

int64_t metadata_number(const Graph& graph, std::string_view key, int64_t otherwise) {
  const std::string* text = find_metadata(graph, key);
  if (!text) return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size())
    throw fail(E::bad_text, "\"{}\" of the model's metadata is \"{}\", not a number", key, *text);
  return number;
}

}  // namespace opfuse::onnx
