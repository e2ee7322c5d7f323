// One case of ONNX's suite in one engine.
#pragma once

#include <string>

#include "conformance/cases.hpp"
#include "conformance/engines.hpp"
#include "opfuse/error.hpp"

namespace opfuse::conformance {

/// E03xx: opfuse says that it does not do this.
bool is_refusal(const Error& error);

/// Runs every data set of the case; "" or what differs from the expected outputs. Throws the first refusal: of the
/// reader, of an opaque node, of the engine.
std::string run_case(const Case& c, const Engine& engine);

}  // namespace opfuse::conformance
