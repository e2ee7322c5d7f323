// Every protozero exception becomes an Error that names the message it happened in.
#include "onnx/fields.hpp"

#include "base/fail.hpp"

namespace opfuse::onnx {

using protozero::pbf_wire_type;

namespace {

template <class F>
auto guarded(const char* message, F&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const protozero::exception&) {  // whose words are about protobuf, not about models
    throw broken(message, "its bytes are not those of a protobuf message");
  }
}

}  // namespace

Error broken(std::string_view message, std::string_view problem) {
  return fail(E::malformed_model, "{}: {}", message, problem)
      .hint("the file is truncated or not an ONNX model; export or download it again");
}

bool Fields::next() {
  const char* begin = reader_.data().data();
  return guarded(message_, [&] {
    if (!reader_.next()) return false;
    value_ = reader_.data().data();
    check_length();
    protozero::pbf_reader after = reader_;
    after.skip();
    end_ = after.data().data();
    field_ = Bytes(begin, static_cast<size_t>(end_ - begin));
    return true;
  });
}

int64_t Fields::integer() {
  demand(pbf_wire_type::varint);
  return guarded(message_, [&] { return reader_.get_int64(); });
}

float Fields::real() {
  demand(pbf_wire_type::fixed32);
  return guarded(message_, [&] { return reader_.get_float(); });
}

Bytes Fields::bytes() {
  demand(pbf_wire_type::length_delimited);
  return guarded(message_, [&] {
    const protozero::data_view view = reader_.get_view();
    return Bytes(view.data(), view.size());
  });
}

Bytes Fields::run(pbf_wire_type single) {
  if (is_bytes()) return bytes();
  demand(single);
  skip();
  return {value_, static_cast<size_t>(end_ - value_)};
}

void Fields::skip() {
  guarded(message_, [&] {
    reader_.skip();
    return 0;
  });
}

void Fields::keep(std::string& unknown) {
  skip();
  unknown.append(field_);
}

void Fields::refuse(std::string_view problem) const { throw broken(message_, problem); }

void Fields::demand(pbf_wire_type type) const {
  if (reader_.wire_type() != type)
    throw broken(message_, fmt::format("field {} has wire type {}, expected {}", reader_.tag(),
                                       static_cast<int>(reader_.wire_type()), static_cast<int>(type)));
}

/// protozero reads lengths as 32 bits; a longer one must not be taken modulo 2^32.
void Fields::check_length() const {
  if (!is_bytes()) return;
  const char* at = value_;
  const char* end = value_ + reader_.length();
  const uint64_t length = protozero::decode_varint(&at, end);
  if (length > static_cast<uint64_t>(end - at))
    throw broken(message_, fmt::format("field {} claims {} bytes but {} are left", reader_.tag(), length, end - at));
}

}  // namespace opfuse::onnx
