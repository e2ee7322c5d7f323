// Diagnostics: the text users see, and the table of codes behind it.
//
//   error[E0203] channel_mismatch: input has 3 channels but the weights expect 4
//     --> resnet50.onnx, node "/layer1/0/conv1/Conv" (Conv, opset 17)
//         x : f32[1,3,224,224]   graph input "input"
//     while: infer-shapes
//     hint:  weights are [out, in/group, kh, kw]
#include "base/fail.hpp"

#include <fmt/format.h>

namespace opfuse {

namespace {

constexpr ErrorCodeInfo kCodes[] = {
#define OPFUSE_ERROR(code, name, doc) {E::name, code, #name, doc},
#include "base/error_codes.def"
#undef OPFUSE_ERROR
};

void set_once(std::string& field, std::string value) {
  if (field.empty()) field = std::move(value);
}

}  // namespace

std::span<const ErrorCodeInfo> error_codes() { return kCodes; }

std::string Diagnostic::text() const {
  std::string out = name == "internal" ? fmt::format("internal error[{}]: {}", code, message)
                                       : fmt::format("error[{}] {}: {}", code, name, message);
  std::string place = file;
  if (!node.empty()) place += fmt::format("{}node \"{}\"", place.empty() ? "" : ", ", node);
  if (!op.empty()) place += fmt::format("{}({})", place.empty() ? "" : " ", op);
  if (!place.empty()) out += "\n  --> " + place;
  for (const std::string& operand : operands) out += "\n      " + operand;
  if (!during.empty()) out += "\n  while: " + during;
  if (!hint.empty()) out += "\n  hint:  " + hint;
  return out;
}

Error::Error(Diagnostic diagnostic)
    : std::runtime_error(diagnostic.message), diagnostic_(std::move(diagnostic)), text_(diagnostic_.text()) {}

Error& Error::refresh() {
  text_ = diagnostic_.text();
  return *this;
}

Error& Error::file(std::string value) { return set_once(diagnostic_.file, std::move(value)), refresh(); }
Error& Error::node(std::string value) { return set_once(diagnostic_.node, std::move(value)), refresh(); }
Error& Error::op(std::string value) { return set_once(diagnostic_.op, std::move(value)), refresh(); }
Error& Error::operand(std::string value) { return diagnostic_.operands.push_back(std::move(value)), refresh(); }
Error& Error::during(std::string value) { return set_once(diagnostic_.during, std::move(value)), refresh(); }
Error& Error::hint(std::string value) { return set_once(diagnostic_.hint, std::move(value)), refresh(); }

Error make_error(E code, std::string message) {
  const ErrorCodeInfo& info = kCodes[static_cast<size_t>(code)];
  Diagnostic diagnostic;
  diagnostic.code = info.code;
  diagnostic.name = info.name;
  diagnostic.message = std::move(message);
  return Error(std::move(diagnostic));
}

void internal_error(std::string_view condition, std::string message, std::source_location where) {
  std::string_view file = where.file_name();
  if (size_t at = file.rfind("src/"); at != std::string_view::npos) file.remove_prefix(at);
  std::string what = message.empty() ? fmt::format("`{}` does not hold", condition)
                                     : fmt::format("{} (`{}` does not hold)", message, condition);
  throw make_error(E::internal, fmt::format("{} at {}:{}", what, file, where.line()));
}

}  // namespace opfuse
