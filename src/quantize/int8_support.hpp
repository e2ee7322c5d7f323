// In whom a model with Q/DQ pairs is computed in codes: its modules, judged by the rules of each compiler.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/decline.hpp"
#include "fusion/plan.hpp"
#include "quantize/compiler_rules.hpp"

namespace opfuse::quantization {

/// Why a compiler with these rules does not compute a product in codes; nothing when it does.
std::optional<Decline> refuse_codes(const Node& product, const CompilerRules& rules);

struct ModuleSupport {
  std::string module, node;                                               ///< id of the plan's group, its product
  std::vector<std::pair<std::string, std::optional<Decline>>> compilers;  ///< by name; nothing: in codes
  /// Compilers of these whose sums of pairs may saturate on CPUs without VNNI (quantize/pair_codes.hpp).
  std::vector<std::string> may_saturate;
};

/// Of each product in a group of the plan; empty for a model without pairs.
std::vector<ModuleSupport> int8_support(const Graph& graph, const FusionPlan& plan,
                                        const std::vector<CompilerRules>& compilers);

/// "MODULE ConvBN@/a (/a): int8 in cpu, openvino; f32 in tensorrt [unsigned_codes: ...]"
std::string text_of(const ModuleSupport& support);

}  // namespace opfuse::quantization
