// opfuse::Error as Python's opfuse.Error.
#pragma once

#include <nanobind/nanobind.h>

#include <opfuse/error.hpp>
#include <string>

namespace opfuse::python {

/// Every opfuse::Error that leaves a bound function becomes an opfuse.Error with the diagnostic's fields.
void translate_errors();

Error make_error(const char* code, const char* name, std::string message, std::string hint);
Error bad_binding(std::string message, std::string hint);

}  // namespace opfuse::python
