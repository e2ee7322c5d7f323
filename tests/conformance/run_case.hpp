// One case of ONNX's suite in one engine.
#pragma once

#include <string>

#include "conformance/cases.hpp"
#include "conformance/engines.hpp"
#include "opfuse/error.hpp"

namespace opfuse::conformance {

/// E03xx: opfuse says that it does not do this.
bool is_refusal(const Error& error);

struct CaseResult {
  std::string wrong{};  ///< what differs from the expected outputs; "": nothing
  /// The first expected value that is itself further from the exact result than the tolerance, by rounding noise of the
  /// largest value, where ours is within it; "": none.
  std::string off{};
};

/// Runs every data set of the case. Throws the first refusal: of the reader, of an opaque node, of the engine.
CaseResult run_case(const Case& c, const Engine& engine);

/// Elements of an output that differ from their expected value by more than the tolerance, judged against the exact
/// result in doubles.
CaseResult judge_differences(const Tensor& got, const Tensor& want, const Tensor& exact, double rtol, double atol);

}  // namespace opfuse::conformance
