// The one exception type of opfuse, and the diagnostic it carries.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "opfuse/export.hpp"

namespace opfuse {

/// What went wrong, where, and what the user can do about it.
struct Diagnostic {
  std::string code;                   ///< stable, e.g. "E0203"
  std::string name;                   ///< stable, e.g. "channel_mismatch"
  std::string message;                ///< one sentence, no trailing full stop
  std::string file;                   ///< model file, empty when unknown
  std::string node;                   ///< source node name, empty when none
  std::string op;                     ///< e.g. "Conv, opset 17"
  std::vector<std::string> operands;  ///< e.g. "x : f32[1,3,224,224]  graph input"
  std::string during;                 ///< e.g. "infer-shapes"
  std::string hint;                   ///< what to do

  /// The whole diagnostic as several lines of text ("error[E0203] channel_mismatch: ...").
  OPFUSE_API std::string text() const;
};

/// Thrown when a model, an option or a device makes it impossible to go on. "Does not match" and
/// "not profitable" are never errors.
class OPFUSE_API Error : public std::runtime_error {
 public:
  explicit Error(Diagnostic diagnostic);

  const Diagnostic& diagnostic() const { return diagnostic_; }
  const char* what() const noexcept override { return text_.c_str(); }

  // Fluent completion: `throw fail(E::x, "...").node(name).hint("...")`. A field that is already
  // set is kept, so outer frames may offer what inner frames did not know.
  Error& file(std::string value);
  Error& node(std::string value);
  Error& op(std::string value);
  Error& operand(std::string value);
  Error& during(std::string value);
  Error& hint(std::string value);

 private:
  Error& refresh();
  Diagnostic diagnostic_;
  std::string text_;
};

}  // namespace opfuse
