// Where Q/DQ pairs stand: the points of a plan's modules, one pair per tensor, and the products whose weights become
// codes. What stays in floating point is listed with the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "fusion/plan.hpp"
#include "quantize/compiler_rules.hpp"

namespace opfuse::quantization {

/// A tensor with a pair, which `readers` read behind it; others read the float tensor. Values and nodes by id: clones
/// of the graph keep ids.
struct PlacedTensor {
  std::string tensor;
  int value = 0;
  std::vector<int> readers;          ///< nodes
  std::vector<std::string> modules;  ///< ids of the plan's groups that declared a point on it
  bool result = false;               ///< not a point of the plan: this compiler asks for pairs on results
  bool shared = false;               ///< not a point either: the operand of a concat that joins codes
};

/// A convolution or matrix product with constant weights, or the composite that holds some.
struct PlacedProduct {
  int node = 0;
  std::string name, module;
};

struct LeftModule {
  std::string id, module;  ///< of the plan's group; of a product outside of groups its node and nothing
  Decline reason;
};

struct Placement {
  std::vector<PlacedTensor> tensors;  ///< in topological order
  std::vector<PlacedProduct> products;
  std::vector<LeftModule> left;   ///< modules with points, and products without, in floating point
  std::vector<LeftModule> given;  ///< modules that the model brings quantised: their scales stay
  size_t points = 0;              ///< declared by the modules that are quantised

  const PlacedTensor* find(int value) const;
};

struct PlacementRequest {
  CompilerRules rules;
  std::vector<std::string> presets;  ///< kept in float
  bool target_leaves = true;         ///< also what [[quantize.leave]] of the target's file names
  std::vector<std::string> skip;     ///< a pattern, an operator, a node, or PATTERN@NODE: kept in float
  std::vector<std::string> only;     ///< all others are kept in float; empty: none
  /// A Linear K -> N is quantised where K N / (K + N) is at least this; without it what the compiler's rules say.
  /// Stands for a target's row "small product" too.
  std::optional<int64_t> min_linear;
  /// Points that are missing in a model that has pairs already get one; else they are listed.
  bool add_missing = false;
};

/// `prepared`: what the plan was made for. E::unknown_name for names in `skip` and `only` that nothing has.
Placement place(const Graph& prepared, const FusionPlan& plan, const PlacementRequest& request);

}  // namespace opfuse::quantization
