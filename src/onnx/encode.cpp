// Encoding of messages, and of messages that differ in a field from one that was read.
#include <cstring>

#include "onnx/fields.hpp"

namespace opfuse::onnx {

void Encoder::varint(uint64_t value) {
  while (value >= 0x80) {
    text_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  text_.push_back(static_cast<char>(value));
}

void Encoder::integer(uint32_t tag, int64_t value) {
  varint(uint64_t{tag} << 3);
  varint(static_cast<uint64_t>(value));
}

void Encoder::real(uint32_t tag, float value) {
  varint(uint64_t{tag} << 3 | 5);
  char encoded[sizeof value];
  std::memcpy(encoded, &value, sizeof value);
  text_.append(encoded, sizeof value);
}

void Encoder::length(uint32_t tag, size_t size) {
  varint(uint64_t{tag} << 3 | 2);
  varint(size);
}

void Encoder::bytes(uint32_t tag, Bytes value) {
  length(tag, value.size());
  text_.append(value);
}

void Encoder::integers(uint32_t tag, const std::vector<int64_t>& values) {
  for (int64_t value : values) integer(tag, value);
}

void for_each_field(Bytes message, const std::function<void(uint32_t, Bytes, Bytes, int64_t)>& visit) {
  for (Fields f(message, "message"); f.next();) {
    const uint32_t tag = f.tag();
    const Bytes field = f.field();
    Bytes value;
    int64_t number = 0;
    if (f.is_bytes())
      value = f.bytes();
    else if (f.is_integer())
      number = f.integer();
    else
      f.skip();
    visit(tag, field, value, number);
  }
}

Bytes renamed_attribute(const Attribute& attribute, Bytes name, std::string& storage) {
  Encoder out;
  out.bytes(1, name);
  std::string rest;
  for (Fields f(attribute.raw, "attribute"); f.next();) {
    if (f.tag() == 1 || f.tag() == 21)
      f.skip();
    else
      f.keep(rest);
  }
  storage = out.text() + rest;
  return storage;
}

}  // namespace opfuse::onnx
