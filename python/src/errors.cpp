// opfuse::Error as Python's opfuse.Error. The class itself is written in Python (opfuse/_error.py), where its fields
// have types.
#include "errors.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace opfuse::python {

static void set_python_error(const Diagnostic& d) {
  const nb::object type = nb::module_::import_("opfuse._error").attr("Error");
  nb::list operands;
  for (const std::string& operand : d.operands) operands.append(nb::str(operand.c_str()));
  nb::dict fields;
  fields["code"] = d.code, fields["name"] = d.name, fields["file"] = d.file, fields["node"] = d.node;
  fields["op"] = d.op, fields["operands"] = operands, fields["during"] = d.during, fields["hint"] = d.hint;
  fields["text"] = d.text();
  const nb::object error = type(d.message, **fields);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate_errors() {
  nb::register_exception_translator(
      [](const std::exception_ptr& pending, void*) {
        try {
          std::rethrow_exception(pending);
        } catch (const Error& error) {
          set_python_error(error.diagnostic());
        }
      },
      nullptr);
}

Error make_error(const char* code, const char* name, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.name = name;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return Error(std::move(diagnostic));
}

Error bad_binding(std::string message, std::string hint) {
  return make_error("E0602", "bad_binding", std::move(message), std::move(hint));
}

}  // namespace opfuse::python
