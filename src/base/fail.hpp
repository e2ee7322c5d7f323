// Making errors: `throw fail(E::channel_mismatch, "input has {} channels", c).hint("...")`.
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "opfuse/error.hpp"

namespace opfuse {

/// Error codes; the table with their documentation is error_codes.def.
enum class E {
#define OPFUSE_ERROR(code, name, doc) name,
#include "base/error_codes.def"
#undef OPFUSE_ERROR
};

struct ErrorCodeInfo {
  E id;
  const char* code;
  const char* name;
  const char* doc;
};

/// Every code, in table order. For `opfuse errors`, the documentation and the meta-tests.
std::span<const ErrorCodeInfo> error_codes();

Error make_error(E code, std::string message);

template <class... Args>
Error fail(E code, fmt::format_string<Args...> format, Args&&... args) {
  return make_error(code, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void internal_error(std::string_view condition, std::string message, std::source_location where);

/// An internal invariant; unreachable from user input.
#define OPFUSE_CHECK(condition, ...)                                                                          \
  do {                                                                                                        \
    if (!(condition))                                                                                         \
      ::opfuse::internal_error(#condition, ::fmt::format("" __VA_ARGS__), ::std::source_location::current()); \
  } while (false)

}  // namespace opfuse
