// Iterating over the fields of one protobuf message with protozero. It says what protozero only asserts: a field has
// the wire type its tag demands, and a length fits its message.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "onnx/wire.hpp"
#include "opfuse/error.hpp"

namespace opfuse::onnx {

/// E::malformed_model: "`message`: `problem`".
Error broken(std::string_view message, std::string_view problem);

class Fields {
 public:
  Fields(Bytes bytes, const char* message)
      : reader_(protozero::data_view(bytes.data(), bytes.size())), message_(message) {}

  bool next();
  uint32_t tag() const { return reader_.tag(); }
  bool is_bytes() const { return reader_.wire_type() == protozero::pbf_wire_type::length_delimited; }
  bool is_integer() const { return reader_.wire_type() == protozero::pbf_wire_type::varint; }
  Bytes field() const { return field_; }  ///< tag and value, as encoded

  // Each field is consumed once, by one of these.
  int64_t integer();
  float real();
  Bytes bytes();
  Bytes run(protozero::pbf_wire_type single);  ///< a repeated number: the packed run, or the one value's own bytes
  void skip();
  void keep(std::string& unknown);  ///< skips, appending the encoded field
  [[noreturn]] void refuse(std::string_view problem) const;

 private:
  void demand(protozero::pbf_wire_type type) const;
  void check_length() const;

  protozero::pbf_reader reader_;
  const char* message_;
  const char* value_ = nullptr;
  const char* end_ = nullptr;
  Bytes field_;
};

}  // namespace opfuse::onnx
